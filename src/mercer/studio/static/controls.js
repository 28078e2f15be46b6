/**
 * <mercer-controls>: mode, point sets, kernel by name or by expression, C on its exact path, and the other parameters of the mode.
 *
 * Properties in: state, presets, path (the exact path over C or null), problem (an error of the last fit or null).
 * Events out: patch, sliding (while C moves), ask (fit, to check an expression).
 */
import { define, html, send, tidy } from "./dom.js";
import { KERNELS, readKernel, writeKernel } from "./kernel_text.js";
import { createSlider } from "./slider.js";

const MODES = [
  { id: "classify", title: "Classify" },
  { id: "regress", title: "Regress" },
  { id: "one_class", title: "One class" },
  { id: "quantiles", title: "Quantiles" },
  { id: "process", title: "Gaussian process" },
];
const MODE_HELP = {
  classify: "Widest street between the classes.",
  regress: "A curve; errors inside its ε tube are free.",
  one_class: "A region around all but a share ν of points.",
  quantiles: "Curves with given shares of points below.",
  process: "A Gaussian process: mean, deviation, draws.",
};
/** the controls of each mode besides the kernel */
const PARTS = {
  classify: ["C", "hard", "loss", "bias"],
  regress: ["C", "epsilon", "loss", "bias"],
  one_class: ["nu"],
  quantiles: ["C", "quantiles", "bias"],
  process: ["noise"],
};
/** what C does in each mode that has it */
const PRICES = {
  classify: "Price of slack: a small C gives a wide street with many points inside, a large C a narrow one.",
  regress: "Price of errors beyond ε: a small C gives a flat curve, a large C one that follows the points.",
  quantiles: "Price of errors: a small C gives flat curves, a large C curves that follow the points.",
};
/** the switches that change the picture of each mode */
const SHOWN = {
  classify: ["regions", "support", "margins", "slack"],
  regress: ["regions", "support", "margins", "slack"],
  one_class: ["regions", "support", "slack"],
  quantiles: ["regions", "support"],
  process: [],
};
const SWITCHES = { regions: "Regions", support: "Support vectors", margins: "Margins", slack: "Slack" };

class MercerControls extends HTMLElement {
  constructor() {
    super();
    /** @type {any} */ this._state = null;
    /** @type {any[]} */ this._presets = [];
    /** @type {any} */ this._path = null;
    /** @type {any} */ this._problem = null;
    /** @type {Record<string, any>} the last state of each mode */ this.remembered = {};
    this.kernelKey = "";
    /** @type {Record<string, any>} */ this.parameterSliders = {};
  }

  connectedCallback() {
    if (this.built) return;
    this.built = true;
    this.buildMode();
    this.buildKernel();
    this.buildParameters();
    this.buildShow();
    if (this._state) this.update();
  }

  // ---- properties ------------------------------------------------------------------------------------------------

  set state(state) {
    const previous = this._state;
    this._state = state;
    if (previous && previous.mode !== state.mode) this.remembered[previous.mode] = previous;
    if (!this.built) return;
    // while points move, only the name of their set changes
    const others = Object.keys(state).filter((key) => key !== "points" && key !== "selected");
    if (previous && others.every((key) => previous[key] === state[key])) this.updatePresets();
    else this.update();
  }

  set presets(presets) {
    this._presets = presets;
    this.presetMode = null;
    if (this.built && this._state) this.update();
  }

  /** @param {any} path */
  set path(path) {
    this._path = path;
    if (this.built) this.updatePath();
  }

  /** @param {any} error */
  set problem(error) {
    this._problem = error;
    if (this.built && error?.where === "kernel") this.showKernelError(error.message);
    if (this.built && !error) this.showKernelError("");
  }

  // ---- parts -----------------------------------------------------------------------------------------------------

