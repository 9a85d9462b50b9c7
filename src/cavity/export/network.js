"use strict";
/* The network in whole numbers. They are exact: Number up to 2^53, BigInt in the first layer where that is too small. */

/* Weights (rows, columns) of a matrix that is packed into text, as an Int8Array. */
async function unpacked({ rows, columns, planes, deflated, content }) {
  let octets = Uint8Array.from(atob(content), letter => letter.charCodeAt(0));
  if (deflated) {
    const stream = new Blob([octets]).stream().pipeThrough(new DecompressionStream("deflate"));
    octets = new Uint8Array(await new Response(stream).arrayBuffer());
  }
  if (planes === 8) return new Int8Array(octets.buffer, octets.byteOffset, rows * columns);
  const width = Math.ceil(columns / 8), weights = new Int8Array(rows * columns);
  const bit = (plane, row, column) => octets[(plane * rows + row) * width + (column >> 3)] >> (column & 7) & 1;
  for (let row = 0, at = 0; row < rows; ++row)
    for (let column = 0; column < columns; ++column, ++at)
      weights[at] = planes === 2 && !bit(1, row, column) ? 0 : 2 * bit(0, row, column) - 1;
  return weights;
}

/* The nearest whole number, halves to the even one. */
function rounded(value) {
  const below = Math.floor(value), rest = value - below;
  return rest > 0.5 || (rest === 0.5 && below % 2 !== 0) ? below + 1 : below;
}

/* The sums of weights times inputs, in parts of some inputs that have a factor. */
function dense({ rows, columns, weights }, input, parts, exact) {
  return Array.from({ length: rows }, (_, row) => {
    let total = exact(0), at = row * columns, i = 0;
    for (const [width, factor] of parts) {
      let sum = 0;
      for (const end = i + width; i < end; ++i) sum += weights[at + i] * input[i];
      total += exact(sum) * exact(factor);
    }
    return total;
  });
}

/* The same of filters at every position of all images (channels, height, width) in the inputs. */
function filtered({ rows, columns, weights, windows }, input, parts, exact) {
  const [[channels, height, width], [tall, wide], [down, right], [up, left]] = windows, area = height * width;
  const high = Math.floor((height + 2 * up - tall) / down) + 1, broad = Math.floor((width + 2 * left - wide) / right) + 1;
  const factors = parts.flatMap(([part, factor]) => Array(part / area).fill(factor)), sums = [];
  for (let image = 0; image < input.length; image += channels * area)
    for (let row = 0; row < rows; ++row)
      for (let place = 0; place < high * broad; ++place) {
        const top = Math.floor(place / broad) * down - up, side = place % broad * right - left;
        let total = exact(0), at = row * columns;
        for (let channel = 0; channel < channels; ++channel) {
          let sum = 0;
          for (let y = top; y < top + tall; ++y)
            for (let x = side; x < side + wide; ++x, ++at)
              if (y >= 0 && y < height && x >= 0 && x < width) sum += weights[at] * input[image + channel * area + y * width + x];
          total += exact(sum) * exact(factors[image / area + channel]);
        }
        sums.push(total);
      }
  return sums;
}

class Network {
  static async from(model) {
    const weights = await Promise.all(model.layers.map(unpacked));
    return new Network(model, model.layers.map((layer, number) => ({ ...layer, weights: weights[number] })));
  }

  constructor(model, layers) {
    this.model = model;
    this.layers = layers;
  }

  /* A sample as whole numbers; an Error says what is wrong with it. */
  integers(x) {
    const { features, inputs } = this.model, { white, scale, centre, multiplier, limit, largest, unit } = inputs;
    if (x.length !== features) throw new Error(`a sample has ${features} numbers, got ${x.length}`);
    const within = (value, bound) => Math.max(-bound, Math.min(bound, value));
    return Array.from(x, (value, i) => {
      if (!Number.isFinite(value)) throw new Error(`number ${i + 1} is missing or not finite`);
      if (inputs.kind === "pixels") {
        if (!Number.isInteger(value) || value < 0 || value > white) throw new Error(`pixel ${i + 1} must be a whole number from 0 to ${white}`);
        return value;
      }
      const k = scale.length === 1 ? 0 : i, raw = within(rounded(value * scale[k]), largest);
      return Math.floor((within(raw - centre[k], limit[k]) * multiplier[k] + unit / 2) / unit);
    });
  }

  /* The scores of the last layer for one sample. */
  scores(x) {
    const { groups, wide } = this.model;
    let z = null, input = this.integers(x);
    for (const layer of this.layers) {
      const exact = wide && z === null ? BigInt : Number;
      const parts = z === null ? groups : [[input.length, 1]];
      const sums = layer.windows ? filtered(layer, input, parts, exact) : dense(layer, input, parts, exact);
      const each = sums.length / layer.bias.length;
      z = sums.map((sum, unit) => sum * exact(layer.scale) + exact(layer.bias[Math.floor(unit / each)]));
      input = z.map(value => value >= 0 ? 1 : -1);
    }
    return z;
  }

  /* The class that scores stand for: the first largest, or for a single one whether it is at least 0. */
  best(scores) {
    if (scores.length === 1) return scores[0] >= 0 ? 1 : 0;
    return scores.reduce((best, value, k) => value > scores[best] ? k : best, 0);
  }

  /* What each class weighs against the best one, 65535. */
  weightsOf(scores) {
    const { multiplier, shift, limit } = this.model.confidence;
    const both = scores.length === 1 ? [-scores[0], scores[0]] : scores;
    const top = both.reduce((a, b) => a > b ? a : b);
    return both.map(value => {
      const apart = top - value;
      if (apart >= BigInt(limit)) return this.model.table[63];
      const i = typeof apart === "bigint" ? Number(apart * BigInt(multiplier) >> BigInt(shift)) : Math.floor(apart * multiplier / 2 ** shift);
      return this.model.table[i];
    });
  }

  /* From 0 to 255. */
  confidence(scores) {
    const total = this.weightsOf(scores).reduce((a, b) => a + b);
    return Math.floor((255 * 65535 + Math.floor(total / 2)) / total);
  }

  /* All there is to say about one sample; probabilities and confidence are null where nothing is known of them. */
  answer(x) {
    const scores = this.scores(x), best = this.best(scores);
    if (!this.model.confidence) return { scores, best, probabilities: null, confidence: null, doubtful: false };
    const weights = this.weightsOf(scores), total = weights.reduce((a, b) => a + b), confidence = this.confidence(scores);
    const probabilities = weights.map(weight => weight / total);
    return { scores, best, probabilities, confidence, doubtful: confidence < this.model.confidence.reject };
  }
}
