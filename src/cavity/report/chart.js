// A chart of curves: what pointing at it shows, and how it is drawn anew when the controls ask for another view.
const NS = "http://www.w3.org/2000/svg";
const LETTER = 6, MINUS = "\u2212";

const make = (parent, tag, className, attributes, words) => {
  const node = parent.namespaceURI === NS ? document.createElementNS(NS, tag) : document.createElement(tag);
  if (className) node.setAttribute("class", className);
  for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
  if (words !== undefined) node.textContent = words;
  parent.append(node);
  return node;
};
const short = (value, digits = 5) => String(Number(value.toPrecision(digits))).replace("-", MINUS);

// Round numbers around [low, high]: about five of them, or powers of ten and what is between where few are.
const linearTicks = (low, high, count, whole) => {
  const rough = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  let step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.999);
  if (whole) step = Math.max(1, Math.round(step));
  const ticks = [];
  for (let n = Math.floor(low / step + 1e-9); n <= Math.ceil(high / step - 1e-9); n++) ticks.push(n * step);
  return ticks;
};
const logTicks = (low, high) => {
  const all = [];
  for (let p = Math.floor(Math.log10(low)); p <= Math.ceil(Math.log10(high)); p++)
    for (const m of [1, 2, 5]) all.push(m * 10 ** p);
  const inside = all.filter((t) => t >= low * 0.999 && t <= high * 1.001);
  const tens = inside.filter((t) => Math.abs(Math.log10(t) - Math.round(Math.log10(t))) < 1e-9);
  if (inside.length < 3) return linearTicks(low, high, 6).filter((t) => t >= low && t <= high);
  return tens.length > 3 ? tens : inside;
};

// What was measured before counts less and less; the beginning is corrected for what it has not seen.
const smoothed = (points, weight) => {
  let sum = 0, all = 0;
  return points.map(([x, y, epoch]) => {
    sum = weight * sum + (1 - weight) * y;
    all = weight * all + (1 - weight);
    return [x, sum / all, epoch];
  });
};

// Mean and standard deviation over curves at the epochs that all of them have.
const averaged = (curves) => {
  const at = curves.map((points) => new Map(points.map((point) => [point[2], point])));
  const shared = [...at[0].keys()].filter((epoch) => at.every((map) => map.has(epoch)));
  const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;
  const points = [], band = [];
  for (const epoch of shared) {
    const x = mean(at.map((map) => map.get(epoch)[0])), ys = at.map((map) => map.get(epoch)[1]), y = mean(ys);
    const spread = ys.length > 1 ? Math.sqrt(ys.reduce((s, v) => s + (v - y) ** 2, 0) / (ys.length - 1)) : 0;
    points.push([x, y, epoch, spread]);
    band.push([x, y - spread, y + spread]);
  }
  return { points, band };
};

const tip = make(document.body, "div", "tip");
tip.hidden = true;

