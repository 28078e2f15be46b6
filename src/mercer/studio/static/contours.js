/**
 * Level lines of a function known on a grid: Catmull–Rom refinement, then marching squares, joined to polylines.
 *
 * A field is row-major; row 0 is y_min. Lines are in grid coordinates (column, row), which `toView` maps to x and y.
 *
 * @typedef {{columns: number, rows: number, values: Float32Array}} Field
 * @typedef {number[][]} Line corners [column, row]; a closed line repeats its first corner
 */

/** @param {number[][]} values rows of numbers @returns {Field} */
export function fieldOf(values) {
  const rows = values.length;
  const columns = rows ? values[0].length : 0;
  const flat = new Float32Array(rows * columns);
  for (let row = 0; row < rows; row++) flat.set(values[row], row * columns);
  return { columns, rows, values: flat };
}

/**
 * The cubic weights of Catmull and Rom for the points in front of, at, after and beyond a place t in 0..1.
 * @param {number} t @returns {[number, number, number, number]}
 */
function cubic(t) {
  const t2 = t * t;
  const t3 = t2 * t;
  return [0.5 * (-t3 + 2 * t2 - t), 0.5 * (3 * t3 - 5 * t2 + 2), 0.5 * (-3 * t3 + 4 * t2 + t), 0.5 * (t3 - t2)];
}

/** The field on a grid `factor` times as fine, through the same values. @param {Field} field @param {number} factor @returns {Field} */
export function refine(field, factor) {
  if (factor <= 1 || field.columns < 2 || field.rows < 2) return field;
  const { columns, rows, values } = field;
  const fineColumns = (columns - 1) * factor + 1;
  const fineRows = (rows - 1) * factor + 1;
  const weights = Array.from({ length: factor }, (_, k) => cubic(k / factor));
  const wide = new Float32Array(rows * fineColumns);
  for (let row = 0; row < rows; row++) {
    const start = row * columns;
    for (let fine = 0; fine < fineColumns; fine++) {
      const column = Math.floor(fine / factor);
      const w = weights[fine - column * factor];
      wide[row * fineColumns + fine] =
        w[0] * values[start + Math.max(column - 1, 0)] + w[1] * values[start + column] +
        w[2] * values[start + Math.min(column + 1, columns - 1)] + w[3] * values[start + Math.min(column + 2, columns - 1)];
    }
  }
  const result = new Float32Array(fineRows * fineColumns);
  for (let fine = 0; fine < fineRows; fine++) {
    const row = Math.floor(fine / factor);
    const w = weights[fine - row * factor];
    const above = [Math.max(row - 1, 0), row, Math.min(row + 1, rows - 1), Math.min(row + 2, rows - 1)].map((r) => r * fineColumns);
    for (let column = 0; column < fineColumns; column++)
      result[fine * fineColumns + column] =
        w[0] * wide[above[0] + column] + w[1] * wide[above[1] + column] + w[2] * wide[above[2] + column] + w[3] * wide[above[3] + column];
  }
  return { columns: fineColumns, rows: fineRows, values: result };
}

/**
 * The lines on which the field takes a level.
 *
 * Corners of a cell count 1 (lower left), 2 (lower right), 4 (upper right), 8 (upper left) when above the level; edges are
 * numbered 2·cell (from a corner to the right) and 2·cell + 1 (from a corner up), so that lines are joined by edge numbers.
 *
 * @param {Field} field @param {number} level @returns {Line[]}
 */
export function contour(field, level) {
  const { columns, rows, values } = field;
  /** @type {Map<number, number[]>} neighbours of an edge along the line */
  const next = new Map();
  /** @param {number} a @param {number} b */
  const join = (a, b) => {
    const atA = next.get(a);
    if (atA) atA.push(b);
    else next.set(a, [b]);
    const atB = next.get(b);
    if (atB) atB.push(a);
    else next.set(b, [a]);
  };
  for (let row = 0; row + 1 < rows; row++) {
    for (let column = 0; column + 1 < columns; column++) {
      const cell = row * columns + column;
      const a = values[cell] > level;
      const b = values[cell + 1] > level;
      const c = values[cell + columns + 1] > level;
      const d = values[cell + columns] > level;
      if (a === b && b === c && c === d) continue;
      const bottom = 2 * cell;
      const top = 2 * (cell + columns);
      const left = 2 * cell + 1;
      const right = 2 * (cell + 1) + 1;
      if (a === c && b === d) {
        // a saddle: the mean of the corners decides which corners are joined
        const middle = (values[cell] + values[cell + 1] + values[cell + columns] + values[cell + columns + 1]) / 4 > level;
        if (middle === a) {
          join(bottom, right);
          join(left, top);
        } else {
          join(bottom, left);
          join(right, top);
        }
        continue;
      }
      const crossed = [];
      if (a !== b) crossed.push(bottom);
      if (b !== c) crossed.push(right);
      if (c !== d) crossed.push(top);
      if (a !== d) crossed.push(left);
      join(crossed[0], crossed[1]);
    }
  }
  /** @param {number} edge @returns {[number, number]} where the level crosses it */
  const place = (edge) => {
    const cell = edge >> 1;
    const column = cell % columns;
    const row = (cell - column) / columns;
    const other = edge & 1 ? cell + columns : cell + 1;
    const t = (level - values[cell]) / (values[other] - values[cell]);
    return edge & 1 ? [column, row + t] : [column + t, row];
  };
  return trace(next).map((edges) => edges.map(place));
}

/** Chains of joined edges: open ones first, then rings. @param {Map<number, number[]>} next @returns {number[][]} */
function trace(next) {
  const seen = new Set();
  /** @type {number[][]} */ const chains = [];
  /** @param {number} start */
  const follow = (start) => {
    const chain = [start];
    seen.add(start);
    let edge = start;
    for (;;) {
      const following = /** @type {number[]} */ (next.get(edge)).find((other) => !seen.has(other));
      if (following === undefined) break;
      chain.push(following);
      seen.add(following);
      edge = following;
    }
    if (chain.length > 2 && /** @type {number[]} */ (next.get(edge)).includes(start)) chain.push(start);
    chains.push(chain);
  };
  for (const [edge, neighbours] of next) if (neighbours.length === 1 && !seen.has(edge)) follow(edge);
  for (const edge of next.keys()) if (!seen.has(edge)) follow(edge);
  return chains;
}

/** @param {Field} field @param {number} column @param {number} row @returns {number} between grid points, linearly */
export function valueAt(field, column, row) {
  const { columns, rows, values } = field;
  const c = Math.max(0, Math.min(columns - 1, column));
  const r = Math.max(0, Math.min(rows - 1, row));
  const c0 = Math.min(Math.floor(c), columns - 2);
  const r0 = Math.min(Math.floor(r), rows - 2);
  const [u, v] = [c - c0, r - r0];
  const at = r0 * columns + c0;
  return (1 - v) * ((1 - u) * values[at] + u * values[at + 1]) + v * ((1 - u) * values[at + columns] + u * values[at + columns + 1]);
}
