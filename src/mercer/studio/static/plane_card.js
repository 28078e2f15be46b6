/**
 * The card of a point: α, slack, f(x), its KKT condition and the answer of leave-one-out.
 */
import { html, tidy } from "./dom.js";
import { className } from "./palette.js";

const STATES = { zero: "α = 0: the machine does not need it", free: "0 < α < C: exactly on its margin", bound: "α = C: inside its margin or wrong" };
const LINE_STATES = { zero: "α = 0: inside the tube", free: "free: exactly on the edge of the tube", bound: "at the bound: outside the tube" };

export class PointCard {
  constructor() {
    this.element = html("div", { class: "point-card", role: "note", hidden: true });
    /** @type {number | null} */ this.index = null;
    /** @type {any} */ this.answer = null;
    /** @type {number | undefined} right, left, above or below */ this.side = undefined;
  }

  hide() {
    this.side = undefined;
    this.index = null;
    this.answer = null;
    this.element.hidden = true;
  }

  /**
   * @param {number} index @param {any} state @param {any} result
   * @param {any} answer of `point`, null while it is not known
   * @param {number | null} [step] of a procedure, if `result` is its machine, which need not satisfy any condition
   */
  fill(index, state, result, answer, step = null) {
    if (index !== this.index) this.side = undefined;
    this.index = index;
    const [x, y, label] = state.points[index];
    const plane = state.mode === "classify" || state.mode === "one_class";
    const points = result?.points?.f?.length === state.points.length ? result.points : null;
    /** @type {(string | null)[][]} */ const rows = [];
    const status = step === null && points?.state?.[index];
    if (points && state.mode !== "process") {
      rows.push(["α", tidy(answer?.alpha ?? points.alpha?.[index])]);
      rows.push(["slack ξ", tidy(answer?.slack ?? points.slack?.[index])]);
    }
    if (points) rows.push([state.mode === "process" ? "mean" : "f(x)", tidy(answer?.f ?? points.f?.[index])]);
    const title = state.mode === "classify" ? `Point ${index + 1} · class ${label}` : `Point ${index + 1}`;
    const after = step === null ? "" : html("p", { class: "card-line", text: `after step ${step}` });
    const names = plane && state.mode === "classify" ? STATES : LINE_STATES;
    this.element.replaceChildren(
      html("p", { class: "card-title" }, html("span", { class: `dot class-${state.mode === "classify" ? label : 0}`, "aria-hidden": "true" }), html("strong", { text: title, title: className(label) }), html("span", { class: "place", text: `(${tidy(x, 3)}, ${tidy(y, 3)})` })),
      html("dl", { class: "card-numbers" }, ...rows.flatMap(([name, value]) => [html("div", {}, html("dt", { text: name }), html("dd", { text: value }))])),
      after,
      status && state.mode !== "one_class" && state.mode !== "process" && !answer?.kkt ? html("p", { class: "card-line", text: names[/** @type {"zero"} */ (status)] }) : "",
      answer?.kkt ? html("p", { class: "card-line", text: String(answer.kkt) }) : "",
      this.leaveOneOut(answer),
    );
    this.element.hidden = false;
  }

  /** @param {any} answer */
  leaveOneOut(answer) {
    const held = answer?.leave_one_out;
    if (!held) return "";
    const text = held.text ?? `Without it: f(x) = ${tidy(held.f)}${held.flips ? ", its label flips" : ", its label stays"}.`;
    return html("p", { class: `card-line${held.flips ? " flips" : ""}` }, text);
  }

  /**
   * Right, left, above or below the point, inside the plane, where the card hides the fewest points.
   *
   * @param {number[]} at pixels of the point @param {number} width of the plane @param {number} height @param {number[][]} marks pixels of all points
   */
  place(at, width, height, marks) {
    const card = this.element;
    const [w, h] = [card.offsetWidth, card.offsetHeight];
    const [x, y] = at;
    const clamp = (/** @type {number} */ value, /** @type {number} */ most) => Math.max(6, Math.min(value, most - 6));
    const places = [[x + 24, y - h / 2], [x - 24 - w, y - h / 2], [x - w / 2, y - h - 24], [x - w / 2, y + 24]].map(([left, top]) => [clamp(left, width - w), clamp(top, height - h)]);
    const hidden = (/** @type {number[]} */ [left, top]) => {
      const covers = (/** @type {number[]} */ [px, py]) => px > left - 9 && px < left + w + 9 && py > top - 9 && py < top + h + 9;
      return marks.filter(covers).length + (covers(at) ? 1000 : 0);
    };
    // the card stays on its side unless another one is clearly better: no jumping while a point is dragged
    const counts = places.map(hidden);
    const best = counts.indexOf(Math.min(...counts));
    if (this.side === undefined || counts[best] < counts[this.side] - 2) this.side = best;
    [card.style.left, card.style.top] = places[this.side].map((value) => `${value}px`);
  }
}
