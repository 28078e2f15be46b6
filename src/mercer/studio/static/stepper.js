/**
 * <mercer-stepper>: procedures step by step, with the exact optimum in grey.
 *
 * SMO, coordinate ascent, Pegasos, the perceptron and kernel LMS. The back end computes all steps at once (`steps`); the
 * panel moves over them and asks for the machine of a step (`frame`), which the page draws on the plane.
 */

import { lineChart } from "./charts.js";
import { Panel, define, h, lessMotion, machineKey, name, number, s } from "./panel.js";
import { barView, contourView, smoBox, smoWords, subscript, weightView } from "./step_views.js";

/** @type {Record<string, {title: string, about: string, modes: string[]}>} */
export const PROCEDURES = {
  smo: {
    title: "SMO, pair by pair",
    about: "Two coefficients move together along αᵢyᵢ + αⱼyⱼ = const, inside the box [0, C]². [M5], [CS229] 6",
    modes: ["classify"],
  },
  coordinate: {
    title: "Coordinate ascent",
    about: "One coefficient at a time goes to the maximum of the dual, or to the edge of the box; without a bias. [M5]",
    modes: ["classify"],
  },
  pegasos: {
    title: "Pegasos",
    about: "Stochastic subgradient descent: one random point a step, step size 1/(λt). [SSBD] 15.5, 16.3",
    modes: ["classify"],
  },
  perceptron: {
    title: "Perceptron",
    about: "A point on the wrong side is added to w; at most (ρ/γ)² updates if the classes are separable. [SSBD] Rem. 15.1",
    modes: ["classify"],
  },
  lms: {
    title: "Kernel LMS",
    about: "Gradient descent on the squared errors: β := β + α(y − Kβ). [CS229] (5.7)–(5.12)",
    modes: ["classify", "regress"],
  },
};

const RULES = [
  ["round-robin", "in turn (round-robin)"],
  ["random", "at random"],
  ["greedy", "largest improvement"],
];
const SPEEDS = [1, 2, 5, 10, 30];
/** @type {Record<string, string>} shapes of the buttons, in a square of 16 */
const SHAPES = {
  first: "M3 3h2v10h-2zM13 3v10l-7-5z",
  back: "M12 3v10l-8-5z",
  play: "M4 2.5v11l9-5.5z",
  pause: "M4 3h3v10h-3zM9 3h3v10h-3z",
  next: "M4 3v10l8-5z",
  last: "M11 3h2v10h-2zM3 3v10l7-5z",
};
const GRID = [72, 72];
// an axis from the smallest to the largest value that spans more than this factor is logarithmic
const WIDE = 30;

/** @param {string} shape */
function icon(shape) {
  const picture = s("svg", { viewBox: "0 0 16 16", class: "mp-icon", "aria-hidden": "true" });
  picture.append(s("path", { d: SHAPES[shape] }));
  return picture;
}

/** The step mode: see the head of this file. */
export class Stepper extends Panel {
  constructor() {
    super();
    /** @type {any} */ this.answer = null;
    this.position = 0;
    this.playing = false;
    /** @type {any} */ this.views = [];
    this.key = "";
    /** @type {any} the procedure of the answer */ this.asked = null;
    /** @type {[number, number] | null} */ this.pair = null;
    this.seed = 0;
    /** @type {number[]} points that the present step moved */ this.marks = [];
    /** the part of the plane that was asked for */ this.seen = "";
    /** @type {any} the exact machine of the run, drawn in grey */ this.grey = null;
    /** the run and the part of the plane of the grey machine */ this.greyKey = "";
    /** @type {ReturnType<typeof setTimeout> | undefined} */ this.clock = undefined;
  }

