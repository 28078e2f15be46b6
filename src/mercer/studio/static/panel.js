/**
 * The base of the panels beside the plane, and small functions that build elements.
 *
 * A panel is a custom element without a shadow tree. The page sets `state` (the whole state), `result` (the last answer
 * of `fit`) and `active` (whether the panel can be seen). The panel speaks by events that bubble:
 *   ask     {name, payload, resolve, reject}   a question to the back end
 *   patch   {patch, label, transient, reset}   a change of the state
 *   select  {index, other}                     points to mark
 *   frame   {answer, grey, step, marks, values} a machine to draw on the plane, the exact one in grey behind it, and its primal
 *                                              and dual value; answer null: back to the exact one
 *   notice  {text, kind}                       a sentence for the status line
 *   view    {name}                             a panel to open
 */

/**
 * Build an element.
 * @param {string} tag
 * @param {Record<string, any>} [attributes] `on…` are listeners, `text` the text, `class` the class; false, null: left out
 * @param {...(Node | string | null | false)} children
 * @returns {HTMLElement}
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  setAttributes(element, attributes);
  element.append(...children.filter((child) => child !== null && child !== false && child !== undefined));
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

/**
 * Build an SVG element.
 * @param {string} tag
 * @param {Record<string, any>} [attributes]
 * @param {...(Node | string)} children
 * @returns {SVGElement}
 */
export function s(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  setAttributes(element, attributes);
  element.append(...children);
  return element;
}

/** @param {Element} element @param {Record<string, any>} attributes */
function setAttributes(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "text") element.textContent = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
}

/**
 * A number for people: four significant digits, powers of ten where needed, a true minus sign.
 * @param {number | string | null | undefined} value
 * @param {number} [digits]
 */
export function number(value, digits = 4) {
  if (value === null || value === undefined) return "–";
  if (typeof value === "string") return value === "inf" ? "∞" : value;
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "–" : value > 0 ? "∞" : "−∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  let text;
  if (size >= 1e5 || size < 1e-3) {
    const [mantissa, power] = value.toExponential(Math.min(digits - 1, 2)).split("e");
    const raised = String(Number(power)).replace(/./g, (c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(c)]));
    const short = String(Number(mantissa));
    text = short === "1" || short === "-1" ? `${short === "-1" ? "-" : ""}10${raised}` : `${short}·10${raised}`;
  } else {
    text = String(Number(value.toPrecision(digits)));
  }
  return text.replace("-", "−");
}

/** @param {number} share @returns {string} a share as per cent */
export function percent(share) {
  return `${number(100 * share, 3)} %`;
}

/** The number of a point as people count: the first is 1. @param {number} index */
export function name(index) {
  return String(index + 1);
}

/** Whether the reader asked for less motion. */
export function lessMotion() {
  return globalThis.matchMedia?.("(prefers-reduced-motion: reduce)").matches ?? false;
}

/**
 * Offer a file to the reader.
 * @param {string} file its name
 * @param {Blob} blob
 */
export function download(file, blob) {
  const url = URL.createObjectURL(blob);
  const link = h("a", { href: url, download: file, hidden: true });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** @param {string} base64 @param {string} type @returns {Blob} */
export function blobOf(base64, type = "application/octet-stream") {
  const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  return new Blob([bytes], { type });
}

/**
 * The base64 text of a file.
 * @param {Blob} file
 * @returns {Promise<string>}
 */
export function base64Of(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).split(",", 2)[1] ?? "");
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}

/** @param {Element} element @param {string} variable @returns {string} the value of a CSS variable there */
export function colour(element, variable) {
  return getComputedStyle(element).getPropertyValue(variable).trim() || "#888";
}

/**
 * Size a canvas for its place on the page and the pixels of the screen.
 * @param {HTMLCanvasElement} canvas
 * @returns {{pen: CanvasRenderingContext2D, width: number, height: number}} sizes in CSS pixels
 */
export function prepareCanvas(canvas) {
  const width = Math.max(1, canvas.clientWidth);
  const height = Math.max(1, canvas.clientHeight);
  const ratio = globalThis.devicePixelRatio || 1;
  const wide = Math.round(width * ratio);
  const high = Math.round(height * ratio);
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
  }
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  return { pen, width, height };
}

// milliseconds a panel waits for further changes before it asks
const PATIENCE = 120;

/** A panel: see the head of this file. */
export class Panel extends HTMLElement {
  constructor() {
    super();
    /** @type {any} */ this._state = null;
    /** @type {any} */ this._result = null;
    this._active = false;
    this._built = false;
    /** @type {Map<string, number>} the newest question of each name */ this._newest = new Map();
    /** @type {ReturnType<typeof setTimeout> | undefined} */ this._timer = undefined;
    /** the key of the state whose answer is shown */ this.key = "";
  }

  get state() {
    return this._state;
  }

  set state(state) {
    const before = this._state;
    this._state = state;
    if (this._built) this.stateChanged(before);
  }

  get result() {
    return this._result;
  }

  set result(result) {
    this._result = result;
    if (this._built) this.resultChanged();
  }

  get active() {
    return this._active;
  }

  set active(active) {
    const changed = this._active !== Boolean(active);
    this._active = Boolean(active);
    if (this._built && changed) this.activeChanged();
  }

  /** The theme has changed: pictures on a canvas are drawn again. */
  set dark(_dark) {
    if (this._built && this._active) this.themeChanged();
  }

  connectedCallback() {
    if (this._built) return;
    this._built = true;
    this.classList.add("mp");
    this.build();
    this.stateChanged(null);
    this.resultChanged();
    if (this._active) this.activeChanged();
  }

  disconnectedCallback() {
    clearTimeout(this._timer);
  }

  /** Create the content, once. */
  build() {}
  /** The state has changed. @param {any} _before */
  stateChanged(_before) {}
  /** The result of the fit has changed. */
  resultChanged() {}
  /** The panel was shown or hidden. */
  activeChanged() {}
  /** The theme has changed. */
  themeChanged() {}

  /** @param {string} name @param {any} detail */
  emit(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail, bubbles: true, composed: true }));
  }

  /**
   * Ask the back end.
   * @param {string} name
   * @param {any} payload
   * @returns {Promise<any>}
   */
  ask(name, payload) {
    return new Promise((resolve, reject) => this.emit("ask", { name, payload, resolve, reject }));
  }

  /**
   * Ask, and pass on only the answer to the newest question of this name. Errors are shown by `fail`.
   * @param {string} name
   * @param {any} payload
   * @param {(answer: any) => void} use
   * @param {(error: any) => void} [fail]
   */
  async askNewest(name, payload, use, fail = (error) => this.fail(error)) {
    const turn = (this._newest.get(name) ?? 0) + 1;
    this._newest.set(name, turn);
    this.setAttribute("aria-busy", "true");
    try {
      const answer = await this.ask(name, payload);
      if (this._newest.get(name) === turn) use(answer);
    } catch (error) {
      if (this._newest.get(name) === turn && /** @type {any} */ (error)?.name !== "AbortError") fail(error);
    } finally {
      if (this._newest.get(name) === turn) this.removeAttribute("aria-busy");
    }
  }

  /**
   * While the panel is shown, ask once for each key of the state; then use the answer, or clear its results.
   * @param {string} name @param {(state: any) => string} keyOf @param {(answer: any) => void} use @param {() => void} clear
   */
  askOnce(name, keyOf, use, clear, milliseconds = PATIENCE) {
    if (!this.active || !this.state) return;
    const key = keyOf(this.state);
    if (key === this.key) return;
    this.later(() => {
      this.key = key;
      this.askNewest(name, { state: this.state }, (answer) => {
        this.fail(null);
        use(answer);
      }, (error) => {
        clear();
        this.fail(error);
      });
    }, milliseconds);
  }

  /** Call once changes have stopped for a moment. @param {() => void} work */
  later(work, milliseconds = PATIENCE) {
    clearTimeout(this._timer);
    this._timer = setTimeout(work, milliseconds);
  }

  /** Show an error in the panel's line for them. @param {any} error */
  fail(error) {
    const line = this.querySelector(".mp-error");
    if (!line) return;
    line.textContent = error ? error.message || String(error) : "";
    /** @type {HTMLElement} */ (line).hidden = !error;
  }

  /** @returns {HTMLElement} the line for errors of this panel */
  errorLine() {
    return h("p", { class: "mp-error", role: "alert", hidden: true });
  }
}

/** Register an element once, also if a notebook loads the module twice. @param {string} tag @param {any} type */
export function define(tag, type) {
  if (!customElements.get(tag)) customElements.define(tag, type);
}

/** The parts of a state that change kernel values, machines or pictures; not the selection, the lesson or `show`.
 * @param {any} state @returns {string} */
export function machineKey(state) {
  if (!state) return "";
  const { selected, lesson, show, procedure, view, ...rest } = state;
  return JSON.stringify(rest);
}

/** The parts of a state that change kernel values. @param {any} state @returns {string} */
export function kernelKey({ kernel, points, mode }) {
  return JSON.stringify([kernel, points, mode]);
}
