/**
 * <mercer-certificate>: the proof that the machine is optimal. Primal and dual value as two bars that meet, the gap between
 * them, and the numbers of the machine, each with an explanation. In step mode the bars are those of the step.
 *
 * Properties in: state, result, frame (the machine of a step), holding (the scale stays). Events out: ask, for the leave-one-out error once the machine has not changed for a while.
 */
import { define, html, send, tidy } from "./dom.js";

const HELP = {
  primal: "Value of the problem that the machine minimises: ½|w|² + C Σξ. Every machine has a primal value; the best machine has the smallest.",
  dual: "Value of the dual problem at these α. No machine has a primal value below it.",
  gap: "Primal minus dual value: no machine is better than this one by more than the gap.",
};
const STATUS = {
  optimal: ["✓", "Optimal", "good"],
  separable: ["✓", "Optimal, hard margin", "good"],
  limit: ["!", "Stopped early", "warn"],
  not_separable: ["✗", "Not separable", "warn"],
  waiting: ["…", "Waiting for points", "quiet"],
};
const FAILED = "– Of the machine before";
/** below the bars in step mode */
const STEPS = {
  dual: "Primal and dual value of this step: they meet at the optimum. The numbers below are those of the exact machine of the controls.",
  none: "This procedure has no dual value. The numbers below are those of the exact machine of the controls.",
};
// the track of the bars ends at this multiple of the value, and gets a new end if the value leaves its middle part
const ROOM = 1.6;
const PARTS = [0.15, 0.95];
const REST = 500; // milliseconds without a new machine
// an indefinite kernel has no dual value: the machine may be a good one, but nothing proves it
const UNCERTIFIED = ["!", "Not certified", "warn"];

class MercerCertificate extends HTMLElement {
  constructor() {
    super();
    /** @type {any} */ this._result = null;
    /** @type {any} */ this._state = null;
    /** @type {any} */ this._frame = null;
    this.failed = false;
    /** the user holds a point or a slider: the scale of the bars stays */ this.holding = false;
    /** @type {[number, number] | null} values at the ends of the bars' track */ this.range = null;
    /** @type {Set<string>} names of numbers whose explanation is open */ this.open = new Set();
    this.boundsOpen = false;
    this.key = "";
    this.heldOut = html("p", { class: "hint", role: "status" });
  }

  connectedCallback() {
    if (this.built) return;
    this.built = true;
    this.classList.add("card");
    this.badge = html("span", { class: "badge" });
    this.time = html("span", { class: "fit-time" });
    this.dualBar = html("div", { class: "bar dual" });
    this.primalBar = html("div", { class: "bar primal" });
    this.bars = html("div", { class: "bars", role: "img" }, this.dualBar, this.primalBar);
    this.values = html("div", { class: "bar-values" });
    this.why = html("p", { class: "hint", hidden: true });
    this.numbers = html("div", { class: "numbers" });
    this.live = html("p", { class: "visually-hidden", role: "status", "aria-live": "polite" });
    this.append(html("div", { class: "certificate-head" }, html("h2", { text: "Certificate" }), this.badge, this.time), this.bars, this.values, this.why, this.numbers, this.live);
    this.update();
  }

  set state(/** @type {any} */ state) {
    this._state = state;
  }

  set result(/** @type {any} */ result) {
    this._result = result;
    this.failed = false;
    if (this.built) this.update();
  }

  /** @param {any} frame {step, values} or null */
  set frame(frame) {
    if (frame === this._frame) return;
    this._frame = frame;
    if (this.built) this.update();
  }

  /** The machine of the present state could not be fitted: what is shown belongs to an earlier one. */
  fail() {
    this.failed = true;
    if (this.built) this.update();
  }

  update() {
    const result = this._result;
    const certificate = result?.certificate ?? null;
    const invalid = certificate?.valid === false;
    const status = STATUS[/** @type {"optimal"} */ (result?.status)] ?? ["…", "No machine yet", "quiet"];
    const [icon, title, kind] = invalid && status === STATUS.optimal ? UNCERTIFIED : status;
    const step = this._frame;
    this.classList.toggle("outdated", this.failed);
    this.badge.textContent = step ? `Step ${step.step}` : this.failed ? FAILED : `${icon} ${title}`;
    this.badge.className = `badge ${step || this.failed ? "quiet" : kind}`;
    this.time.textContent = result?.seconds ? `${tidy(1000 * result.seconds, 2)} ms` : "";
    this.time.title = "Time of this answer: fit, certificate and picture";
    this.updateBars(step ? step.values : certificate);
    const why = step ? STEPS[step.values ? "dual" : "none"] : (certificate ? invalid && certificate.why : result?.why) || "";
    this.why.textContent = why;
    this.why.hidden = !why;
    this.updateNumbers(result?.numbers ?? []);
    clearTimeout(this.liveTimer);
    this.liveTimer = setTimeout(() => this.say(this.failed ? FAILED : title), 900);
    this.leaveOneOut();
  }

  /** Once the machine has not changed for a while, ask for its leave-one-out error, if the part of the card that shows it is open. */
  leaveOneOut() {
    clearTimeout(this.heldOutTimer);
    const result = this._result;
    if (result !== this.heldOutFor) this.heldOut.textContent = "Leave-one-out error: …";
    if (!this.boundsOpen || !result?.certificate || result === this.heldOutFor) return;
    this.heldOutTimer = setTimeout(async () => {
      const state = { ...this._state, procedure: null, lesson: null, selected: null };
      try {
        const answer = await new Promise((resolve, reject) => send(this, "ask", { name: "leave_one_out", payload: { state }, resolve, reject }));
        if (this._result !== result) return;
        const n = state.points.length;
        const share = `${tidy(Math.round(answer.left_out_error * n), 4)} of ${n} points (${tidy(100 * answer.left_out_error, 3)} %)`;
        this.heldOut.textContent = `Leave-one-out error: ${answer.exact ? "" : "about "}${share} are wrong when they are left out.`;
        this.heldOutFor = result;
      } catch (error) {
        if (/** @type {Error} */ (error).name !== "AbortError") this.heldOut.textContent = /** @type {Error} */ (error).message;
      }
    }, REST);
  }