  build() {
    this.setAttribute("role", "group");
    this.setAttribute("aria-label", "Procedures step by step");
    this.choice = /** @type {HTMLSelectElement} */ (h("select", { "aria-label": "Procedure", onchange: () => this.choose() },
      h("option", { value: "", text: "choose a procedure …" }),
      ...Object.entries(PROCEDURES).map(([value, { title }]) => h("option", { value, text: title }))));
    this.rule = /** @type {HTMLSelectElement} */ (h("select", { onchange: () => this.choose() },
      ...RULES.map(([value, text]) => h("option", { value, text }))));
    this.ruleLabel = h("label", { class: "mp-field" }, "Next coordinate ", this.rule);
    const place = (/** @type {number} */ k) => /** @type {HTMLInputElement} */ (
      h("input", { type: "number", min: 1, step: 1, class: "mp-small", "aria-label": `Point of the ${k ? "vertical" : "horizontal"} axis`,
        onchange: () => this.choosePair() }));
    this.pairInputs = [place(0), place(1)];
    this.pairLabel = h("span", { class: "mp-field" }, "Axes: α of points ", this.pairInputs[0], " and ", this.pairInputs[1]);
    this.again = h("button", { type: "button", onclick: () => this.reseed(), text: "other random order" });
    this.about = h("p", { class: "mp-muted mp-about" });
    this.slider = /** @type {HTMLInputElement} */ (h("input", { type: "range", min: 0, max: 0, value: 0, class: "mp-wide",
      "aria-label": "Step", oninput: () => this.moveTo(Number(this.slider.value), true) }));
    this.playButton = h("button", { type: "button", class: "mp-play", onclick: () => this.play(!this.playing) });
    this.speed = /** @type {HTMLSelectElement} */ (h("select", { "aria-label": "Speed" },
      ...SPEEDS.map((value) => h("option", { value, text: `${value} / s` }))));
    this.speed.value = lessMotion() ? "1" : "5";
    this.count = h("output", { class: "mp-count" });
    const button = (/** @type {string} */ label, /** @type {string} */ shape, /** @type {() => void} */ onclick) =>
      h("button", { type: "button", title: label, "aria-label": label, onclick }, /** @type {any} */ (icon(shape)));
    this.bar = h("div", { class: "mp-transport", role: "group", "aria-label": "Move over the steps" },
      button("To the start", "first", () => this.jump(0)),
      button("One step back", "back", () => this.jump(this.position - 1)),
      this.playButton,
      button("One step forward", "next", () => this.jump(this.position + 1)),
      button("To the end", "last", () => this.jump(Infinity)),
      this.speed, this.count);
    this.words = h("p", { class: "mp-words", role: "status" });
    this.pictures = h("div", { class: "mp-pictures" });
    this.note = h("p", { class: "mp-muted" });
    this.close = h("button", { type: "button", onclick: () => this.leave(), text: "leave", title: "back to the exact machine" });
    this.body = h("div", { hidden: true }, this.bar, this.slider, this.words, this.pictures, this.note);
    this.append(
      h("div", { class: "mp-row" }, h("label", { class: "mp-field" }, "Procedure ", this.choice), this.ruleLabel, this.pairLabel,
        this.again, this.close),
      this.about, this.errorLine(), this.body);
    this.addEventListener("keydown", (event) => this.keyed(/** @type {KeyboardEvent} */ (event)));
    this.label();
  }

  /** @param {any} [before] */
  stateChanged(before = null) {
    const procedure = this.state?.procedure ?? null;
    this.choice.value = procedure?.name ?? "";
    if (procedure?.rule) this.rule.value = procedure.rule;
    this.label();
    if (!procedure) {
      if (this.answer) this.clear();
      return;
    }
    const key = this.keyOf();
    if (key !== this.key) {
      // steps of another machine: they are inactive until the new steps arrive
      this.play(false);
      this.body.inert = true;
      this.wanted = procedure.step ?? 0;
      if (this.active) this.later(() => this.load());
    } else if (this.body.inert) {
      // the steps of this machine have been asked for
      this.wanted = procedure.step ?? 0;
      if (this.active) this.later(() => this.load());
    } else if (this.answer && procedure.step !== before?.procedure?.step && procedure.step !== this.stepNumber()) {
      // undo, or a state that was opened
      this.play(false);
      this.moveTo(this.frameOf(procedure.step ?? 0), false);
    }
  }

  activeChanged() {
    if (this.active) {
      this.stateChanged();
      if (this.answer && this.state?.procedure && !this.body.inert) this.moveTo(this.position, false);
    } else {
      this.play(false);
      if (this.answer) this.emit("frame", { answer: null });
    }
  }

  /** A page of another size shows another part of the plane: the machine of the step is asked for again. */
  resultChanged() {
    const view = this.result?.grid?.view;
    if (!this.active || !this.answer || !view || String(view) === this.seen || this.body.inert) return;
    this.askFrame();
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    clearTimeout(this.clock);
  }

