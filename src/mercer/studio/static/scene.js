/**
 * The picture behind the points, as a list of shapes in pixels: grid lines, level lines, curves, bands, slack, proofs.
 *
 * The same list is painted on the canvas and written into an SVG file, so that both show one picture.
 *
 * @typedef {Object} Shape
 * @property {number[][][]} [lines] polylines of [x, y]
 * @property {boolean} [closed]
 * @property {string} [stroke] @property {number} [width] @property {number[]} [dash] @property {string} [fill] @property {number} [opacity]
 * @property {{x: number, y: number, text: string, anchor?: CanvasTextAlign, size?: number}} [label]
 *
 * @typedef {{width: number, height: number, view: number[]}} Frame
 */
import { contour, fieldOf, refine } from "./contours.js";
import { classColour } from "./palette.js";
import { classFields } from "./regions.js";

export const PLANE_MODES = new Set(["classify", "one_class"]);

/** @param {Frame} frame @returns {(x: number, y: number) => [number, number]} */
export function toPixels({ width, height, view }) {
  const [x0, x1, y0, y1] = view;
  return (x, y) => [((x - x0) / (x1 - x0)) * width, height - ((y - y0) / (y1 - y0)) * height];
}

/** A step of 1, 2 or 5 times a power of ten that gives about `count` steps. @param {number} length @param {number} count */
export function niceStep(length, count) {
  const raw = length / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const lead = raw / power;
  return power * (lead < 1.5 ? 1 : lead < 3.5 ? 2 : lead < 7.5 ? 5 : 10);
}

/**
 * @param {Frame} frame
 * @param {any} state
 * @param {any} result the answer of `fit`, or null
 * @param {any} step {answer, grey}: the machine of a step, and the exact one of its procedure in grey behind it, or null; or null
 * @param {Record<string, string>} look colours: ink, soft, faint, line, paper, accent, warn
 * @param {{x: string, y: string}} axes
 * @returns {Shape[]}
 */
export function buildScene(frame, state, result, step, look, axes) {
  /** @type {Shape[]} */ const shapes = [];
  gridLines(shapes, frame, look, axes);
  const pixels = toPixels(frame);
  if (PLANE_MODES.has(state.mode)) {
    if (step?.grey?.grid?.values) levels(shapes, pixels, step.grey, state, { ...look, ink: look.faint, pair: [look.faint, look.faint] }, 0.9);
    const machine = step?.answer ?? result;
    if (machine?.grid?.values) levels(shapes, pixels, machine, state, look, 1);
    if (machine?.line && !machine?.grid?.values) lineOf(shapes, pixels, frame, machine.line, look);
    if (result?.proof && !step) proof(shapes, pixels, result.proof, state, look);
  } else if (step) {
    for (const [machine, stroke] of [[step.grey, look.faint], [step.answer, look.accent]])
      if (machine?.grid?.f) shapes.push({ lines: [curve(pixels, machine.grid.x, machine.grid.f)], stroke, width: 2.5 });
  } else if (result?.grid) {
    if (state.mode === "regress") tube(shapes, pixels, result.grid, state, look);
    if (state.mode === "quantiles") quantileCurves(shapes, pixels, result.grid, state, look, frame);
    if (state.mode === "process") process(shapes, pixels, result.grid, look);
  }
  const machine = step?.answer ?? result;
  if (state.show.slack && machine?.points?.slack) slackBars(shapes, pixels, state, machine, look);
  return shapes;
}

/** @param {Shape[]} shapes @param {Frame} frame @param {any} look @param {{x: string, y: string}} axes */
function gridLines(shapes, frame, look, axes) {
  const { width, height, view } = frame;
  const pixels = toPixels(frame);
  const xStep = niceStep(view[1] - view[0], Math.max(3, width / 95));
  const yStep = niceStep(view[3] - view[2], Math.max(3, height / 80));
  /** @type {number[][][]} */ const lines = [];
  /** @type {number[][][]} */ const zeros = [];
  /** @type {Shape[]} */ const labels = [];
  for (let k = Math.ceil(view[0] / xStep); k * xStep <= view[1]; k++) {
    const [x] = pixels(k * xStep, 0);
    (k === 0 ? zeros : lines).push([[x, 0], [x, height]]);
    if (x > 24 && x < width - 60) labels.push({ label: { x, y: height - 8, text: tick(k * xStep, xStep), anchor: "center", size: 11 }, fill: look.soft });
  }
  for (let k = Math.ceil(view[2] / yStep); k * yStep <= view[3]; k++) {
    const [, y] = pixels(0, k * yStep);
    (k === 0 ? zeros : lines).push([[0, y], [width, y]]);
    if (y > 30 && y < height - 26) labels.push({ label: { x: 8, y: y + 4, text: tick(k * yStep, yStep), anchor: "left", size: 11 }, fill: look.soft });
  }
  shapes.push({ lines, stroke: look.line, width: 1, opacity: 0.55 }, { lines: zeros, stroke: look.line, width: 1.5 }, ...labels);
  shapes.push({ label: { x: width - 10, y: height - 8, text: axes.x, anchor: "right", size: 12 }, fill: look.ink });
  shapes.push({ label: { x: 8, y: 18, text: axes.y, anchor: "left", size: 12 }, fill: look.ink });
}

