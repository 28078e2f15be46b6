/**
 * <mercer-kernel>: the formula of the kernel, and whether it is positive semidefinite on these points (Mercer's condition).
 */

import { Panel, define, h, kernelKey, number } from "./panel.js";

const MATHML = "http://www.w3.org/1998/Math/MathML";
const ALLOWED = new Set(["math", "mrow", "mi", "mo", "mn", "msup", "msub", "msubsup", "mfrac", "msqrt", "mroot", "mtext",
  "mspace", "mfenced", "munder", "mover", "munderover", "mstyle", "mtable", "mtr", "mtd", "mpadded", "mphantom", "semantics"]);

/**
 * The elements of a formula: MathML and nothing else.
 * @param {string} text
 * @returns {Element | null}
 */
export function formula(text) {
  const found = new DOMParser().parseFromString(text, "application/xml");
  if (found.querySelector("parsererror")) return null;
  const tall = found.querySelector("mfrac, msqrt, munder, munderover") !== null;
  /** @param {Element} source @returns {Element | null} */
  function copy(source) {
    if (!ALLOWED.has(source.localName)) return null;
    const made = document.createElementNS(MATHML, source.localName);
    for (const key of ["display", "mathvariant", "stretchy", "linethickness", "width"]) {
      const value = source.getAttribute(key);
      if (value !== null) made.setAttribute(key, value);
    }
    // fences of one line stay as high as the line
    if (source.localName === "mo" && !tall && "()|[]⟨⟩‖".includes((source.textContent ?? "").trim() || " ")) made.setAttribute("stretchy", "false");
    for (const child of source.childNodes) {
      if (child.nodeType === Node.TEXT_NODE) made.append(child.textContent ?? "");
      else if (child.nodeType === Node.ELEMENT_NODE) {
        const inner = copy(/** @type {Element} */ (child));
        if (inner) made.append(inner);
      }
    }
    return made;
  }
  return copy(found.documentElement);
}

/** The card of the kernel: see the head of this file. */
export class KernelCard extends Panel {
  build() {
    this.setAttribute("role", "group");
    this.setAttribute("aria-label", "Kernel and Mercer's condition");
    this.formula = h("div", { class: "mp-formula" });
    this.text = h("code", { class: "mp-kernel-text" });
    this.light = h("p", { class: "mp-light", role: "status" });
    this.numbers = h("dl", { class: "mp-numbers" });
    this.advice = h("ul", { class: "mp-advice" });
    this.append(this.formula, this.text, this.light, this.numbers, this.errorLine(), this.advice);
  }

  stateChanged() {
    this.load();
  }

  activeChanged() {
    this.load();
  }

  load() {
    this.askOnce("kernel", kernelKey, (answer) => this.show(answer), () => {
      this.light.replaceChildren();
      this.numbers.replaceChildren();
      this.advice.replaceChildren();
    });
  }

  /** @param {any} answer */
  show(answer) {
    const made = answer.formula ? formula(answer.formula) : null;
    this.formula.replaceChildren(made ?? answer.plain ?? "");
    if (answer.plain) this.formula.setAttribute("title", answer.plain);
    this.text.textContent = answer.text ?? this.state.kernel;
    const good = answer.psd === true;
    const known = answer.psd === true || answer.psd === false;
    this.light.className = `mp-light ${good ? "mp-good" : known ? "mp-bad" : "mp-unknown"}`;
    this.light.replaceChildren(
      h("span", { class: "mp-lamp", "aria-hidden": "true", text: good ? "✓" : known ? "✗" : "?" }),
      h("span", { text: good ? "Positive semidefinite on these points: a kernel, and the dual is concave."
        : known ? "Not positive semidefinite on these points: not a kernel here. The dual value bounds nothing."
          : "Not checked: there are no points yet." }));
    this.numbers.replaceChildren();
    const line = (/** @type {string} */ term, /** @type {string} */ value, /** @type {string} */ help) => {
      this.numbers.append(h("dt", { text: term, title: help }), h("dd", { text: value }));
    };
    line("smallest eigenvalue", number(answer.smallest_eigenvalue), "of the Gram matrix of these points; below 0 by more than rounding: not a kernel");
    line("largest eigenvalue", number(answer.largest_eigenvalue), "of the Gram matrix of these points");
    if (answer.near_diagonal !== undefined && answer.near_diagonal !== null) {
      const near = answer.near_diagonal;
      line("Gram matrix near diagonal", typeof near === "boolean" ? (near ? "yes: each point is similar to itself alone" : "no") : number(near),
        "with an almost diagonal Gram matrix the machine learns the points by heart");
    }
    if (Array.isArray(answer.witness) && answer.witness.length) {
      const parts = answer.witness.map((/** @type {any} */ part, /** @type {number} */ k) =>
        Array.isArray(part) ? part : [k, part]);
      parts.sort((/** @type {number[]} */ a, /** @type {number[]} */ b) => Math.abs(b[1]) - Math.abs(a[1]));
      const shown = parts.slice(0, 4).map(([index, weight]) => `z${Number(index) + 1} = ${number(weight, 3)}`).join(", ");
      line("witness", `${shown}${parts.length > 4 ? ", …" : ""}`, "a vector z with z'Kz < 0");
    }
    this.advice.replaceChildren(...(answer.advice ?? []).map((/** @type {string} */ text) => h("li", { text })));
  }
}

define("mercer-kernel", KernelCard);