  /** Show the controls that the procedure has. */
  label() {
    const chosen = this.choice.value;
    this.ruleLabel.hidden = chosen !== "coordinate";
    this.pairLabel.hidden = chosen !== "coordinate";
    this.again.hidden = !(chosen === "pegasos" || chosen === "perceptron" || (chosen === "coordinate" && this.rule.value === "random"));
    this.close.hidden = !chosen;
    const mode = this.state?.mode ?? "classify";
    for (const option of this.choice.options) {
      option.disabled = option.value !== "" && !PROCEDURES[option.value].modes.includes(mode);
    }
    this.about.textContent = chosen
      ? PROCEDURES[chosen].about
      : "Watch a procedure find the machine: choose one. The exact optimum stays visible in grey.";
    this.playButton.replaceChildren(/** @type {any} */ (icon(this.playing ? "pause" : "play")), this.playing ? " pause" : " play");
    this.playButton.setAttribute("aria-pressed", String(this.playing));
  }

  /** The values that the steps depend on. */
  keyOf() {
    return machineKey(this.state) + JSON.stringify([this.state.procedure?.name, this.ruleOf(), this.pair, this.seed]);
  }

  /** The rule of coordinate ascent; null for the others. */
  ruleOf() {
    return this.choice.value === "coordinate" ? this.rule.value : null;
  }

  /** The procedure in a question to the back end. */
  procedure() {
    /** @type {any} */
    const found = { name: this.choice.value };
    if (found.name === "coordinate") {
      found.rule = this.rule.value;
      const pair = this.pair ?? this.freePair();
      if (pair) found.coordinates = pair;
    }
    if (["coordinate", "pegasos", "perceptron"].includes(found.name)) found.seed = this.seed;
    if (found.name === "pegasos" || found.name === "perceptron") {
      // the back end shows at most 300 steps; up to 60 points it shows every one
      found.passes = Math.max(5, Math.min(20, Math.floor(299 / Math.max(1, this.state.points.length))));
    }
    return found;
  }

  /** Two points on their margin, whose coefficients end inside of the box: the clearest axes. @returns {[number, number] | null} */
  freePair() {
    const points = this.result?.points;
    const n = this.state.points.length;
    if (!points || points.state?.length !== n) return null;
    const order = [...Array(n).keys()].filter((k) => points.state[k] !== "zero");
    order.sort((a, b) => Number(points.state[b] === "free") - Number(points.state[a] === "free") || points.alpha[b] - points.alpha[a]);
    return order.length < 2 ? null : [order[0], order[1]];
  }

  choose() {
    this.play(false);
    this.fail(null);
    const chosen = this.choice.value;
    if (!chosen) {
      this.leave();
      return;
    }
    const rule = this.ruleOf();
    this.emit("patch", { patch: { procedure: { name: chosen, rule, step: 0 } }, label: `procedure: ${PROCEDURES[chosen].title}` });
  }

  choosePair() {
    const n = this.state?.points.length ?? 0;
    const [i, j] = this.pairInputs.map((input) => Number(input.value) - 1);
    if (!Number.isInteger(i) || !Number.isInteger(j) || i === j || i < 0 || j < 0 || i >= n || j >= n) {
      this.fail(new Error(`Choose two different points between 1 and ${n}.`));
      return;
    }
    this.fail(null);
    this.pair = [i, j];
    this.stateChanged();
  }

  reseed() {
    this.seed += 1;
    this.stateChanged();
  }

  leave() {
    this.emit("patch", { patch: { procedure: null }, label: "the exact machine" });
    this.clear();
  }

  clear() {
    this.play(false);
    this.answer = null;
    this.key = "";
    this.pair = null;
    this.body.hidden = true;
    this.fail(null);
    this.emit("frame", { answer: null });
  }

  /** Ask for the steps of the present machine. */
  load() {
    if (!this.state?.procedure) return;
    this.key = this.keyOf();
    const procedure = this.procedure();
    this.askNewest("steps", { state: this.state, procedure }, (answer) => {
      this.fail(null);
      this.asked = procedure;
      this.answer = answer;
      this.draw();
      const start = this.frameOf(this.wanted ?? 0);
      this.moveTo(Math.min(start, answer.frames.length - 1), false);
    }, (error) => {
      this.answer = null;
      this.body.hidden = true;
      this.body.inert = false;
      this.emit("frame", { answer: null });
      this.fail(error);
    });
  }

