/* What is on the page: a canvas, an image from a file, or a row of numbers; and the answer to it, live. */
const model = JSON.parse(document.getElementById("model").textContent);
const find = id => document.getElementById(id);
const percent = share => share > 0.9995 ? ">99.9\u00a0%" : share > 0 && share < 0.0005 ? "<0.1\u00a0%" : `${(100 * share).toFixed(1)}\u00a0%`;

/* A row for each class, filled by show(). */
function bars() {
  return model.classes.map((name, k) => {
    const row = find("bar").content.firstElementChild.cloneNode(true);
    row.querySelector(".name").textContent = name;
    row.querySelector(".name").title = name;
    find("bars").append(row);
    return row;
  });
}

function show(rows, answer) {
  const { scores, best, probabilities, confidence, doubtful } = answer;
  const spread = Math.max(1, ...scores.map(value => Math.abs(Number(value))));
  find("class").textContent = model.classes[best];
  find("sure").textContent = confidence === null ? "" : `${percent(confidence / 255)} sure`;
  find("doubt").hidden = !doubtful;
  find("answer").classList.toggle("doubtful", doubtful);
  find("answer").classList.remove("empty");
  rows.forEach((row, k) => {
    const score = scores.length === 1 ? (k ? scores[0] : -scores[0]) : scores[k];
    const share = probabilities === null ? 0.5 + Number(score) / spread / 2 : probabilities[k];
    row.classList.toggle("best", k === best);
    row.querySelector("i").style.width = `${100 * share}%`;
    row.querySelector(".value").textContent = probabilities === null ? score.toString() : percent(share);
    row.title = `score ${score}`;
  });
}

function nothing(rows, words) {
  find("class").textContent = words;
  find("sure").textContent = "";
  find("doubt").hidden = true;
  find("answer").classList.add("empty");
  rows.forEach(row => {
    row.classList.remove("best");
    row.querySelector("i").style.width = 0;
    row.querySelector(".value").textContent = "";
  });
}

/* What the network sees, in its own pixels. */
function seen(pixels) {
  const { columns, rows } = model.frame, canvas = find("seen"), context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows), channels = pixels.length / (columns * rows);
  for (let i = 0; i < columns * rows; ++i) {
    for (let channel = 0; channel < 3; ++channel)
      image.data[4 * i + channel] = 255 * pixels[(channels === 3 ? channel * columns * rows : 0) + i] / model.inputs.white;
    image.data[4 * i + 3] = 255;
  }
  context.putImageData(image, 0, 0);
}

/* A file's image, drawn so that it covers a canvas, or lies within it on ground of its own kind. */
async function place(file, canvas, cover) {
  const image = await createImageBitmap(file), context = canvas.getContext("2d");
  const scale = (cover ? Math.max : Math.min)(canvas.width / image.width, canvas.height / image.height);
  const [width, height] = [image.width, image.height].map(side => Math.max(1, Math.round(side * scale)));
  const [left, top] = [Math.round((canvas.width - width) / 2), Math.round((canvas.height - height) / 2)];
  const fill = colour => {
    context.fillStyle = colour;
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.drawImage(image, left, top, width, height);
  };
  context.imageSmoothingQuality = "high";
  fill("#fff");
  if (!cover && borderOf(brightness(context.getImageData(left, top, width, height)), width, height) < 0.5) fill("#000");
}

