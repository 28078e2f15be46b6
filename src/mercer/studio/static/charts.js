/**
 * Small charts in SVG: lines over steps with a cursor, and contour lines of a quadratic function of two variables.
 */

import { h, number, s } from "./panel.js";

/**
 * Round places for ticks.
 * @param {number} low @param {number} high @param {number} count about this many
 * @returns {number[]}
 */
export function ticks(low, high, count = 4) {
  if (!(high > low)) return [low];
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough) ?? rough;
  const found = [];
  for (let value = Math.ceil(low / step) * step; value <= high + 1e-9 * step; value += step) {
    found.push(Math.abs(value) < 1e-9 * step ? 0 : value);
  }
  return found;
}

/** @param {number} low @param {number} high @returns {number[]} powers of ten in between */
function powers(low, high) {
  const found = [];
  const first = Math.ceil(Math.log10(low) - 1e-9);
  const last = Math.floor(Math.log10(high) + 1e-9);
  const stride = Math.max(1, Math.ceil((last - first + 1) / 5));
  for (let power = first; power <= last; power += stride) found.push(10 ** power);
  return found.length > 1 ? found : [low, high];
}

/**
 * @typedef {{label: string, values: (number | null)[], look: string}} Series
 * @typedef {{value: number, label: string}} Level
 *
 * A chart of one or more columns over the number of a step.
 * @param {{title: string, x: number[], series: Series[], levels?: Level[], log?: boolean, xLabel?: string, remark?: string}} options
 * @returns {{element: HTMLElement, moveTo: (position: number) => void}}
 */
export function lineChart({ title, x, series, levels = [], log = false, xLabel = "step", remark = "" }) {
  const [width, height, left, right, top, bottom] = [380, 210, 52, 12, 12, 34];
  const finite = (/** @type {any} */ v) => typeof v === "number" && Number.isFinite(v) && (!log || v > 0);
  const all = [...series.flatMap((one) => one.values), ...levels.map((level) => level.value)].filter(finite);
  let low = Math.min(...all);
  let high = Math.max(...all);
  if (!all.length) [low, high] = [0, 1];
  if (low === high) [low, high] = log ? [low / 2, high * 2] : [low - 0.5, high + 0.5];
  const scale = log ? Math.log10 : (/** @type {number} */ v) => v;
  const [from, to] = [scale(low), scale(high)];
  const pad = 0.06 * (to - from);
  const [xFrom, xTo] = [x[0] ?? 0, Math.max(x[x.length - 1] ?? 1, (x[0] ?? 0) + 1)];
  const px = (/** @type {number} */ v) => left + ((v - xFrom) / (xTo - xFrom)) * (width - left - right);
  const py = (/** @type {number} */ v) =>
    height - bottom - ((scale(v) - from + pad) / (to - from + 2 * pad)) * (height - top - bottom);

  const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, class: "mp-chart", role: "img", "aria-label": title });
  svg.append(s("title", {}, title));
  for (const tick of log ? powers(low, high) : ticks(low, high)) {
    svg.append(
      s("line", { x1: left, x2: width - right, y1: py(tick), y2: py(tick), class: "mp-grid" }),
      s("text", { x: left - 6, y: py(tick) + 4, class: "mp-tick", "text-anchor": "end" }, number(tick, 3)),
    );
  }
  const whole = ticks(xFrom, xTo, 5).filter(Number.isInteger);
  for (const tick of whole) {
    svg.append(s("text", { x: px(tick), y: height - bottom + 16, class: "mp-tick", "text-anchor": "middle" }, String(tick)));
  }
  svg.append(s("text", { x: (left + width - right) / 2, y: height - 3, class: "mp-tick", "text-anchor": "middle" }, xLabel));
  for (const level of levels.filter((one) => finite(one.value))) {
    const y = py(level.value);
    // the label stands above the line unless that is outside of the chart
    const below = y < top + 14;
    svg.append(
      s("line", { x1: left, x2: width - right, y1: y, y2: y, class: "mp-level" }),
      s("text", { x: width - right, y: below ? y + 13 : y - 4, class: "mp-level-label", "text-anchor": "end" }, level.label),
    );
  }
  for (const one of series) {
    let path = "";
    let drawing = false;
    one.values.forEach((value, k) => {
      if (!finite(value)) drawing = false;
      else {
        path += `${drawing ? "L" : "M"}${px(x[k]).toFixed(1)} ${py(/** @type {number} */ (value)).toFixed(1)}`;
        drawing = true;
      }
    });
    svg.append(s("path", { d: path, class: `mp-series ${one.look}` }));
  }
  const cursor = s("line", { y1: top, y2: height - bottom, class: "mp-cursor" });
  const marks = series.map((one) => s("circle", { r: 4, class: `mp-mark ${one.look}` }));
  svg.append(cursor, ...marks);
  const legend = h("figcaption", { class: "mp-legend" });
  for (const one of series) legend.append(h("span", { class: `mp-key ${one.look}`, text: one.label }), " ");
  if (log) legend.append(h("span", { class: "mp-muted", text: "logarithmic axis" }));
  if (remark) legend.append(" ", h("span", { class: "mp-muted", text: remark }));

  /** @param {number} position index into x */
  function moveTo(position) {
    const place = String(px(x[position] ?? xFrom));
    cursor.setAttribute("x1", place);
    cursor.setAttribute("x2", place);
    series.forEach((one, k) => {
      const value = one.values[position];
      const there = finite(value);
      marks[k].setAttribute("visibility", there ? "visible" : "hidden");
      if (!there) return;
      marks[k].setAttribute("cx", place);
      marks[k].setAttribute("cy", String(py(/** @type {number} */ (value))));
    });
  }
  moveTo(0);
  return { element: h("figure", { class: "mp-figure" }, /** @type {any} */ (svg), legend), moveTo };
}