  /** Create the pictures of an answer. */
  draw() {
    const { answer } = this;
    this.body.hidden = false;
    this.body.inert = false;
    this.slider.max = String(answer.frames.length - 1);
    this.views = [];
    const chosen = this.choice.value;
    if (chosen === "smo") this.views.push(smoBox(answer));
    else if (chosen === "coordinate" && answer.contours) {
      this.views.push(contourView(answer));
      answer.contours.coordinates.forEach((/** @type {number} */ index, /** @type {number} */ k) => {
        this.pairInputs[k].value = name(index);
        this.pairInputs[k].max = String(this.state.points.length);
      });
    } else if (answer.frames.every((/** @type {any} */ frame) => frame.w)) this.views.push(weightView(answer));
    else if (answer.frames[0]?.alpha) this.views.push(barView(answer));
    this.chart = this.measureChart();
    this.pictures.replaceChildren(...this.views.map((/** @type {any} */ view) => view.element), this.chart.element);
    this.note.textContent = answer.note ?? "";
  }

  /** The chart of the measure, or of the updates of the perceptron with their bound. */
  measureChart() {
    const { answer } = this;
    const steps = answer.frame_steps;
    // entry k of a column belongs to step k + 1; before the first step there is none
    const column = (/** @type {string} */ key) =>
      steps.map((/** @type {number} */ step) => (step === 0 ? null : answer.columns[key]?.[step - 1] ?? null));
    const measured = column(answer.measure);
    /** @type {import("./charts.js").Level[]} */
    const levels = [];
    let title = `${answer.measure} over the steps of ${answer.method}`;
    if (this.choice.value === "perceptron") {
      title = "updates of the perceptron";
      if (answer.bound !== null && answer.bound !== undefined) {
        levels.push({ value: answer.bound, label: `at most (ρ/γ)² = ${number(answer.bound)}` });
      }
      measured[0] = steps[0] === 0 ? 0 : measured[0];
    } else if (typeof answer.optimum === "number") {
      levels.push({ value: answer.optimum, label: `exact optimum ${number(answer.optimum)}` });
    }
    const positive = [...measured, ...levels.map((level) => level.value)].filter((v) => typeof v === "number" && v !== 0);
    const falls = measured.find((v) => v !== null) >= Math.min(...positive);
    const log = positive.length > 1 && this.choice.value !== "perceptron" && positive.every((v) => v > 0) && falls
      && answer.measure !== "dual" && Math.max(...positive) > WIDE * Math.min(...positive);
    // on a logarithmic axis an optimum of almost 0 would leave no room for the steps: it is given in words
    const floor = Math.min(...measured.filter((v) => v !== null && v > 0));
    const below = log ? levels.filter((level) => level.value < 1e-2 * floor) : [];
    const drawn = levels.filter((level) => !below.includes(level));
    const label = this.choice.value === "perceptron" ? "updates so far" : answer.measure;
    return lineChart({ title, x: steps, series: [{ label, values: measured, look: "mp-main" }], levels: drawn, log,
      remark: below.map((level) => `${level.label}, below the chart`).join(" ") });
  }

  /** The number of the present step. */
  stepNumber() {
    return this.answer?.frame_steps[this.position] ?? 0;
  }

  /** The frame of a step: the last one that is not after it. @param {number} step */
  frameOf(step) {
    const steps = this.answer?.frame_steps ?? [0];
    let found = 0;
    while (found + 1 < steps.length && steps[found + 1] <= step) found += 1;
    return found;
  }

  /** Move by hand: playing ends. @param {number} position */
  jump(position) {
    this.play(false);
    this.moveTo(position, true);
  }

  /** @param {number} position @param {boolean} tell whether to write the step into the state */
  moveTo(position, tell) {
    if (!this.answer) return;
    const last = this.answer.frames.length - 1;
    this.position = Math.max(0, Math.min(last, position));
    this.slider.value = String(this.position);
    const step = this.stepNumber();
    const steps = this.answer.frame_steps;
    this.slider.setAttribute("aria-valuetext", `step ${step} of ${steps[last]}`);
    this.count.textContent = `step ${step} of ${steps[last]}`;
    for (const view of this.views) view.show(this.position);
    this.chart.moveTo(this.position);
    this.words.setAttribute("aria-live", this.playing ? "off" : "polite");
    const { text, marks } = this.describe(step);
    this.words.textContent = text;
    if (tell && !this.playing) this.remember();
    this.marks = marks;
    if (this.active) this.askFrame();
  }

  /** Ask for the machine of the present step, on the part of the plane that the last fit had. */
  async askFrame() {
    const step = this.stepNumber();
    const shown = this.result?.grid;
    const grid = shown?.rows ? [shown.columns, shown.rows] : shown?.columns ? [shown.columns, 2] : GRID;
    const view = shown?.view ?? this.state.view;
    this.seen = String(view);
    const payload = { state: { ...this.state, view }, procedure: this.asked, step, grid };
    if (!(await this.askGrey(payload)) || !this.answer) return;
    const values = this.values();
    this.askNewest("frame", payload, (answer) => this.emit("frame", { answer, grey: this.grey, step, marks: this.marks, values }));
  }