/** @param {number} value @param {number} step */
function tick(value, step) {
  if (Math.abs(value) < step / 2) return "0";
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const text = Math.abs(value) >= 1e5 || digits > 4 ? value.toExponential(1) : value.toFixed(digits);
  return text.replace("-", "−");
}

/** @type {WeakMap<object, Record<string, number[][][]>>} level lines of a grid in data: the points move more often than the machine */
const known = new WeakMap();

/** @param {any} grid @param {string} mode @returns {Record<string, number[][][]>} lines by level, or by class */
function linesOf(grid, mode) {
  const found = known.get(grid);
  if (found) return found;
  const factor = grid.columns < 120 ? 2 : 1;
  const [x0, x1, y0, y1] = grid.view;
  /** @param {import("./contours.js").Field} field @param {number} level */
  const lines = (field, level) => contour(field, level).map((line) => line.map(([c, r]) => [x0 + (c / (field.columns - 1)) * (x1 - x0), y0 + (r / (field.rows - 1)) * (y1 - y0)]));
  /** @type {Record<string, number[][][]>} */ const result = {};
  // borders of classes have corners where three of them meet
  if (grid.labels) for (const [label, field] of classFields(grid, 2)) result[label] = lines(field, 0);
  else {
    const field = refine(fieldOf(grid.values), factor);
    for (const level of mode === "classify" ? [0, -1, 1] : [0]) result[level] = lines(field, level);
  }
  known.set(grid, result);
  return result;
}

/** Boundary and margins. @param {Shape[]} shapes @param {Function} pixels @param {any} machine @param {any} state @param {any} look @param {number} opacity */
function levels(shapes, pixels, machine, state, look, opacity) {
  const found = linesOf(machine.grid, state.mode);
  /** @param {number[][][]} lines */
  const drawn = (lines) => lines.map((line) => line.map(([x, y]) => pixels(x, y)));
  if (machine.grid.labels) {
    for (const lines of Object.values(found)) shapes.push({ lines: drawn(lines), stroke: look.ink, width: 1.8, opacity });
    return;
  }
  if (state.mode === "classify" && state.show.margins) {
    const [negative, positive] = look.pair ?? [look.soft, look.soft];
    shapes.push({ lines: drawn(found[-1]), stroke: negative, width: 1.6, dash: [6, 5], opacity }, { lines: drawn(found[1]), stroke: positive, width: 1.6, dash: [6, 5], opacity });
  }
  const boundary = drawn(found[0]);
  shapes.push({ lines: boundary, stroke: look.paper, width: 5, opacity: 0.65 * opacity }, { lines: boundary, stroke: look.ink, width: 2.4, opacity });
}

/** The line w·x + b = 0 and its margins, where no grid is known. @param {Shape[]} shapes @param {Function} pixels @param {Frame} frame @param {any} line @param {any} look */
function lineOf(shapes, pixels, frame, line, look) {
  const [w1, w2] = line.w;
  const norm = w1 * w1 + w2 * w2;
  if (!(norm > 0)) return;
  const [x0, x1, y0, y1] = frame.view;
  const reach = Math.hypot(x1 - x0, y1 - y0) * 2;
  for (const level of [-1, 0, 1]) {
    const centre = [(x0 + x1) / 2, (y0 + y1) / 2];
    const t = (w1 * centre[0] + w2 * centre[1] + line.b - level) / norm;
    const foot = [centre[0] - t * w1, centre[1] - t * w2];
    const along = [-w2 / Math.sqrt(norm), w1 / Math.sqrt(norm)];
    const ends = [-reach, reach].map((s) => pixels(foot[0] + s * along[0], foot[1] + s * along[1]));
    shapes.push({ lines: [ends], stroke: level ? look.soft : look.ink, width: level ? 1.4 : 2.4, dash: level ? [6, 5] : [] });
  }
}