class Chart {
  constructor(svg, about) {
    this.svg = svg;
    this.about = about;
    this.lines = JSON.parse(svg.dataset.lines);
    this.epochs = svg.dataset.x === "epoch";
    this.legend = svg.parentElement.querySelector(".legend");
    const [left, top, right, bottom] = svg.dataset.box.split(" ").map(Number);
    const [x0, x1, y0, y1] = svg.dataset.range.split(" ").map(Number);
    this.box = { left, top, right, bottom };
    this.setScale([x0, x1, false], [y0, y1, false]);
    this.series = this.lines.map((line) => ({ ...line, points: line.points.map(([x, y]) => [x, y, x]) }));
    this.unit = 1;
    this.current = -1;
    this.overlay = make(svg, "g");
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      this.show(this.nearest(((event.clientX - box.left) * svg.viewBox.baseVal.width) / box.width));
    });
    for (const kind of ["pointerleave", "blur"]) svg.addEventListener(kind, () => this.hide());
    svg.addEventListener("keydown", (event) => this.key(event));
  }

  setScale(x, y) {
    const { left, top, right, bottom } = this.box;
    const part = ([low, high, log], v) =>
      log ? Math.log(v / low) / Math.log(high / low) : (v - low) / (high - low);
    this.x = (v) => left + part(x, v) * (right - left);
    this.y = (v) => bottom - part(y, v) * (bottom - top);
  }

  // The curves as the controls want them: [x, y, epoch] each, x in epochs or in seconds of training.
  curves(state) {
    const placed = (line) =>
      line.points.map(([x, y]) => {
        if (!this.epochs || !state.time) return [x, y, x];
        const run = this.about.runs[line.run];
        return [run.times[run.epochs.indexOf(x)], y, x];
      });
    const shown = this.lines.filter((line) => !state.hidden.has(line.run));
    if (!state.mean || !this.epochs) return shown.map((line) => ({ ...line, points: placed(line) }));
    const found = [];
    for (const group of this.about.groups) {
      for (const dashed of [undefined, true]) {
        const own = shown.filter((line) => group.runs.includes(line.run) && line.dashed === dashed);
        if (!own.length) continue;
        const { points, band } = averaged(own.map(placed));
        const name = dashed ? group.name + ", Bayesian" : group.name;
        found.push({ ...own[0], name, class: group.class, points, band: own.length > 1 ? band : undefined });
      }
    }
    return found;
  }

  draw(state) {
    this.hide();
    let series = this.curves(state);
    const all = series.flatMap((one) => one.points);
    const positive = (axis) => all.filter((point) => point[axis] > 0).map((point) => point[axis]);
    const logX = this.epochs && state.logX && positive(0).length > 0;
    const logY = this.epochs && state.logY && positive(1).length > 0 && !all.some((point) => point[1] < 0);
    const kept = (point) => Number.isFinite(point[0]) && (!logX || point[0] > 0) && (!logY || point[1] > 0);
    series = series.map((one) => ({ ...one, points: one.points.filter(kept) }));
    if (this.epochs && state.smooth > 0)
      series = series.map((one) => ({ ...one, raw: one.points, points: smoothed(one.points, state.smooth), band: one.band }));
    this.series = series;
    this.unit = 1;
    let xLabel = this.svg.dataset.x;
    if (this.epochs && state.time) {
      const longest = Math.max(0, ...all.map((point) => point[0]).filter(Number.isFinite));
      this.unit = longest > 3 * 3600 ? 3600 : longest > 180 ? 60 : 1;
      xLabel = "training time (" + { 1: "s", 60: "min", 3600: "h" }[this.unit] + ")";
    }
    this.frame(logX, logY, xLabel, state.time);
    for (const one of series) {
      if (one.band) this.area(one, logY);
      if (one.raw) this.path(one.raw, one, "raw");
      this.path(one.points, one, "curve");
      const last = one.points[one.points.length - 1];
      if (last) make(this.svg, "circle", "end " + one.class, { cx: this.x(last[0]), cy: this.y(last[1]), r: 2.5 });
    }
    this.overlay = make(this.svg, "g");
    this.tell(state);
  }

  frame(logX, logY, xLabel, time) {
    const { svg, box, series } = this;
    const { width, height } = svg.viewBox.baseVal;
    const points = series.flatMap((one) => [...one.points, ...(one.raw || [])]);
    const bands = series.flatMap((one) => (one.band || []).flatMap(([x, low, high]) => [[x, low], [x, high]]));
    const ys = [...points, ...bands].map((point) => point[1]).filter((v) => Number.isFinite(v) && (!logY || v > 0));
    const xs = points.map((point) => point[0]);
    const top = Number(svg.dataset.top);
    let yTicks, yEnds, xEnds, xTicks;
    if (logY) {
      yEnds = ys.length ? [Math.min(...ys) / 1.15, Math.max(...ys) * 1.15] : [0.1, 1];
      yTicks = logTicks(...yEnds);
    } else {
      const low = Math.min(0, ...ys), most = Math.max(0, ...ys);
      const high = top && most < 1.001 * top ? top : most;
      yTicks = linearTicks(low, high > low ? high : low + 1, 5);
      yEnds = [yTicks[0], yTicks[yTicks.length - 1]];
    }
    const first = xs.length ? Math.min(...xs) : 0, last = xs.length ? Math.max(...xs) : 1;
    if (logX) {
      const room = (last / first) ** 0.03 || 1;
      xEnds = last > first ? [first / room, last * room] : [first / 2, first * 2];
      xTicks = logTicks(...xEnds.map((v) => v / this.unit)).map((v) => v * this.unit);
    } else {
      const begin = time && this.epochs ? 0 : first, room = 0.03 * (last - begin) || 0.5;
      xEnds = [begin - room, last + room];
      xTicks = linearTicks(...[begin, last].map((v) => v / this.unit), 6, this.epochs && !time)
        .map((v) => v * this.unit).filter((v) => v >= xEnds[0] && v <= xEnds[1]);
    }
    const words = yTicks.map((tick) => short(tick, 4));
    box.left = 24 + LETTER * Math.max(...words.map((word) => word.length));
    this.setScale([...xEnds, logX], [...yEnds, logY]);
    svg.replaceChildren();
    yTicks.forEach((tick, place) => {
      const y = this.y(tick);
      make(svg, "path", tick === 0 ? "base" : "grid", { d: `M${box.left} ${y}H${box.right}` });
      make(svg, "text", "", { x: box.left - 4, y: y + 3.5, "text-anchor": "end" }, words[place]);
    });
    for (const tick of xTicks)
      make(svg, "text", "", { x: this.x(tick), y: box.bottom + 14, "text-anchor": "middle" }, short(tick / this.unit, 4));
    make(svg, "text", "name", { x: (box.left + box.right) / 2, y: height - 5, "text-anchor": "middle" },
      xLabel + (logX ? ", log scale" : ""));
    const middle = (box.top + box.bottom) / 2;
    make(svg, "text", "name", { x: 10, y: middle, "text-anchor": "middle", transform: `rotate(-90 10 ${middle})` },
      svg.dataset.y + (logY ? ", log scale" : ""));
  }

  path(points, one, kind) {
    if (points.length < 2) return;
    const d = points.map(([x, y]) => `${this.x(x).toFixed(1)} ${this.y(y).toFixed(1)}`).join("L");
    make(this.svg, "path", `${kind} ${one.class}${one.dashed ? " broken" : ""}`, { d: "M" + d });
  }

  area(one, logY) {
    const floor = (y) => Math.min(this.box.bottom, this.y(logY ? Math.max(y, 1e-300) : y));
    const kept = one.band.filter(([x, low, high]) => Number.isFinite(this.x(x)) && (!logY || high > 0));
    if (kept.length < 2) return;
    const up = kept.map(([x, , high]) => `${this.x(x).toFixed(1)} ${this.y(high).toFixed(1)}`);
    const down = kept.map(([x, low]) => `${this.x(x).toFixed(1)} ${floor(low).toFixed(1)}`).reverse();
    make(this.svg, "path", "band " + one.class, { d: "M" + [...up, ...down].join("L") + "z" });
  }

  // The legend of a chart of several runs follows what is drawn; that of one run never changes.
  tell(state) {
    if (!this.legend || this.about.runs.length < 2) return;
    this.legend.replaceChildren();
    for (const one of this.series) {
      if (one.quiet) continue;
      const item = make(this.legend, "li", one.class);
      make(item, "i", one.dashed ? "broken" : "");
      item.append(one.name);
    }
  }

  places() {
    return [...new Set(this.series.flatMap((one) => one.points.map(([x]) => x)))].sort((a, b) => a - b);
  }

  nearest(pixel) {
    const away = this.places().map((x) => Math.abs(this.x(x) - pixel));
    return away.indexOf(Math.min(...away));
  }

  hide() {
    this.overlay?.replaceChildren();
    tip.hidden = true;
    this.current = -1;
  }

  show(index) {
    const places = this.places();
    if (!(index in places)) return;
    this.current = index;
    const at = places[index], x = this.x(at), timed = this.unit !== 1 || this.series.some((one) => one.points.some(([x, , e]) => x !== e));
    this.overlay.replaceChildren();
    tip.replaceChildren();
    make(this.overlay, "line", "cursor", { x1: x, x2: x, y1: this.box.top, y2: this.box.bottom });
    make(tip, "b", "", {}, timed ? short(at / this.unit) + " " + { 1: "s", 60: "min", 3600: "h" }[this.unit] : this.svg.dataset.x + " " + short(at));
    for (const one of this.series) {
      // Along epochs the same epoch; along time the last that was known by then.
      const point = timed ? one.points.filter(([x]) => x <= at).pop() : one.points.find(([x]) => x === at);
      if (!point) continue;
      make(this.overlay, "circle", "dot " + one.class, { cx: this.x(point[0]), cy: this.y(point[1]), r: 3.5 });
      const row = make(tip, "span", one.class);
      make(row, "i", one.dashed ? "broken" : "");
      row.append(one.name);
      make(row, "em", "", {}, short(point[1]) + (point[3] !== undefined && one.band ? " ± " + short(point[3], 2) : ""));
    }
    tip.hidden = false;
    const frame = this.svg.getBoundingClientRect(), scale = frame.width / this.svg.viewBox.baseVal.width;
    const right = frame.left + x * scale + 14, width = tip.offsetWidth;
    const left = right + width > document.documentElement.clientWidth - 8 ? right - width - 28 : right;
    tip.style.left = Math.max(8, left) + "px";
    tip.style.top = Math.max(8, frame.top + this.box.top * scale) + "px";
  }

  key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === "Escape") this.hide();
    if (!step) return;
    event.preventDefault();
    const most = this.places().length, start = this.current < 0 ? (step > 0 ? -1 : most) : this.current;
    this.show(Math.min(most - 1, Math.max(0, start + step)));
  }
}
addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });
