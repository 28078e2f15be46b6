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
 * Labels and votes of a grid in flat arrays, and the vote between its points. Results are written to fields, not returned: a picture
 * needs a quarter of a million votes.
 */
class Election {
  /** @param {{columns: number, values: number[][], labels: number[][]}} grid */
  constructor(grid) {
    this.columns = grid.columns;
    this.labels = Uint8Array.from(grid.labels.flat());
    this.weights = Float32Array.from(grid.values.flat(), (value) => Math.max(value, 1e-6));
    /** the class with the most votes */ this.winner = 0;
    /** its votes */ this.first = 0;
    /** the most votes of another class */ this.second = 0;
    /** votes by class; kept only where the corners differ */ this.votes = new Float64Array(10);
  }

  /**
   * Let the corners of a cell vote. @param {number} at the corner with the lowest column and row
   * @param {number} u share of the next column @param {number} v share of the next row @returns {boolean} whether all agree
   */
  hold(at, u, v) {
    const { labels, weights, columns, votes } = this;
    const b = at + 1;
    const c = at + columns;
    const d = c + 1;
    const la = labels[at];
    const lb = labels[b];
    const lc = labels[c];
    const ld = labels[d];
    const wa = (1 - u) * (1 - v) * weights[at];
    const wb = u * (1 - v) * weights[b];
    const wc = (1 - u) * v * weights[c];
    const wd = u * v * weights[d];
    this.winner = la;
    this.second = 0;
    if (la === lb && la === lc && la === ld) {
      this.first = wa + wb + wc + wd;
      return true;
    }
    votes.fill(0);
    votes[la] += wa;
    votes[lb] += wb;
    votes[lc] += wc;
    votes[ld] += wd;
    for (let label = 0; label < 10; label++) if (votes[label] > votes[this.winner]) this.winner = label;
    for (let label = 0; label < 10; label++) if (label !== this.winner && votes[label] > this.second) this.second = votes[label];
    this.first = votes[this.winner];
    return false;
  }
}

/** @param {Uint32Array} pixels @param {any} grid @param {any} look @param {number} width @param {number} height */
function paintClasses(pixels, grid, look, width, height) {
  const { columns, rows } = grid;
  const election = new Election(grid);
  const strength = look.dark ? 0.42 : 0.3;
  const ramps = Array.from({ length: 10 }, (_, label) => ramp(look.paper, classRGB(label), 0.08, strength));
  const across = columnPlaces(width, columns);
  for (let y = 0; y < height; y++) {
    const place = ((height - 0.5 - y) / height) * (rows - 1);
    const row = Math.min(Math.floor(place), rows - 2);
    for (let x = 0; x < width; x++) {
      election.hold(row * columns + across.index[x], across.share[x], place - row);
      pixels[y * width + x] = ramps[election.winner][Math.min(63, (election.first - election.second) * 63) | 0];
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
 * For each class that wins somewhere, its votes minus the most votes of another class, on a finer grid. They are zero on its
 * borders, which are then the same as in `paintRegions`.
 *
 * @param {{columns: number, rows: number, values: number[][], labels: number[][]}} grid @param {number} factor
 * @returns {Map<number, import("./contours.js").Field>}
 */
export function classFields(grid, factor) {
  const present = [...new Set(grid.labels.flat())];
  const columns = (grid.columns - 1) * factor + 1;
  const rows = (grid.rows - 1) * factor + 1;
  const fields = present.map((label) => ({ label, values: new Float32Array(columns * rows) }));
  const election = new Election(grid);
  for (let row = 0; row < rows; row++) {
    const r = Math.min(Math.floor(row / factor), grid.rows - 2);
    for (let column = 0; column < columns; column++) {
      const c = Math.min(Math.floor(column / factor), grid.columns - 2);
      const agreed = election.hold(r * grid.columns + c, column / factor - c, row / factor - r);
      const { winner, first, second, votes } = election;
      for (const { label, values } of fields) values[row * columns + column] = label === winner ? first - second : (agreed ? 0 : votes[label]) - first;
    }
  }
  return new Map(fields.map(({ label, values }) => [label, { columns, rows, values }]));
}