  buildMode() {
    this.modeButtons = MODES.map(({ id, title }) =>
      html("button", { type: "button", role: "radio", class: "segment", "aria-checked": "false", data: { mode: id }, text: title, title: MODE_HELP[/** @type {"classify"} */ (id)], on: { click: () => this.chooseMode(id) } }),
    );
    const group = html("div", { class: "segments", role: "radiogroup", "aria-label": "Mode" }, ...this.modeButtons);
    group.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const at = MODES.findIndex(({ id }) => id === this._state.mode);
      const next = (at + step + MODES.length) % MODES.length;
      this.chooseMode(MODES[next].id);
      this.modeButtons[next].focus();
    });
    this.modeHelp = html("p", { class: "hint" });
    this.preset = html("select", { id: "mercer-preset", class: "select", on: { change: () => this.choosePreset(this.preset.value) } });
    this.presetAbout = html("p", { class: "hint" });
    this.append(
      html("fieldset", { class: "control-group" }, html("legend", { text: "Task" }), group, this.modeHelp),
      html("fieldset", { class: "control-group" }, html("legend", { text: "Points" }), html("label", { for: "mercer-preset", class: "visually-hidden", text: "Point set" }), this.preset, this.presetAbout),
    );
  }

  buildKernel() {
    this.kernelName = html("select", { id: "mercer-kernel-name", class: "select", on: { change: () => this.chooseKernel(this.kernelName.value) } }, ...KERNELS.map(({ name, title }) => html("option", { value: name, text: title })), html("option", { value: "", text: "Expression…" }));
    this.kernelSliders = html("div", { class: "stack" });
    this.expression = html("input", { type: "text", id: "mercer-kernel-text", class: "text-field mono", autocomplete: "off", autocapitalize: "off", spellcheck: "false", "aria-describedby": "mercer-kernel-error", title: "Sums, products and powers of kernels, such as 0.5*gaussian(gamma=2) + linear()" });
    this.expression.addEventListener("input", () => {
      clearTimeout(this.expressionTimer);
      this.expressionTimer = setTimeout(() => this.checkExpression(), 450);
    });
    this.expression.addEventListener("change", () => this.checkExpression());
    this.kernelError = html("p", { id: "mercer-kernel-error", class: "error", role: "alert", hidden: true });
    this.append(
      html(
        "fieldset",
        { class: "control-group" },
        html("legend", { text: "Kernel" }),
        html("label", { for: "mercer-kernel-name", class: "visually-hidden", text: "Kernel by name" }),
        this.kernelName,
        this.kernelSliders,
        html("label", { for: "mercer-kernel-text", class: "visually-hidden", text: "Kernel as an expression" }),
        this.expression,
        this.kernelError,
      ),
    );
  }

  buildParameters() {
    this.C = createSlider({
      label: "C",
      name: "C",
      help: PRICES.classify,
      min: 1e-3,
      max: 1e4,
      value: 1,
      log: true,
      onInput: (C, gesture) => {
        send(this, "sliding", { sliding: true });
        this.patch({ C }, gesture);
      },
      onChange: () => send(this, "sliding", { sliding: false }),
    });
    this.pathLine = html("p", { class: "hint path-line" });
    this.previousBreak = html("button", { type: "button", class: "button tiny", text: "◂", title: "C at the previous break", "aria-label": "C at the previous break", on: { click: () => this.toBreak(-1) } });
    this.nextBreak = html("button", { type: "button", class: "button tiny", text: "▸", title: "C at the next break", "aria-label": "C at the next break", on: { click: () => this.toBreak(1) } });
    this.pathRow = html("div", { class: "path-row", hidden: true }, this.pathLine, this.previousBreak, this.nextBreak);
    this.hard = html("input", { type: "checkbox", id: "mercer-hard", on: { change: () => this.patch({ C: this.hard.checked ? "inf" : (this.lastC ?? 1) }) } });
    /** @param {string} key @param {any} options */
    const slider = (key, options) => createSlider({ name: key, ...options, onInput: (value, gesture) => this.patch({ [key]: value }, gesture) });
    this.epsilon = slider("epsilon", { label: "ε", help: "Half width of the tube: errors up to ε cost nothing.", min: 0, max: 2, value: 0.1 });
    this.nu = slider("nu", { label: "ν", help: "At most this share of the points lies outside; at least this share are support vectors.", min: 0.01, max: 0.99, value: 0.1 });
    this.noise = slider("noise", { label: "Noise", help: "Standard deviation of the noise on the targets.", min: 0.001, max: 10, value: 0.1, log: true });
    this.quantiles = html("input", { type: "text", id: "mercer-quantiles", class: "text-field", autocomplete: "off", "aria-describedby": "mercer-quantiles-error", on: { change: () => this.readQuantiles() } });
    this.quantilesError = html("p", { id: "mercer-quantiles-error", class: "error", role: "alert", hidden: true });
    this.loss = html("select", { id: "mercer-loss", class: "select", on: { change: () => this.patch({ loss: this.loss.value }) } });
    this.bias = html("input", { type: "checkbox", id: "mercer-bias", on: { change: () => this.patch({ bias: this.bias.checked }) } });
    /** @type {Record<string, HTMLElement>} */
    this.parts = {
      C: html("div", { class: "stack" }, this.C.element, this.pathRow),
      hard: html("label", { class: "check", title: "C = ∞: no slack at all. If the points are not separable, a proof is drawn." }, this.hard, "Hard margin (C = ∞)"),
      epsilon: this.epsilon.element,
      nu: this.nu.element,
      noise: this.noise.element,
      quantiles: html("div", { class: "stack" }, html("label", { for: "mercer-quantiles", text: "Quantiles" }), this.quantiles, this.quantilesError),
      loss: html("div", { class: "field-row" }, html("label", { for: "mercer-loss", text: "Loss" }), this.loss),
      bias: html("label", { class: "check", title: "Without a bias the boundary of a linear machine passes through the origin." }, this.bias, "Bias b"),
    };
    this.append(html("fieldset", { class: "control-group" }, html("legend", { text: "Machine" }), ...Object.values(this.parts)));
  }

  buildShow() {
    this.switches = Object.entries(SWITCHES).map(([key, title]) => {
      const box = html("input", { type: "checkbox", data: { show: key }, on: { change: () => this.patch({ show: { ...this._state.show, [key]: box.checked } }) } });
      return { key, box, element: html("label", { class: "check" }, box, title) };
    });
    this.showGroup = html("fieldset", { class: "control-group" }, html("legend", { text: "Show" }), html("div", { class: "check-grid" }, ...this.switches.map(({ element }) => element)));
    this.append(this.showGroup);
  }

  // ---- changes ---------------------------------------------------------------------------------------------------

  /** @param {object} patch @param {string} [gesture] */
  patch(patch, gesture) {
    send(this, "patch", { patch, gesture });
  }

  /** The mode with the points it had last, or with its first point set. @param {string} mode */
  chooseMode(mode) {
    if (mode === this._state.mode) return;
    const earlier = this.remembered[mode];
    const preset = this._presets.find((one) => (one.state.mode ?? "classify") === mode);
    const plane = (/** @type {string} */ name) => name === "classify" || name === "one_class";
    const own = { points: this._state.points.map((/** @type {number[]} */ [x, y]) => [x, y, 0]), kernel: this._state.kernel, view: this._state.view };
    const keep = mode === "one_class" && plane(this._state.mode) ? own : null;
    const { selected, lesson, procedure, show, ...last } = earlier ?? {};
    send(this, "patch", { patch: { ...(earlier ? last : (preset?.state ?? keep ?? own)), mode }, reset: true });
  }

  /** @param {string} name */
  choosePreset(name) {
    const preset = this._presets.find((one) => one.name === name);
    if (preset) send(this, "patch", { patch: { mode: this._state.mode, ...preset.state }, reset: true });
  }

  /** @param {string} name */
  chooseKernel(name) {
    if (!name) {
      this.expressionOpen = true;
      this.kernelKey = "";
      this.updateKernel();
      this.expression.focus();
      return;
    }
    this.expressionOpen = false;
    const now = readKernel(this._state.kernel);
    this.patch({ kernel: writeKernel(name, now?.values ?? {}) });
    this.kernelKey = "";
    this.updateKernel();
  }

  /** Ask for a fit with the typed kernel; the state changes only if the fit succeeds. */
  async checkExpression() {
    clearTimeout(this.expressionTimer);
    const kernel = this.expression.value.trim();
    if (kernel === this._state.kernel || kernel === this.checking) {
      if (kernel === this._state.kernel) this.showKernelError("");
      return;
    }
    this.checking = kernel;
    const payload = { state: { ...this._state, kernel, procedure: null, lesson: null, selected: null }, grid: [2, 2] };
    try {
      await new Promise((resolve, reject) => send(this, "ask", { name: "fit", payload, resolve, reject }));
      this.showKernelError("");
      if (this.expression.value.trim() === kernel) this.patch({ kernel });
    } catch (error) {
      const { name, message } = /** @type {Error} */ (error);
      if (name !== "AbortError") this.showKernelError(kernel ? message : "Type a kernel, such as 0.5*gaussian(gamma=2) + linear().");
    } finally {
      this.checking = null;
    }
  }

  /** @param {string} text */
  showKernelError(text) {
    this.kernelError.textContent = text;
    this.kernelError.hidden = !text;
    this.expression.setAttribute("aria-invalid", String(Boolean(text)));
  }

  readQuantiles() {
    const values = this.quantiles.value.split(/[\s;,]+/).filter(Boolean).map(Number);
    const valid = values.length >= 1 && values.length <= 9 && values.every((/** @type {number} */ q) => q >= 0.001 && q <= 0.999);
    this.quantilesError.hidden = valid;
    this.quantilesError.textContent = valid ? "" : "Between one and nine numbers from 0.001 to 0.999, such as 0.1, 0.5, 0.9.";
    this.quantiles.setAttribute("aria-invalid", String(!valid));
    if (valid) this.patch({ quantiles: values });
  }

  /** @param {number} direction */
  toBreak(direction) {
    const breaks = this.breaks();
    const C = this._state.C;
    const next = direction > 0 ? breaks.find((one) => one > C * (1 + 1e-6)) : breaks.findLast((one) => one < C * (1 - 1e-6));
    if (next === undefined) return;
    send(this, "sliding", { sliding: true });
    this.patch({ C: Number(next.toPrecision(8)) });
    send(this, "sliding", { sliding: false });
  }

  /** @returns {number[]} breaks of the path on the slider, ascending */
  breaks() {
    return (this._path?.C ?? []).filter((/** @type {number} */ C) => C >= 1e-3 && C <= 1e4).sort((/** @type {number} */ a, /** @type {number} */ b) => a - b);
  }

  // ---- display ---------------------------------------------------------------------------------------------------

  update() {
    const state = this._state;
    for (const button of this.modeButtons) {
      const chosen = button.dataset.mode === state.mode;
      button.setAttribute("aria-checked", String(chosen));
      button.tabIndex = chosen ? 0 : -1;
    }
    this.modeHelp.textContent = MODE_HELP[/** @type {"classify"} */ (state.mode)];
    this.updatePresets();
    this.updateKernel();
    for (const [name, element] of Object.entries(this.parts)) element.hidden = !PARTS[/** @type {"classify"} */ (state.mode)].includes(name);
    if (state.C !== "inf") this.lastC = state.C;
    this.C.set(state.C === "inf" ? 1e4 : state.C);
    this.C.disable(state.C === "inf");
    if (state.C === "inf") this.C.box.value = "∞";
    this.hard.checked = state.C === "inf";
    this.epsilon.set(state.epsilon);
    this.nu.set(state.nu);
    this.noise.set(state.noise);
    this.bias.checked = state.bias;
    if (document.activeElement !== this.quantiles) this.quantiles.value = state.quantiles.join(", ");
    this.updateLoss();
    /** @type {string[]} */ const shown = SHOWN[/** @type {"classify"} */ (state.mode)];
    for (const { key, box, element } of this.switches) {
      box.checked = state.show[key];
      element.hidden = !shown.includes(key);
    }
    this.showGroup.hidden = !shown.length;
    this.C.help(PRICES[/** @type {"classify"} */ (state.mode)] ?? "");
    this.updatePath();
  }

  updateLoss() {
    const regress = this._state.mode === "regress";
    if (this.lossFor !== regress) {
      this.lossFor = regress;
      this.loss.replaceChildren(html("option", { value: "hinge", text: regress ? "ε-insensitive" : "Hinge" }), html("option", { value: "squared_hinge", text: regress ? "Squared ε-insensitive" : "Squared hinge" }));
    }
    this.loss.value = this._state.loss;
  }

  updatePresets() {
    const { mode, points } = this._state;
    const own = this._presets.filter((one) => (one.state.mode ?? "classify") === mode);
    if (this.presetMode !== mode) {
      this.presetMode = mode;
      this.preset.replaceChildren(html("option", { value: "", text: "Choose a point set…" }), ...own.map((one) => html("option", { value: one.name, text: one.title })));
    }
    const same = own.find(({ state }) => state.points?.length === points.length && state.points.every((/** @type {number[]} */ p, /** @type {number} */ k) => p[0] === points[k][0] && p[1] === points[k][1] && p[2] === points[k][2]));
    this.preset.value = same?.name ?? "";
    this.presetAbout.textContent = same?.about ?? `${points.length} ${points.length === 1 ? "point" : "points"}, your own`;
  }

  updateKernel() {
    const found = readKernel(this._state.kernel);
    const named = found && !this.expressionOpen;
    this.kernelName.value = named ? found.name : "";
    if (document.activeElement !== this.expression) this.expression.value = this._state.kernel;
    const key = named ? found.name : "";
    if (key !== this.kernelKey || !named) {
      this.kernelKey = key;
      this.parameterSliders = {};
      const kernel = named ? KERNELS.find((one) => one.name === found.name) : null;
      for (const parameter of kernel?.parameters ?? [])
        this.parameterSliders[parameter.name] = createSlider({
          ...parameter,
          onInput: (value, gesture) => {
            const now = readKernel(this._state.kernel);
            if (now) this.patch({ kernel: writeKernel(now.name, { ...now.values, [parameter.name]: value }) }, gesture);
          },
        });
      this.kernelSliders.replaceChildren(...Object.values(this.parameterSliders).map((slider) => slider.element));
    }
    if (!named) return;
    const kernel = KERNELS.find((one) => one.name === found.name);
    for (const parameter of kernel?.parameters ?? []) this.parameterSliders[parameter.name].set(found.values[parameter.name] ?? parameter.value);
  }

  updatePath() {
    const { mode, C } = this._state;
    const breaks = mode === "classify" && C !== "inf" ? this.breaks() : [];
    const key = `${breaks.length},${breaks[0]},${breaks[breaks.length - 1]}`;
    if (key !== this.breaksKey) {
      this.breaksKey = key;
      this.C.marks(breaks);
    }
    this.pathRow.hidden = !breaks.length;
    if (!breaks.length) return;
    const before = breaks.findLast((one) => one <= C);
    const after = breaks.find((one) => one > C);
    const place = before !== undefined && after !== undefined ? `between ${tidy(before, 3)} and ${tidy(after, 3)}` : after === undefined ? "above all of them" : "below all of them";
    this.pathLine.textContent = `Exact path, ${breaks.length} ${breaks.length === 1 ? "break" : "breaks"}; C is ${place}`;
    this.previousBreak.disabled = before === undefined;
    this.nextBreak.disabled = after === undefined;
  }
}

define("mercer-controls", MercerControls);
