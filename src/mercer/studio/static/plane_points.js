/**
 * The points as SVG: a mark per class, a ring for support vectors (one line: free, two lines: at C), selection and focus.
 */
import { setAttributes, svg, tidy } from "./dom.js";
import { classColour, className, markPath } from "./palette.js";

const STATE_TEXT = { zero: "no support vector", free: "free support vector", bound: "support vector at the bound" };

/** @param {number} n number of points @returns {number} radius of a mark in pixels */
export function markSize(n) {
  return n <= 120 ? 6.5 : n <= 400 ? 5.2 : n <= 1000 ? 4.2 : 3.4;
}

/** A sentence about a point for screen readers. @param {any} state @param {any} result @param {number} index @returns {string} */
export function describePoint(state, result, index) {
  const [x, y, label] = state.points[index];
  const parts = [`Point ${index + 1} of ${state.points.length}`];
  if (state.mode === "classify") parts.push(`class ${label}, ${className(label)}`);
  parts.push(`x ${tidy(x, 3)}, ${["classify", "one_class"].includes(state.mode) ? "y" : "target"} ${tidy(y, 3)}`);
  const points = result?.points;
  if (points?.state && points.state.length === state.points.length && state.mode !== "process") {
    parts.push(STATE_TEXT[/** @type {"zero"} */ (points.state[index])] ?? "");
    if (points.alpha) parts.push(`alpha ${tidy(points.alpha[index], 3)}`);
    if (points.slack?.[index] > 1e-6) parts.push(`slack ${tidy(points.slack[index], 3)}`);
  }
  return `${parts.filter(Boolean).join(", ")}.`;
}

/**
 * How each point is marked. Almost every point of a quantile regression is at a bound: only those on a curve are marked.
 *
 * @param {any} state @param {any} points @returns {(index: number) => string} "zero", "free", "bound" or "plain"
 */
function statusOf(state, points) {
  if (!state.show.support || points?.state?.length !== state.points.length || state.mode === "process") return () => "plain";
  if (state.mode === "quantiles") return (index) => (points.state[index] === "free" ? "free" : "plain");
  return (index) => points.state[index];
}

/** The SVG layer; one group per point, reused between drawings. */
export class PointLayer {
  /** @param {SVGElement} root a <g> */
  constructor(root) {
    this.root = root;
    /** @type {{group: any, mark: any, ring: any, outer: any}[]} */ this.items = [];
  }

  /**
   * @param {any} state
   * @param {any} points of a result, or null
   * @param {(x: number, y: number) => [number, number]} pixels
   * @param {{hover: number | null, other: number | null, marks: number[], wrong?: boolean[]}} marked
   */
  draw(state, points, pixels, marked) {
    const size = markSize(state.points.length);
    while (this.items.length > state.points.length) this.items.pop()?.group.remove();
    const status = statusOf(state, points);
    state.points.forEach((/** @type {number[]} */ [x, y, label], /** @type {number} */ index) => {
      const item = (this.items[index] ??= this.create(index));
      const [px, py] = pixels(x, y);
      setAttributes(item.group, {
        transform: `translate(${px.toFixed(2)},${py.toFixed(2)})`,
        class: `point ${status(index)}${state.selected === index ? " selected" : ""}${marked.hover === index ? " hover" : ""}${
          marked.other === index || marked.marks.includes(index) ? " marked" : ""
        }`,
      });
      const alone = state.mode === "classify" ? label : 0;
      setAttributes(item.mark, { d: markPath(alone, size), fill: classColour(alone) });
      setAttributes(item.ring, { r: size + 3.2 });
      setAttributes(item.outer, { r: size + 6.6 });
    });
  }

  /** Move one point alone. @param {number} index @param {number[]} place in pixels @returns {boolean} whether it was drawn before */
  move(index, [px, py]) {
    const item = this.items[index];
    if (item) setAttributes(item.group, { transform: `translate(${px.toFixed(2)},${py.toFixed(2)})` });
    return Boolean(item);
  }

  /** @param {number} index */
  create(index) {
    const mark = svg("path", { class: "mark" });
    const ring = svg("circle", { class: "ring" });
    const outer = svg("circle", { class: "outer" });
    const group = svg("g", { "data-index": index }, outer, ring, mark);
    this.root.append(group);
    return { group, mark, ring, outer };
  }

  /** The points on a canvas, for a picture. @param {CanvasRenderingContext2D} context @param {any} state @param {any} points @param {(x: number, y: number) => [number, number]} pixels @param {{ink: string, paper: string}} look */
  paint(context, state, points, pixels, look) {
    const size = markSize(state.points.length);
    const status = statusOf(state, points);
    state.points.forEach((/** @type {number[]} */ [x, y, label], /** @type {number} */ index) => {
      const [px, py] = pixels(x, y);
      const alone = state.mode === "classify" ? label : 0;
      context.save();
      context.translate(px, py);
      context.lineWidth = 1.6;
      context.strokeStyle = look.ink;
      for (const [r, drawn] of [[size + 3.2, status(index) === "free" || status(index) === "bound"], [size + 6.6, status(index) === "bound"]])
        if (drawn) {
          context.beginPath();
          context.arc(0, 0, Number(r), 0, 2 * Math.PI);
          context.stroke();
        }
      const mark = new Path2D(markPath(alone, size));
      context.globalAlpha = status(index) === "zero" ? 0.6 : 1;
      context.fillStyle = classColour(alone);
      context.fill(mark);
      context.globalAlpha = 1;
      context.lineWidth = 1.2;
      context.strokeStyle = look.paper;
      context.stroke(mark);
      context.restore();
    });
  }

  /** The points as SVG text, for a file. @param {any} state @param {any} points @param {(x: number, y: number) => [number, number]} pixels @param {{ink: string, paper: string}} look */
  write(state, points, pixels, look) {
    const size = markSize(state.points.length);
    const status = statusOf(state, points);
    return state.points
      .map((/** @type {number[]} */ [x, y, label], /** @type {number} */ index) => {
        const [px, py] = pixels(x, y);
        const alone = state.mode === "classify" ? label : 0;
        const rings = status(index) === "free" || status(index) === "bound" ? [size + 3.2] : [];
        if (status(index) === "bound") rings.push(size + 6.6);
        return (
          `<g transform="translate(${px.toFixed(2)},${py.toFixed(2)})">` +
          rings.map((r) => `<circle r="${r}" fill="none" stroke="${look.ink}" stroke-width="1.6"/>`).join("") +
          `<path d="${markPath(alone, size)}" fill="${classColour(alone)}" stroke="${look.paper}" stroke-width="1.2"${status(index) === "zero" ? ' fill-opacity="0.6"' : ""}/></g>`
        );
      })
      .join("\n");
  }
}
