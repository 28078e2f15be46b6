/**
 * Colours of the plane: the decision values of a grid painted as a picture.
 *
 * Two classes: the tint grows with |f| up to the margin, so that the street stays pale. Several classes: the tint of the
 * winner. A point between grid points takes the class with the largest interpolated margin, so that borders are smooth.
 */
import { classRGB, hexToRGB } from "./palette.js";
import { fieldOf, refine } from "./contours.js";

/**
 * @param {{columns: number, rows: number, values: number[][], labels?: number[][]}} grid
 * @param {{paper: string, labels: [number, number], mode: string, dark: boolean}} look labels: of negative and positive values
 * @param {number} width of the picture @param {number} height
 * @returns {ImageData}
 */
export function paintRegions(grid, look, width, height) {
  const image = new ImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  if (grid.labels) paintClasses(pixels, grid, look, width, height);
  else paintValues(pixels, grid, look, width, height);
  return image;
}

/** @param {[number, number, number]} paper @param {[number, number, number]} colour @param {number} share @returns {number} a pixel */
function mix(paper, colour, share) {
  const [r, g, b] = paper.map((base, k) => Math.round(base + (colour[k] - base) * share));
  return (255 << 24) | (b << 16) | (g << 8) | r;
}

/** Tints for |f| from 0 to 1 in 64 steps. @param {string} paper @param {[number, number, number]} colour @param {number} low @param {number} high */
function ramp(paper, colour, low, high) {
  return Uint32Array.from({ length: 64 }, (_, k) => mix(hexToRGB(paper), colour, low + (high - low) * (k / 63)));
}

/** @param {Uint32Array} pixels @param {any} grid @param {any} look @param {number} width @param {number} height */
function paintValues(pixels, grid, look, width, height) {
  const field = refine(fieldOf(grid.values), grid.columns < 100 ? 2 : 1);
  const { columns, rows, values } = field;
  const strength = look.dark ? 0.42 : 0.3;
  let positive = ramp(look.paper, classRGB(look.labels[1]), 0.05, strength);
  let negative = ramp(look.paper, classRGB(look.labels[0]), 0.05, strength);
  let scale = 63;
  if (look.mode === "one_class") {
    let largest = 1e-12;
    for (const value of values) if (value > largest) largest = value;
    scale = 63 / largest;
    positive = ramp(look.paper, classRGB(0), 0.1, strength);
    negative = ramp(look.paper, [128, 128, 128], 0.0, 0.1);
  }
  const across = columnPlaces(width, columns);
  for (let y = 0; y < height; y++) {
    const place = ((height - 0.5 - y) / height) * (rows - 1);
    const row = Math.min(Math.floor(place), rows - 2);
    const v = place - row;
    const start = row * columns;
    for (let x = 0; x < width; x++) {
      const at = start + across.index[x];
      const u = across.share[x];
      const low = values[at] + u * (values[at + 1] - values[at]);
      const high = values[at + columns] + u * (values[at + columns + 1] - values[at + columns]);
      const value = low + v * (high - low);
      const level = Math.min(63, Math.abs(value) * scale) | 0;
      pixels[y * width + x] = value > 0 ? positive[level] : negative[level];
    }
  }
}

/** @param {Uint32Array} pixels @param {any} grid @param {any} look @param {number} width @param {number} height */
function paintClasses(pixels, grid, look, width, height) {
  const { columns, rows } = grid;
  const labels = Uint8Array.from(grid.labels.flat());
  const values = Float32Array.from(grid.values.flat());
  const strength = look.dark ? 0.42 : 0.3;
  const ramps = Array.from({ length: 10 }, (_, label) => ramp(look.paper, classRGB(label), 0.08, strength));
  const across = columnPlaces(width, columns);
  const votes = new Float32Array(10);
  for (let y = 0; y < height; y++) {
    const place = ((height - 0.5 - y) / height) * (rows - 1);
    const row = Math.min(Math.floor(place), rows - 2);
    const v = place - row;
    for (let x = 0; x < width; x++) {
      const at = row * columns + across.index[x];
      const u = across.share[x];
      const corners = [at, at + 1, at + columns, at + columns + 1];
      const shares = [(1 - u) * (1 - v), u * (1 - v), (1 - u) * v, u * v];
      votes.fill(0);
      for (let k = 0; k < 4; k++) votes[labels[corners[k]]] += shares[k] * Math.max(values[corners[k]], 1e-6);
      let winner = labels[at];
      let second = 0;
      for (let label = 0; label < 10; label++) if (votes[label] > votes[winner]) winner = label;
      for (let label = 0; label < 10; label++) if (label !== winner && votes[label] > second) second = votes[label];
      pixels[y * width + x] = ramps[winner][Math.min(63, (votes[winner] - second) * 63) | 0];
    }
  }
}

/** @param {number} width @param {number} columns */
function columnPlaces(width, columns) {
  const index = new Int32Array(width);
  const share = new Float32Array(width);
  for (let x = 0; x < width; x++) {
    const place = ((x + 0.5) / width) * (columns - 1);
    index[x] = Math.min(Math.floor(place), columns - 2);
    share[x] = place - index[x];
  }
  return { index, share };
}

/**
 * For each class that wins somewhere, its votes less the largest of the others' on a finer grid: zero on its borders, which
 * are then those that `paintRegions` shows.
 *
 * @param {{columns: number, rows: number, values: number[][], labels: number[][]}} grid @param {number} factor
 * @returns {Map<number, import("./contours.js").Field>}
 */
export function classFields(grid, factor) {
  const present = [...new Set(grid.labels.flat())];
  const columns = (grid.columns - 1) * factor + 1;
  const rows = (grid.rows - 1) * factor + 1;
  const fields = new Map(present.map((label) => [label, { columns, rows, values: new Float32Array(columns * rows) }]));
  const votes = new Float32Array(10);
  for (let row = 0; row < rows; row++) {
    const r = Math.min(Math.floor(row / factor), grid.rows - 2);
    const v = row / factor - r;
    for (let column = 0; column < columns; column++) {
      const c = Math.min(Math.floor(column / factor), grid.columns - 2);
      const u = column / factor - c;
      votes.fill(0);
      for (const [dr, dc, share] of [[0, 0, (1 - u) * (1 - v)], [0, 1, u * (1 - v)], [1, 0, (1 - u) * v], [1, 1, u * v]])
        votes[grid.labels[r + dr][c + dc]] += share * Math.max(grid.values[r + dr][c + dc], 1e-6);
      let [first, second, winner] = [-1, -1, -1];
      for (const label of present) {
        if (votes[label] > first) [first, second, winner] = [votes[label], first, label];
        else if (votes[label] > second) second = votes[label];
      }
      for (const label of present) /** @type {any} */ (fields.get(label)).values[row * columns + column] = votes[label] - (label === winner ? Math.max(second, 0) : first);
    }
  }
  return fields;
}