  /** The exact machine of the run, once for each part of the plane. @param {any} payload @returns {Promise<boolean>} false: a newer question waits for it */
  async askGrey(payload) {
    const key = JSON.stringify([this.key, payload.state.view, payload.grid]);
    if (key === this.greyKey) return true;
    try {
      const grey = this.answer.exact ? await this.ask("frame", { ...payload, step: -1 }) : null;
      [this.grey, this.greyKey] = [grey, key];
    } catch (error) {
      if (/** @type {Error} */ (error).name === "AbortError") return false;
      this.grey = null;
    }
    return true;
  }

  /** Primal and dual value of the present step, and the largest and smallest value of the run; null if it has none. */
  values() {
    const { primal, dual } = this.answer.bounds ?? {};
    if (!primal) return null;
    return { primal: primal[this.position], dual: dual[this.position], range: [Math.min(...dual), Math.max(...primal)] };
  }

  /** Keep the step in the state, without an entry in the history. */
  remember() {
    const step = this.stepNumber();
    if (!this.state?.procedure || this.state.procedure.step === step) return;
    this.emit("patch", { patch: { procedure: { ...this.state.procedure, step } }, label: "step", transient: true });
  }

  /** One step in words, and the points that it moved.
   * @param {number} step @returns {{text: string, marks: number[]}} */
  describe(step) {
    if (step === 0) return { text: "Start: every coefficient is 0.", marks: [] };
    const { columns } = this.answer;
    const at = (/** @type {string} */ key) => columns[key]?.[step - 1];
    const i = at("i");
    const who = typeof i === "number" ? `Point ${name(i)}` : "";
    switch (this.choice.value) {
      case "smo": {
        const box = this.answer.box?.[step - 1];
        return box ? { text: smoWords(box), marks: [box.i, box.j] } : { text: "", marks: [] };
      }
      case "coordinate": {
        const clipped = at("clipped") !== at("unclipped");
        const end = clipped
          ? `the maximum ${number(at("unclipped"))} is outside of the box, so α${subscript(i)} = ${number(at("clipped"))}`
          : `α${subscript(i)} = ${number(at("clipped"))}, the maximum along its axis`;
        return { text: `${who}: ${end}. Dual value ${number(at("dual"), 6)}.`, marks: [i] };
      }
      case "pegasos": {
        const why = at("updated") ? "below 1: it is added to w, which shrinks" : "at least 1: w only shrinks";
        return { text: `${who} has the margin yf(x) = ${number(at("margin"))}, ${why}. Step size ${number(at("step_size"))}, ` +
          `objective ${number(at("objective"), 5)}.`, marks: [i] };
      }
      case "perceptron": {
        const why = at("mistake") ? "not above 0: a mistake, it is added to w" : "above 0: nothing changes";
        return { text: `${who} has yf(x) = ${number(at("margin"))}, ${why}. Updates so far: ${at("mistakes")}.`, marks: [i] };
      }
      default:
        return { text: `All coefficients moved by ${number(at("change"))} in all (length of the change). ` +
          `Half the sum of squared errors before: ${number(at("error"), 5)}.`, marks: [] };
    }
  }

  /** @param {boolean} on */
  play(on) {
    clearTimeout(this.clock);
    const was = this.playing;
    this.playing = Boolean(on && this.answer);
    if (this.playing && this.position >= this.answer.frames.length - 1) this.moveTo(0, false);
    this.label();
    if (this.playing) this.clock = setTimeout(() => this.tick(), 1000 / Number(this.speed.value));
    else if (was && this.answer) this.remember();
  }

  tick() {
    if (!this.playing) return;
    this.moveTo(this.position + 1, false);
    if (this.position >= this.answer.frames.length - 1) this.play(false);
    else this.clock = setTimeout(() => this.tick(), 1000 / Number(this.speed.value));
  }

  /** @param {KeyboardEvent} event */
  keyed(event) {
    const target = /** @type {HTMLElement} */ (event.target);
    if (!this.answer || ["SELECT", "INPUT"].includes(target.tagName)) return;
    if (event.key === "ArrowRight") this.jump(this.position + 1);
    else if (event.key === "ArrowLeft") this.jump(this.position - 1);
    else if (event.key === "Home") this.jump(0);
    else if (event.key === "End") this.jump(Infinity);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

define("mercer-stepper", Stepper);