  /** @param {any} certificate */
  updateBars(certificate) {
    this.bars.hidden = this.values.hidden = !certificate;
    if (!certificate) return;
    const { primal, dual, gap = primal - dual, relative_gap: relative = 0 } = certificate;
    const [low, high] = this.scale(certificate);
    const share = (/** @type {number} */ value) => Math.max(0.01, Math.min(0.99, (value - low) / (high - low)));
    this.dualBar.style.width = `${100 * share(dual)}%`;
    this.primalBar.style.width = `${100 * (1 - share(primal))}%`;
    this.bars.setAttribute("aria-label", `Primal ${tidy(primal, 6)}, dual ${tidy(dual, 6)}, gap ${tidy(gap, 3)}`);
    const rows = /** @type {string[][]} */ ([
      ["dual", "Dual", tidy(dual, 7)],
      ["gap", "Gap", tidy(Math.max(gap, 0), 2), relative > 0 ? `relative ${tidy(relative, 2)}` : ""],
      ["primal", "Primal", tidy(primal, 7)],
    ]);
    this.values.replaceChildren(...rows.map(([name, title, text, more]) => html("div", { class: `bar-value ${name}`, title: HELP[/** @type {"gap"} */ (name)] }, html("span", { class: "bar-name", text: title }), html("span", { class: "bar-number", text }), more ? html("span", { class: "bar-more", text: more }) : null)));
  }

  /**
   * The values at the ends of the track. A run of steps has one for all its steps; else it has 0 at one end and stays while
   * the value lies in its middle part, so that the bars move with the value.
   *
   * @param {{primal: number, dual: number, range?: number[]}} certificate @returns {[number, number]}
   */
  scale({ primal, dual, range }) {
    if (range) {
      const room = 0.05 * (range[1] - range[0]) || 1;
      return [Math.min(0, range[0]), range[1] + room];
    }
    const end = this.range && (dual < 0 ? this.range[0] : this.range[1]);
    const part = end ? Math.max(primal / end, dual / end) : 0;
    if (!this.range || (!this.holding && !(part >= PARTS[0] && part <= PARTS[1]))) {
      const largest = ROOM * Math.max(Math.abs(primal), Math.abs(dual), 1e-12);
      this.range = dual < 0 ? [-largest, primal > 0 ? largest : 0] : [0, largest];
    }
    return this.range;
  }

  /** @param {{name: string, value: any, text?: string, help?: string}[]} numbers */
  updateNumbers(numbers) {
    const names = numbers.map(({ name }) => name).join("|");
    if (names !== this.key) {
      this.key = names;
      this.buildNumbers(numbers);
    }
    numbers.forEach(({ name, value, text }) => {
      const cell = this.cells?.get(name);
      const shown = text ?? tidy(value);
      if (!cell || cell.title === shown) return;
      cell.title = shown;
      const parts = /^(.*) \((.*)\)$/.exec(shown);
      if (parts) cell.replaceChildren(`${parts[1]} `, html("span", { class: "number-more", text: parts[2] }));
      else cell.textContent = shown;
    });
  }

  /** @param {{name: string, help?: string}[]} numbers */
  buildNumbers(numbers) {
    /** @type {Map<string, HTMLElement>} */ this.cells = new Map();
    const bounds = numbers.filter(({ name }) => name.startsWith("bound"));
    const plain = numbers.filter(({ name }) => !name.startsWith("bound"));
    const parts = plain.map((number) => this.numberRow(number));
    if (bounds.length) {
      const details = html("details", { class: "bounds" }, html("summary", { text: `Error of new points: leave-one-out and ${bounds.length} bounds` }), this.heldOut, ...bounds.map((number) => this.numberRow(number)));
      details.open = this.boundsOpen;
      details.addEventListener("toggle", () => {
        this.boundsOpen = details.open;
        this.leaveOneOut();
      });
      parts.push(details);
    }
    this.numbers.replaceChildren(...parts);
  }

  /** A name and a value; pressing it opens the explanation. @param {{name: string, help?: string}} number */
  numberRow({ name, help }) {
    const value = html("span", { class: "number-value" });
    /** @type {Map<string, HTMLElement>} */ (this.cells).set(name, value);
    const text = html("p", { class: "number-help", text: help ?? "", hidden: !this.open.has(name) });
    const button = html("button", { type: "button", class: "number", title: help ?? "", "aria-expanded": String(this.open.has(name)) }, html("span", { class: "number-name", text: name.replace(/^bound: /, "") }), value);
    button.addEventListener("click", () => {
      text.hidden = !text.hidden;
      button.setAttribute("aria-expanded", String(!text.hidden));
      if (text.hidden) this.open.delete(name);
      else this.open.add(name);
    });
    return html("div", { class: "number-row" }, button, text);
  }

  /** One sentence for screen readers, once the machine has settled. @param {string} title */
  say(title) {
    const certificate = this._result?.certificate;
    this.live.textContent = certificate ? `${title}. Gap ${tidy(Math.max(certificate.gap, 0), 2)}, primal value ${tidy(certificate.primal, 4)}.` : title;
  }
}

define("mercer-certificate", MercerCertificate);