/** A point in both convex hulls: no line can separate them. @param {Shape[]} shapes @param {Function} pixels @param {any} found @param {any} state @param {any} look */
function proof(shapes, pixels, found, state, look) {
  for (const side of ["positive", "negative"]) {
    const members = (found[side] ?? []).filter((/** @type {number[]} */ [index]) => state.points[index]);
    if (!members.length) continue;
    const corners = members.map((/** @type {number[]} */ [index]) => pixels(state.points[index][0], state.points[index][1]));
    const label = state.points[members[0][0]][2];
    const colour = classColour(label);
    const own = state.points.filter((/** @type {number[]} */ p) => p[2] === label).map((/** @type {number[]} */ [x, y]) => pixels(x, y));
    shapes.push({ lines: [hull(own)], closed: true, stroke: colour, width: 1.6, dash: [2, 5], fill: colour });
    shapes.push({ lines: corners.map((/** @type {number[]} */ [x, y]) => circle(x, y, 13)), closed: true, stroke: colour, width: 2 });
    if (!found.point) continue;
    const centre = pixels(found.point[0], found.point[1]);
    members.forEach((/** @type {number[]} */ [, weight], /** @type {number} */ k) =>
      shapes.push({ lines: [[corners[k], centre]], stroke: colour, width: 1 + 4 * Math.min(1, Math.abs(weight)), opacity: 0.75 }),
    );
  }
  if (!found.point) return;
  const [x, y] = pixels(found.point[0], found.point[1]);
  shapes.push({ lines: [circle(x, y, 6)], closed: true, fill: look.warn, stroke: look.paper, width: 2 });
  // the label goes where it is farthest from the points
  const marks = state.points.map((/** @type {number[]} */ [px, py]) => pixels(px, py));
  const room = (/** @type {number[]} */ [dx, dy]) => Math.min(...marks.map((/** @type {number[]} */ [px, py]) => Math.hypot((px - x - dx) / 3, py - y - dy)));
  const [dx, dy] = [[0, -24], [0, 24], [-64, 0], [64, 0], [0, -48], [0, 48], [-64, 40], [64, 40]].reduce((best, place) => (room(place) > room(best) ? place : best));
  shapes.push({ label: { x: x + dx, y: y + dy + 4, text: "in both hulls", anchor: "center", size: 13 }, fill: look.ink });
}

/** @param {number} x @param {number} y @param {number} r */
function circle(x, y, r) {
  return Array.from({ length: 28 }, (_, k) => [x + r * Math.cos((k * Math.PI) / 14), y + r * Math.sin((k * Math.PI) / 14)]);
}

/** The convex hull by Andrew's monotone chain. @param {number[][]} points @returns {number[][]} */
function hull(points) {
  const sorted = [...points].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  if (sorted.length < 3) return sorted;
  /** @param {number[]} o @param {number[]} a @param {number[]} b */
  const turn = (o, a, b) => (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0]);
  /** @param {number[][]} list */
  const chain = (list) => {
    /** @type {number[][]} */ const half = [];
    for (const point of list) {
      while (half.length > 1 && turn(half[half.length - 2], half[half.length - 1], point) <= 0) half.pop();
      half.push(point);
    }
    return half.slice(0, -1);
  };
  return [...chain(sorted), ...chain([...sorted].reverse())];
}

/** @param {Function} pixels @param {number[]} xs @param {number[]} ys */
function curve(pixels, xs, ys) {
  return xs.map((x, k) => pixels(x, ys[k]));
}

/** @param {Function} pixels @param {number[]} xs @param {number[]} low @param {number[]} high */
function band(pixels, xs, low, high) {
  return [...curve(pixels, xs, high), ...curve(pixels, xs, low).reverse()];
}

/** @param {Shape[]} shapes @param {Function} pixels @param {any} grid @param {any} state @param {any} look */
function tube(shapes, pixels, grid, state, look) {
  if (grid.lower && state.show.regions) shapes.push({ lines: [band(pixels, grid.x, grid.lower, grid.upper)], closed: true, fill: look.accent, opacity: 0.16 });
  if (grid.lower && state.show.margins)
    shapes.push({ lines: [curve(pixels, grid.x, grid.lower), curve(pixels, grid.x, grid.upper)], stroke: look.accent, width: 1.4, dash: [6, 5] });
  shapes.push({ lines: [curve(pixels, grid.x, grid.f)], stroke: look.ink, width: 2.5 });
}

