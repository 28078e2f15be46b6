/**
 * Pictures of one step of a procedure: SMO's box, coordinate ascent on contour lines, the path of w, bars of α.
 *
 * Each view is a function of the answer of `steps`; it returns an element and `show(frame)`, which draws that frame.
 * As a function of two coordinates (a, b), with the others fixed, the dual is, up to a constant,
 *     pa + qb − ½(k₁a² + k₂b²) − d ab,      given as [p, q, k₁, k₂, d, constant].
 */

import { contourPath, ticks } from "./charts.js";
import { h, name, number, s } from "./panel.js";

const SIZE = 300;
const EDGE = 40;
const LEVELS = 11;

/**
 * Scales of a square picture.
 * @param {number} low @param {number} high
 */
function square(low, high) {
  const span = high - low || 1;
  const px = (/** @type {number} */ a) => EDGE + ((a - low) / span) * (SIZE - EDGE - 10);
  const py = (/** @type {number} */ b) => SIZE - EDGE - ((b - low) / span) * (SIZE - EDGE - 10);
  return { px, py };
}

/** The dual over a pair, without its constant. @param {number[]} coefficients [p, q, k₁, k₂, d] */
function quadratic([p, q, first, second, cross]) {
  return (/** @type {number} */ a, /** @type {number} */ b) =>
    p * a + q * b - 0.5 * (first * a * a + second * b * b) - cross * a * b;
}

/**
 * The pair at the maximum on the line of a step, before it is cut off at the box; null if the line has none.
 * @param {any} box
 * @returns {[number, number] | null}
 */
function unclippedPair(box) {
  if (box.unclipped === null) return null;
  return [box.before[0] + (box.same_sign ? -1 : 1) * (box.unclipped - box.before[1]), box.unclipped];
}

/** @param {string} look @param {number} x @param {number} y @returns {SVGElement} a mark; its shape tells its kind */
function mark(look, x, y) {
  const r = 5;
  if (look === "start") return s("rect", { x: x - r, y: y - r, width: 2 * r, height: 2 * r, class: "mp-start" });
  if (look === "free") return s("circle", { cx: x, cy: y, r: r + 1, class: "mp-free" });
  if (look === "exact") return s("path", { d: `M${x} ${y - 7}L${x + 7} ${y}L${x} ${y + 7}L${x - 7} ${y}Z`, class: "mp-exact" });
  return s("path", { d: `M${x - 6} ${y - 6}L${x + 6} ${y + 6}M${x - 6} ${y + 6}L${x + 6} ${y - 6}`, class: "mp-taken" });
}

/** @param {[string, string][]} entries looks and their names */
function legend(entries) {
  const list = h("figcaption", { class: "mp-legend" });
  for (const [look, text] of entries) {
    const picture = s("svg", { viewBox: "-9 -9 18 18", class: "mp-glyph", "aria-hidden": "true" });
    picture.append(mark(look, 0, 0));
    list.append(h("span", { class: "mp-entry" }, /** @type {any} */ (picture), text), " ");
  }
  return list;
}

/** Axes of a picture over two coefficients. @param {number} low @param {number} high @param {number | null} C
 * @param {{px: (a: number) => number, py: (b: number) => number}} scale @param {[string, string]} names */
function axes(low, high, C, { px, py }, names) {
  const group = s("g");
  /** @type {[number, string][]} */
  const places = C === null ? ticks(Math.max(0, low), high, 3).map((t) => [t, number(t, 3)]) : [[0, "0"], [C, "C"]];
  for (const [place, text] of places) {
    group.append(
      s("text", { x: px(place), y: SIZE - EDGE + 18, class: "mp-tick", "text-anchor": "middle" }, text),
      s("text", { x: EDGE - 8, y: py(place) + 4, class: "mp-tick", "text-anchor": "end" }, text),
    );
  }
  group.append(
    s("text", { x: px((low + high) / 2), y: SIZE - 6, class: "mp-axis", "text-anchor": "middle" }, names[0]),
    s("text", { x: 12, y: py((low + high) / 2), class: "mp-axis", "text-anchor": "middle" }, names[1]),
  );
  return group;
}

/** A small number as subscript. @param {number} index */
export function subscript(index) {
  return name(index).replace(/./g, (c) => "₀₁₂₃₄₅₆₇₈₉"[Number(c)]);
}

/**
 * SMO in its box, the picture of [M5]: the square [0, C]², the line on which the pair stays, the maximum on that line
 * and the point that is taken.
 * @param {any} answer
 */
