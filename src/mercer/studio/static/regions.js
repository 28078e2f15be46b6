/**
 * Colours of the plane: the decision values of a grid painted as a picture.
 *
 * Two classes: the tint grows with |f| up to the margin, so that the street stays pale. Several classes: the tint of the winner
 * grows with its lead. A point between grid points takes the class with the largest interpolated lead, so that borders are smooth.
 */
import { classRGB, hexToRGB } from "./palette.js";
import { fieldOf, refine } from "./contours.js";

/**
 * @param {{columns: number, rows: number, values: number[][], labels?: number[][], others?: [number, number[], number[]][]}} grid
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
  const base = hexToRGB(paper);
  return Uint32Array.from({ length: 64 }, (_, k) => mix(base, colour, low + (high - low) * (k / 63)));
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

/**
 * Leads of the classes on a grid in flat arrays, and the winner between its points. A lead is positive where its class wins, zero
 * on the border of its region, and continuous, so that borders between grid points are smooth. Results are written to fields, not
 * returned: a picture needs a quarter of a million of them.
 */
class Winners {
  /** @param {{columns: number, values: number[][], labels: number[][], others: [number, number[], number[]][]}} grid */
  constructor(grid) {
    this.columns = grid.columns;
    this.labels = Uint8Array.from(grid.labels.flat());
    const own = Float32Array.from(grid.values.flat());
    /** the leads of each class where it wins or a neighbour of the point does @type {Float32Array[]} */
    this.leads = [];
    for (const label of new Set(this.labels)) this.leads[label] = own.map((value, at) => (this.labels[at] === label ? value : -value));
    for (const [label, places, values] of grid.others) places.forEach((at, k) => (this.leads[label][at] = values[k]));
    /** the class with the largest lead */ this.winner = 0;
    /** its lead */ this.first = 0;
    /** the largest lead of another class at the corners of the cell */ this.second = 0;
    /** leads by class of the corners; only where they differ */ this.found = new Float64Array(10);
  }

  /**
   * Find the winner in a cell. @param {number} at the corner with the lowest column and row
   * @param {number} u share of the next column @param {number} v share of the next row @returns {boolean} whether all corners agree
   */
  find(at, u, v) {
    const { labels, leads, columns, found } = this;
    const b = at + 1;
    const c = at + columns;
    const d = c + 1;
    const la = labels[at];
    const lb = labels[b];
    const lc = labels[c];
    const ld = labels[d];
    const wa = (1 - u) * (1 - v);
    const wb = u * (1 - v);
    const wc = (1 - u) * v;
    const wd = u * v;
    this.winner = la;
    let lead = leads[la];
    this.first = wa * lead[at] + wb * lead[b] + wc * lead[c] + wd * lead[d];
    if (la === lb && la === lc && la === ld) {
      this.second = -this.first;
      return true;
    }
    found.fill(-Infinity);
    found[la] = this.first;
    this.second = -Infinity;
    for (const label of [lb, lc, ld]) {
      if (found[label] > -Infinity) continue;
      lead = leads[label];
      const value = wa * lead[at] + wb * lead[b] + wc * lead[c] + wd * lead[d];
      found[label] = value;
      if (value > this.first) {
        this.second = this.first;
        this.first = value;
        this.winner = label;
      } else if (value > this.second) this.second = value;
    }
    return false;
  }
}

/** @param {Uint32Array} pixels @param {any} grid @param {any} look @param {number} width @param {number} height */
function paintClasses(pixels, grid, look, width, height) {
  const { columns, rows } = grid;
  const winners = new Winners(grid);
  const strength = look.dark ? 0.42 : 0.3;
  const ramps = Array.from({ length: 10 }, (_, label) => ramp(look.paper, classRGB(label), 0.08, strength));
  const across = columnPlaces(width, columns);
  for (let y = 0; y < height; y++) {
    const place = ((height - 0.5 - y) / height) * (rows - 1);
    const row = Math.min(Math.floor(place), rows - 2);
    for (let x = 0; x < width; x++) {
      winners.find(row * columns + across.index[x], across.share[x], place - row);
      pixels[y * width + x] = ramps[winners.winner][Math.max(0, Math.min(63, winners.first * 63)) | 0];
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
 * For each class that wins somewhere, its lead minus the largest lead of another class, on a finer grid. They are zero on its
 * borders, which are then the same as in `paintRegions`.
 *
 * @param {{columns: number, rows: number, values: number[][], labels: number[][], others: [number, number[], number[]][]}} grid
 * @param {number} factor @returns {Map<number, import("./contours.js").Field>}
 */
export function classFields(grid, factor) {
  const present = [...new Set(grid.labels.flat())];
  const columns = (grid.columns - 1) * factor + 1;
  const rows = (grid.rows - 1) * factor + 1;
  const fields = present.map((label) => ({ label, values: new Float32Array(columns * rows) }));
  const winners = new Winners(grid);
  for (let row = 0; row < rows; row++) {
    const r = Math.min(Math.floor(row / factor), grid.rows - 2);
    for (let column = 0; column < columns; column++) {
      const c = Math.min(Math.floor(column / factor), grid.columns - 2);
      const agreed = winners.find(r * grid.columns + c, column / factor - c, row / factor - r);
      const { winner, first, second, found } = winners;
      for (const { label, values } of fields)
        values[row * columns + column] = label === winner ? first - second : (agreed || found[label] === -Infinity ? second : found[label]) - first;
    }
  }
  return new Map(fields.map(({ label, values }) => [label, { columns, rows, values }]));
}