/**
 * Contour lines of a function over a square, by marching squares.
 * @param {(a: number, b: number) => number} value
 * @param {[number, number]} range of both variables
 * @param {number} count of levels
 * @param {(a: number) => number} px @param {(b: number) => number} py to the picture
 * @returns {string} the path
 */
export function contourPath(value, range, count, px, py) {
  const cells = 56;
  const step = (range[1] - range[0]) / cells;
  const at = (/** @type {number} */ k) => range[0] + k * step;
  /** @type {number[][]} */
  const grid = [];
  let low = Infinity;
  let high = -Infinity;
  for (let row = 0; row <= cells; row++) {
    grid.push([]);
    for (let column = 0; column <= cells; column++) {
      const here = value(at(column), at(row));
      grid[row].push(here);
      low = Math.min(low, here);
      high = Math.max(high, here);
    }
  }
  if (!(high > low)) return "";
  let path = "";
  for (let k = 1; k <= count; k++) {
    // levels lie closer near the maximum, where the picture matters
    const level = high - (high - low) * (k / (count + 1)) ** 2;
    for (let row = 0; row < cells; row++) {
      for (let column = 0; column < cells; column++) {
        path += crossing(grid, row, column, level, at, px, py);
      }
    }
  }
  return path;
}

/** The lines of one level through one cell.
 * @param {number[][]} grid @param {number} row @param {number} column @param {number} level
 * @param {(k: number) => number} at @param {(a: number) => number} px @param {(b: number) => number} py */
function crossing(grid, row, column, level, at, px, py) {
  const corners = [
    [row, column],
    [row, column + 1],
    [row + 1, column + 1],
    [row + 1, column],
  ];
  /** @type {string[]} */
  const found = [];
  for (let k = 0; k < 4; k++) {
    const [r0, c0] = corners[k];
    const [r1, c1] = corners[(k + 1) % 4];
    const first = grid[r0][c0] - level;
    const second = grid[r1][c1] - level;
    if (first > 0 === second > 0) continue;
    const part = first / (first - second);
    const a = at(c0 + part * (c1 - c0));
    const b = at(r0 + part * (r1 - r0));
    found.push(`${px(a).toFixed(1)} ${py(b).toFixed(1)}`);
  }
  let path = "";
  for (let k = 0; k + 1 < found.length; k += 2) path += `M${found[k]}L${found[k + 1]}`;
  return path;
}