/** @param {Shape[]} shapes @param {Function} pixels @param {any} grid @param {any} state @param {any} look @param {Frame} frame */
function quantileCurves(shapes, pixels, grid, state, look, frame) {
  // while a new list of quantiles is fitted, the curves are those of the old one
  const count = Math.min(grid.curves.length, state.quantiles.length);
  const order = state.quantiles.slice(0, count).map((/** @type {number} */ q, /** @type {number} */ k) => [q, k]).sort((/** @type {number[]} */ a, /** @type {number[]} */ b) => a[0] - b[0]);
  if (state.show.regions)
    for (let k = 0; 2 * k + 1 < count; k++)
      shapes.push({ lines: [band(pixels, grid.x, grid.curves[order[k][1]], grid.curves[order[count - 1 - k][1]])], closed: true, fill: look.accent, opacity: 0.12 });
  const marks = state.points.map((/** @type {number[]} */ [x, y]) => pixels(x, y));
  for (const [quantile, index] of order) {
    const middle = Math.abs(quantile - 0.5) < 1e-9;
    const line = curve(pixels, grid.x, grid.curves[index]);
    shapes.push({ lines: [line], stroke: middle ? look.ink : look.accent, width: middle ? 2.5 : 1.8 });
    // near the right end, where it is farthest from the points
    const places = line.filter(([x, y]) => x > 0.6 * frame.width && x < frame.width - 46 && y > 24 && y < frame.height - 24).map(([x, y]) => [x, y - 6]);
    if (!places.length) continue;
    const room = (/** @type {number[]} */ [x, y]) => Math.min(40, ...marks.map(([px, py]) => Math.hypot((px - x - 10) / 2, py - y + 4)));
    const [x, y] = places.reduce((best, place) => (room(place) >= room(best) ? place : best));
    shapes.push({ label: { x, y, text: String(quantile), anchor: "left", size: 12 }, fill: look.ink });
  }
}

/** @param {Shape[]} shapes @param {Function} pixels @param {any} grid @param {any} look */
function process(shapes, pixels, grid, look) {
  for (const times of [2, 1]) {
    const low = grid.mean.map((/** @type {number} */ m, /** @type {number} */ k) => m - times * grid.deviation[k]);
    const high = grid.mean.map((/** @type {number} */ m, /** @type {number} */ k) => m + times * grid.deviation[k]);
    shapes.push({ lines: [band(pixels, grid.x, low, high)], closed: true, fill: look.accent, opacity: 0.14 });
  }
  for (const [k, sample] of (grid.samples ?? []).entries())
    shapes.push({ lines: [curve(pixels, grid.x, sample)], stroke: classColour([4, 2, 3][k % 3]), width: 1.2, opacity: 0.85 });
  shapes.push({ lines: [curve(pixels, grid.x, grid.mean)], stroke: look.ink, width: 2.5 });
}

/**
 * Slack as bars. Where slack is a length in the picture (the tube of a regression, the margin of a line), the bar has that
 * length; elsewhere a bar beside the point has a height of 20 pixels per unit.
 *
 * @param {Shape[]} shapes @param {Function} pixels @param {any} state @param {any} machine @param {any} look
 */
function slackBars(shapes, pixels, state, machine, look) {
  const slack = machine.points.slack;
  /** @type {number[][][]} */ const bars = [];
  const w = machine.line?.w;
  const norm2 = w ? w[0] * w[0] + w[1] * w[1] : 0;
  state.points.forEach((/** @type {number[]} */ [x, y, label], /** @type {number} */ k) => {
    const xi = slack[k];
    if (!(xi > 1e-6)) return;
    const at = pixels(x, y);
    if (state.mode === "regress") {
      const below = y < machine.points.f[k];
      bars.push([at, pixels(x, below ? y + xi : y - xi)]);
    } else if (state.mode === "classify" && norm2 > 0) {
      const side = label === look.positive ? 1 : -1;
      const t = (side * xi) / norm2;
      bars.push([at, pixels(x + t * w[0], y + t * w[1])]);
    } else if (PLANE_MODES.has(state.mode)) {
      bars.push([[at[0] + 18, at[1] + 8], [at[0] + 18, at[1] + 8 - Math.min(72, 20 * xi)]]);
    }
  });
  shapes.push({ lines: bars, stroke: look.paper, width: 5, opacity: 0.8 }, { lines: bars, stroke: look.warn, width: 2.6 });
}
