/* From a drawing or a photograph to the pixels that the network takes, framed as its training images were. */

/* How dark or bright the border is: the median brightness, 0 to 1, of the outermost pixels of a grey image. */
function borderOf(grey, width, height) {
  const seen = [];
  for (let x = 0; x < width; ++x) seen.push(grey[x], grey[(height - 1) * width + x]);
  for (let y = 0; y < height; ++y) seen.push(grey[y * width], grey[y * width + width - 1]);
  return seen.sort((a, b) => a - b)[seen.length >> 1];
}

/* Brightness 0 to 1 of RGBA pixels on white paper. */
function brightness({ data, width, height }) {
  const grey = new Float64Array(width * height);
  for (let i = 0; i < grey.length; ++i) {
    const alpha = data[4 * i + 3] / 255;
    const light = (0.299 * data[4 * i] + 0.587 * data[4 * i + 1] + 0.114 * data[4 * i + 2]) / 255;
    grey[i] = 1 - alpha + alpha * light;
  }
  return grey;
}

/* The part of an image that has ink on it: [left, top, right, bottom], or null where there is none. */
function inked(ink, width, height) {
  const box = [width, height, -1, -1];
  for (let i = 0; i < ink.length; ++i) {
    if (ink[i] < 0.25) continue;
    const x = i % width, y = (i - x) / width;
    box[0] = Math.min(box[0], x); box[1] = Math.min(box[1], y);
    box[2] = Math.max(box[2], x + 1); box[3] = Math.max(box[3], y + 1);
  }
  return box[2] < 0 ? null : box;
}

/* The centre of all ink, [x, y]. */
function massOf(ink, width) {
  let total = 0, x = 0, y = 0;
  ink.forEach((value, i) => { total += value; x += value * (i % width + 0.5); y += value * (Math.floor(i / width) + 0.5); });
  return [x / total, y / total];
}

/* Ink (width × height) scaled so that its longer side has the usual size, and centred: values 0 to 1, (rows × columns),
   each the mean of the square that a pixel covers. */
function framed(ink, width, height, { columns, rows, size, centre }) {
  const out = new Float64Array(columns * rows), box = inked(ink, width, height);
  if (box === null) return out;
  const step = Math.max(box[2] - box[0], box[3] - box[1]) / size;
  const [cx, cy] = centre === "mass" ? massOf(ink, width) : [(box[0] + box[2]) / 2, (box[1] + box[3]) / 2];
  const fine = Math.max(2, Math.ceil(step));
  for (let row = 0; row < rows; ++row)
    for (let column = 0; column < columns; ++column) {
      let sum = 0;
      for (let v = 0; v < fine; ++v)
        for (let u = 0; u < fine; ++u) {
          const x = Math.floor(cx + (column + (u + 0.5) / fine - columns / 2) * step);
          const y = Math.floor(cy + (row + (v + 0.5) / fine - rows / 2) * step);
          if (x >= 0 && x < width && y >= 0 && y < height) sum += ink[y * width + x];
        }
      out[row * columns + column] = sum / (fine * fine);
    }
  return out;
}

/* The pixels of a one-channel network for RGBA pixels: a drawing, or a photograph on light or on dark ground. */
function greyPixels(image, frame, white) {
  const grey = brightness(image), dark = borderOf(grey, image.width, image.height) < 0.5;
  const ink = dark ? grey : grey.map(value => 1 - value);
  return Array.from(framed(ink, image.width, image.height, frame), value => Math.round(white * (frame.dark ? value : 1 - value)));
}

/* The pixels of a colour network, channel by channel, for an image that already has its size. */
function colourPixels({ data, width, height }, white) {
  const pixels = [];
  for (let channel = 0; channel < 3; ++channel)
    for (let i = 0; i < width * height; ++i) pixels.push(Math.round(white * data[4 * i + channel] / 255));
  return pixels;
}