export function smoBox(answer) {
  const svg = s("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, class: "mp-square", role: "img" });
  const element = h("figure", { class: "mp-figure" }, /** @type {any} */ (svg),
    legend([["start", "before"], ["free", "maximum on the line"], ["taken", "taken"]]));

  /** @param {number} frame */
  function show(frame) {
    const step = answer.frame_steps[frame];
    const box = step > 0 ? answer.box?.[step - 1] : null;
    svg.replaceChildren();
    if (!box) {
      svg.setAttribute("aria-label", "Start: every α is 0. No pair has been chosen yet.");
      svg.append(s("text", { x: SIZE / 2, y: SIZE / 2, class: "mp-axis", "text-anchor": "middle" }, "start: every α is 0"));
      return;
    }
    drawBox(svg, box);
  }
  return { element, show };
}

/** @param {Element} svg @param {any} box one step of SMO */
function drawBox(svg, box) {
  const C = typeof box.C === "number" && Number.isFinite(box.C) ? box.C : null;
  const places = [...box.before, ...box.after, ...(C === null ? [] : [0, C])];
  const reach = Math.max(...places) - Math.min(0, ...places) || 1;
  // a maximum far outside of the box would make the box tiny: it is told in words
  const peak = unclippedPair(box);
  const near = peak !== null && peak.every((value) => value > -reach && value < 2 * reach);
  const low = Math.min(0, ...places, ...(near ? peak : [])) - 0.12 * reach;
  const high = Math.max(...places, ...(near ? peak : [])) + 0.12 * reach;
  const scale = square(low, high);
  const { px, py } = scale;
  const slope = box.same_sign ? -1 : 1;
  const [a0, b0] = box.before;
  const lineAt = (/** @type {number} */ b) => a0 + slope * (b - b0);
  const top = C ?? high;
  svg.append(
    s("rect", { x: px(0), y: py(top), width: px(top) - px(0), height: py(0) - py(top), class: "mp-box" }),
    s("path", { d: box.quadratic ? contourPath(quadratic(box.quadratic), [low, high], LEVELS, px, py) : "", class: "mp-contour" }),
    axes(low, high, C, scale, [`α${subscript(box.i)}`, `α${subscript(box.j)}`]),
  );
  const clip = { x1: px(lineAt(low)), y1: py(low), x2: px(lineAt(high)), y2: py(high) };
  const frame = s("svg", { x: EDGE, y: 10, width: SIZE - EDGE - 10, height: SIZE - EDGE - 10,
    viewBox: `${EDGE} 10 ${SIZE - EDGE - 10} ${SIZE - EDGE - 10}` });
  frame.append(s("line", { ...clip, class: "mp-line" }));
  const H = Number.isFinite(box.H) && box.H !== null ? box.H : high;
  frame.append(s("line", { x1: px(lineAt(box.L)), y1: py(box.L), x2: px(lineAt(H)), y2: py(H), class: "mp-segment" }));
  svg.append(frame);
  for (const [text, value] of /** @type {[string, number][]} */ ([["L", box.L], ["H", H]])) {
    if (text === "H" && box.H !== H) continue;
    svg.append(
      s("line", { x1: px(low), x2: px(lineAt(value)), y1: py(value), y2: py(value), class: "mp-guide" }),
      s("text", { x: px(low) + 4, y: py(value) + (text === "L" ? -4 : 12), class: "mp-level-label" }, text),
    );
  }
  if (near) svg.append(mark("free", px(peak[0]), py(peak[1])));
  else if (peak) svg.append(s("text", { x: SIZE - 12, y: 24, class: "mp-level-label", "text-anchor": "end" },
    `maximum outside of the picture: α${subscript(box.j)} = ${number(box.unclipped)}`));
  svg.append(mark("start", px(box.before[0]), py(box.before[1])), mark("taken", px(box.after[0]), py(box.after[1])));
  const words = `The pair ${name(box.i)}, ${name(box.j)} in its box: from ${number(box.before[0])}, ${number(box.before[1])} ` +
    `to ${number(box.after[0])}, ${number(box.after[1])}.`;
  svg.setAttribute("aria-label", words);
  svg.append(s("title", {}, words));
}

/** One step of SMO in words. @param {any} box @returns {string} */
export function smoWords(box) {
  const [i, j] = [subscript(box.i), subscript(box.j)];
  const same = box.same_sign ? "the same class" : "different classes";
  const kept = box.same_sign ? `α${i} + α${j}` : `α${i} − α${j}`;
  const clipped = box.unclipped === null || Math.abs(box.unclipped - box.after[1]) > 1e-12 * Math.max(1, Math.abs(box.unclipped));
  const range = `[${number(box.L)}, ${number(box.H ?? Infinity)}]`;
  const end = clipped
    ? `the maximum on the line is at α${j} = ${number(box.unclipped)}, outside of ${range}, so the nearer end ${number(box.after[1])} is taken`
    : `the maximum on the line, α${j} = ${number(box.after[1])}, is inside of ${range} and is taken`;
  return `Points ${name(box.i)} and ${name(box.j)} are of ${same}: ${kept} stays ${number(box.before[0] + (box.same_sign ? 1 : -1) * box.before[1])}. ` +
    `${end[0].toUpperCase()}${end.slice(1)}. α${i} goes from ${number(box.before[0])} to ${number(box.after[0])}.`;
}

/**
 * Coordinate ascent on the contour lines of the dual over two chosen coordinates; the others are as in the frame.
 * @param {any} answer
 */
export function contourView(answer) {
  const data = answer.contours;
  const [i, j] = data.coordinates;
  /** @type {number[][]} the two coefficients at every frame */
  const path = answer.frame_steps.map((/** @type {number} */ step) => data.path[step]);
  const C = typeof data.C === "number" && Number.isFinite(data.C) ? data.C : null;
  const all = [...path.flat(), ...data.optimum, ...(C === null ? [] : [0, C])];
  const reach = Math.max(...all) - Math.min(0, ...all) || 1;
  const [low, high] = [Math.min(0, ...all) - 0.12 * reach, Math.max(...all) + 0.12 * reach];
  const scale = square(low, high);
  const { px, py } = scale;
  const svg = s("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, class: "mp-square", role: "img" });
  const element = h("figure", { class: "mp-figure" }, /** @type {any} */ (svg),
    legend([["start", "before"], ["taken", "now"], ["exact", "exact optimum"]]));
  const contour = s("path", { class: "mp-contour" });
  const trail = s("path", { class: "mp-trail" });
  const moving = s("g");
  const top = C ?? high;
  svg.append(
    s("rect", { x: px(0), y: py(top), width: px(top) - px(0), height: py(0) - py(top), class: "mp-box" }),
    contour, axes(low, high, C, scale, [`α${subscript(i)}`, `α${subscript(j)}`]),
    mark("exact", px(data.optimum[0]), py(data.optimum[1])), trail, moving,
  );

  /** @param {number} frame */
  function show(frame) {
    contour.setAttribute("d", contourPath(quadratic(data.quadratics[frame]), [low, high], LEVELS, px, py));
    trail.setAttribute("d", path.slice(0, frame + 1).map((/** @type {number[]} */ p, /** @type {number} */ k) =>
      `${k ? "L" : "M"}${px(p[0]).toFixed(1)} ${py(p[1]).toFixed(1)}`).join(""));
    const now = path[frame];
    const before = path[Math.max(0, frame - 1)];
    moving.replaceChildren(mark("start", px(before[0]), py(before[1])), mark("taken", px(now[0]), py(now[1])));
    svg.setAttribute("aria-label", `Contour lines of the dual over α${i + 1} and α${j + 1}: now at ${number(now[0])}, ` +
      `${number(now[1])}; the exact optimum is at ${number(data.optimum[0])}, ${number(data.optimum[1])}.`);
  }
  return { element, show };
}

/**
 * The path of w of a linear machine, with the exact w in grey.
 * @param {any} answer
 */
export function weightView(answer) {
  const path = answer.frames.map((/** @type {any} */ frame) => frame.w);
  const exact = answer.exact?.w ?? null;
  const all = [...path.flat(), ...(exact ?? []), 0].filter(Number.isFinite);
  const reach = Math.max(...all) - Math.min(...all) || 1;
  const [low, high] = [Math.min(...all) - 0.1 * reach, Math.max(...all) + 0.1 * reach];
  const { px, py } = square(low, high);
  const svg = s("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, class: "mp-square", role: "img" });
  for (const tick of ticks(low, high, 4)) {
    svg.append(
      s("line", { x1: px(tick), x2: px(tick), y1: py(low), y2: py(high), class: "mp-grid" }),
      s("line", { x1: px(low), x2: px(high), y1: py(tick), y2: py(tick), class: "mp-grid" }),
      s("text", { x: px(tick), y: SIZE - EDGE + 18, class: "mp-tick", "text-anchor": "middle" }, number(tick, 3)),
      s("text", { x: EDGE - 6, y: py(tick) + 4, class: "mp-tick", "text-anchor": "end" }, number(tick, 3)),
    );
  }
  svg.append(
    s("text", { x: SIZE / 2, y: SIZE - 6, class: "mp-axis", "text-anchor": "middle" }, "w₁"),
    s("text", { x: 8, y: 16, class: "mp-axis" }, "w₂"),
  );
  const trail = s("path", { class: "mp-trail" });
  const moving = s("g");
  if (exact) svg.append(mark("exact", px(exact[0]), py(exact[1])));
  svg.append(trail, moving);
  const entries = /** @type {[string, string][]} */ ([["start", "before"], ["taken", "w now"], ["exact", "exact w"]]);
  const element = h("figure", { class: "mp-figure" }, /** @type {any} */ (svg), legend(exact ? entries : entries.slice(0, 2)));

  /** @param {number} frame */
  function show(frame) {
    trail.setAttribute("d", path.slice(0, frame + 1).map((/** @type {number[]} */ w, /** @type {number} */ k) =>
      `${k ? "L" : "M"}${px(w[0]).toFixed(1)} ${py(w[1]).toFixed(1)}`).join(""));
    const before = path[Math.max(0, frame - 1)];
    const now = path[frame];
    moving.replaceChildren(mark("start", px(before[0]), py(before[1])), mark("taken", px(now[0]), py(now[1])));
    svg.setAttribute("aria-label", `The path of w: now ${number(now[0])}, ${number(now[1])}` +
      (exact ? `; the exact machine has ${number(exact[0])}, ${number(exact[1])}.` : "."));
  }
  return { element, show };
}

/**
 * The coefficient of every point as a bar; those of the exact machine behind them in grey.
 * @param {any} answer
 */
export function barView(answer) {
  const frames = answer.frames.map((/** @type {any} */ frame) => frame.alpha);
  const largest = (/** @type {number[]} */ values) => Math.max(...values.map(Math.abs));
  const limit = answer.exact?.alpha ?? null;
  const reach = Math.max(...frames.map(largest));
  // an exact machine with huge coefficients would flatten all bars: it is told in words
  const huge = limit !== null && reach > 0 && largest(limit) > 5 * reach;
  const exact = huge ? null : limit;
  const n = frames[0].length;
  const shown = Math.min(n, 120);
  const all = [0, ...frames.flat(), ...(exact ?? [])].filter(Number.isFinite);
  const [low, high] = [Math.min(...all), Math.max(...all, Math.min(...all) + 1e-12)];
  const [width, height, left, top, bottom] = [380, SIZE - 60, 46, 10, 30];
  const py = (/** @type {number} */ v) => top + ((high - v) / (high - low)) * (height - top - bottom);
  const slot = (width - left - 8) / shown;
  const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, class: "mp-chart", role: "img" });
  for (const tick of ticks(low, high, 6)) {
    svg.append(
      s("line", { x1: left, x2: width - 8, y1: py(tick), y2: py(tick), class: "mp-grid" }),
      s("text", { x: left - 6, y: py(tick) + 4, class: "mp-tick", "text-anchor": "end" }, number(tick, 3)),
    );
  }
  svg.append(s("text", { x: (left + width) / 2, y: height - 6, class: "mp-tick", "text-anchor": "middle" }, "point"));
  const bar = (/** @type {number} */ k, /** @type {number} */ v, /** @type {string} */ look, /** @type {number} */ part) => {
    const [y0, y1] = [py(Math.max(0, v)), py(Math.min(0, v))];
    return s("rect", { x: left + slot * (k + (1 - part) / 2), y: y0, width: slot * part, height: Math.max(0.5, y1 - y0), class: look });
  };
  if (exact) for (let k = 0; k < shown; k++) svg.append(bar(k, exact[k], "mp-bar-exact", 0.9));
  const moving = s("g");
  svg.append(moving);
  const caption = h("figcaption", { class: "mp-legend" }, h("span", { class: "mp-key mp-main", text: "coefficient of each point" }), " ",
    exact ? h("span", { class: "mp-key mp-grey", text: "exact machine" }) : null,
    huge ? h("span", { class: "mp-muted", text: `the coefficients of the exact limit reach ${number(largest(/** @type {number[]} */ (limit)), 2)} and are not drawn` }) : null,
    n > shown ? h("span", { class: "mp-muted", text: ` the first ${shown} of ${n} points` }) : null);

  /** @param {number} frame */
  function show(frame) {
    moving.replaceChildren();
    for (let k = 0; k < shown; k++) moving.append(bar(k, frames[frame][k], "mp-bar", 0.5));
    const others = frames[frame].filter((/** @type {number} */ v) => v !== 0).length;
    svg.setAttribute("aria-label", `Coefficients of the points: ${others} of ${n} are not 0.`);
  }
  return { element: h("figure", { class: "mp-figure" }, /** @type {any} */ (svg), caption), show };
}