function images(network, rows) {
  const canvas = find("canvas"), context = canvas.getContext("2d", { willReadFrequently: true });
  const grey = model.channels === 1, hint = grey ? "Draw something" : "Choose an image";
  const small = new OffscreenCanvas(model.frame.columns, model.frame.rows), fine = small.getContext("2d");
  fine.imageSmoothingQuality = "high";
  const look = () => {
    const whole = context.getImageData(0, 0, canvas.width, canvas.height);
    if (grey && brightness(whole).every(value => value > 0.99)) return clear();
    fine.drawImage(canvas, 0, 0, small.width, small.height);
    const pixels = grey ? greyPixels(whole, model.frame, model.inputs.white) : colourPixels(fine.getImageData(0, 0, small.width, small.height), model.inputs.white);
    seen(pixels);
    find("hint").hidden = true;
    show(rows, network.answer(pixels));
  };
  const clear = () => {
    context.fillStyle = "#fff";
    context.fillRect(0, 0, canvas.width, canvas.height);
    seen(new Array(model.features).fill(grey && !model.frame.dark ? model.inputs.white : 0));
    find("hint").hidden = false;
    nothing(rows, hint);
  };
  const take = async file => {
    try {
      await place(file, canvas, !grey);
      find("note").textContent = "";
      look();
    } catch {
      find("note").textContent = "This file is no image that the browser can show.";
    }
  };
  find("clear").addEventListener("click", () => { find("note").textContent = ""; clear(); });
  find("file").addEventListener("change", event => { if (event.target.files.length) take(event.target.files[0]); event.target.value = ""; });
  for (const name of ["dragover", "drop"])
    canvas.addEventListener(name, event => { event.preventDefault(); if (name === "drop" && event.dataTransfer.files.length) take(event.dataTransfer.files[0]); });
  if (grey) draw(canvas, context, look);
  clear();
}

/* A pen on the canvas, by mouse, finger or stylus. */
function draw(canvas, context, look) {
  let last = null, waiting = false;
  const point = event => {
    const box = canvas.getBoundingClientRect();
    return [(event.clientX - box.left) * canvas.width / box.width, (event.clientY - box.top) * canvas.height / box.height];
  };
  const line = (from, to) => {
    context.strokeStyle = "#000";
    context.lineCap = context.lineJoin = "round";
    context.lineWidth = model.frame.pen * canvas.width;
    context.beginPath();
    context.moveTo(...from);
    context.lineTo(...to);
    context.stroke();
    if (!waiting) requestAnimationFrame(() => { waiting = false; look(); });
    waiting = true;
  };
  canvas.addEventListener("pointerdown", event => {
    if (event.button) return;
    canvas.setPointerCapture(event.pointerId);
    find("hint").hidden = true;
    last = point(event);
    line(last, last);
  });
  canvas.addEventListener("pointermove", event => {
    if (last === null) return;
    for (const each of event.getCoalescedEvents?.() ?? [event]) { const to = point(each); line(last, to); last = to; }
  });
  for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, () => { last = null; });
}

/* A slider and a field for each number, where there are not too many, and the whole row as text. */
function table(network, rows) {
  const row = find("row"), fields = [];
  const values = () => row.value.trim().split(/[\s,;]+/).filter(Boolean).map(Number);
  const look = () => {
    try {
      const x = values(), answer = network.answer(x);
      find("note").textContent = "";
      fields.forEach((set, i) => set(x[i]));
      show(rows, answer);
    } catch (error) {
      find("note").textContent = `${error.message[0].toUpperCase()}${error.message.slice(1)}.`;
      nothing(rows, "–");
    }
  };
  const numbers = model.start;
  if (model.sliders) model.sliders.forEach(({ name, low, high, step }, i) => {
    const line = find("slider").content.firstElementChild.cloneNode(true);
    const [slide, field] = line.querySelectorAll("input");
    line.querySelector("span").textContent = line.querySelector("span").title = name;
    for (const input of [slide, field]) input.setAttribute("aria-label", name);
    Object.assign(slide, { min: low, max: high, step: "any" });
    Object.assign(field, { step });
    const change = value => { const x = values(); x[i] = value; row.value = x.join(", "); look(); };
    slide.addEventListener("input", () => change(Number(Number(slide.value).toPrecision(4))));
    field.addEventListener("input", () => { if (field.value !== "") change(Number(field.value)); });
    fields.push(value => { slide.value = value; if (document.activeElement !== field) field.value = value; });
    find("sliders").append(line);
  });
  row.addEventListener("input", look);
  find("reset").addEventListener("click", () => { row.value = numbers.join(", "); look(); });
  row.value = numbers.join(", ");
  look();
}

window.ready = Network.from(model).then(network => {
  window.network = network;
  (model.frame ? images : table)(network, bars());
  document.body.dataset.state = "ready";
});
