"use strict";
// Pointing at a chart, or arrow keys on it, show the values of the nearest epoch.
(() => {
  const NS = "http://www.w3.org/2000/svg";
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  document.body.append(tip);

  const make = (parent, tag, className, attributes, words) => {
    const node = parent.namespaceURI === NS ? document.createElementNS(NS, tag) : document.createElement(tag);
    if (className) node.setAttribute("class", className);
    for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
    if (words !== undefined) node.textContent = words;
    parent.append(node);
    return node;
  };

  const place = (chart, x, y) => {
    const box = chart.getBoundingClientRect();
    const scale = box.width / chart.viewBox.baseVal.width;
    const width = tip.offsetWidth;
    const right = box.left + x * scale + 14;
    const left = right + width > document.documentElement.clientWidth - 8 ? right - width - 28 : right;
    tip.style.left = Math.max(8, left) + "px";
    tip.style.top = Math.max(8, box.top + y * scale) + "px";
  };

  for (const chart of document.querySelectorAll("svg[data-lines]")) {
    const lines = JSON.parse(chart.dataset.lines);
    const [top, bottom] = chart.dataset.span.split(" ").map(Number);
    const places = new Map();
    for (const line of lines) for (const [epoch, , x] of line.points) places.set(epoch, x);
    const epochs = [...places.keys()].sort((a, b) => a - b);
    const overlay = make(chart, "g");
    let current = -1;

    const hide = () => {
      overlay.replaceChildren();
      tip.hidden = true;
      current = -1;
    };
    const show = (index) => {
      current = index;
      const epoch = epochs[index];
      const x = places.get(epoch);
      overlay.replaceChildren();
      tip.replaceChildren();
      make(overlay, "line", "cursor", { x1: x, x2: x, y1: top, y2: bottom });
      make(tip, "b", "", {}, chart.dataset.x + " " + epoch);
      for (const line of lines) {
        const point = line.points.find(([at]) => at === epoch);
        if (!point) continue;
        make(overlay, "circle", "dot " + line.class, { cx: point[2], cy: point[3], r: 3.5 });
        const row = make(tip, "span", line.class);
        make(row, "i", line.dashed ? "broken" : "");
        row.append(line.name);
        make(row, "em", "", {}, String(point[1]).replace("-", "\u2212"));
      }
      tip.hidden = false;
      place(chart, x, top);
    };
    const nearest = (x) =>
      epochs.reduce((best, epoch, index) =>
        Math.abs(places.get(epoch) - x) < Math.abs(places.get(epochs[best]) - x) ? index : best, 0);

    chart.addEventListener("pointermove", (event) => {
      const box = chart.getBoundingClientRect();
      show(nearest(((event.clientX - box.left) * chart.viewBox.baseVal.width) / box.width));
    });
    chart.addEventListener("pointerleave", hide);
    chart.addEventListener("blur", hide);
    chart.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (event.key === "Escape") hide();
      if (!step) return;
      event.preventDefault();
      const start = current < 0 ? (step > 0 ? -1 : epochs.length) : current;
      show(Math.min(epochs.length - 1, Math.max(0, start + step)));
    });
  }
  addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });
})();
