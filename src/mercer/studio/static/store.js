/**
 * The state of the page: one frozen object, subscribers, undo and redo, its text in the URL fragment and in a file.
 *
 * No DOM here. Everything that reads a foreign state (a fragment, a file, a lesson) goes through `checkState`, which names
 * the field that is wrong; whether a kernel expression can be read is for the back end to say.
 *
 * @typedef {[number, number, number]} Point x, y (or target), label
 * @typedef {{margins: boolean, slack: boolean, support: boolean, regions: boolean}} Show
 * @typedef {Object} State
 * @property {1} version
 * @property {"classify" | "regress" | "one_class" | "quantiles" | "process"} mode
 * @property {Point[]} points
 * @property {[number, number, number, number]} view x_min, x_max, y_min, y_max
 * @property {string} kernel text for mercer.parse_kernel
 * @property {number | "inf"} C
 * @property {"hinge" | "squared_hinge"} loss
 * @property {boolean} bias
 * @property {number} epsilon
 * @property {number} nu
 * @property {number[]} quantiles
 * @property {number} noise
 * @property {null | {name: string, rule?: string, step?: number}} procedure
 * @property {null | string} lesson
 * @property {null | number} selected
 * @property {Show} show
 */

export const MODES = ["classify", "regress", "one_class", "quantiles", "process"];
export const MOST_POINTS = 2000;
const MOST_UNDO = 200;
const LONGEST_KERNEL = 2000;
const LARGEST = 1e9;
const PROCEDURES = ["smo", "coordinate", "pegasos", "perceptron", "lms"];
/** changes of these fields alone are not steps of undo */
const NOT_UNDONE = new Set(["selected", "show", "view", "procedure"]);

/** Two clouds that overlap a little: the first thing a person sees. */
const FIRST_POINTS = /** @type {Point[]} */ ([
  [-1.62, 0.35, 0], [-1.18, 1.21, 0], [-0.84, 0.42, 0], [-1.95, -0.48, 0], [-1.07, -0.36, 0], [-0.38, 1.02, 0],
  [-1.44, 1.86, 0], [-0.21, 0.18, 0], [-2.21, 0.92, 0], [-0.72, -1.12, 0], [-0.46, 1.92, 0], [0.42, 0.88, 0],
  [-1.63, -1.31, 0], [-2.42, 1.72, 0], [0.11, 1.63, 0],
  [1.52, -0.28, 1], [0.92, -1.14, 1], [1.83, 0.61, 1], [0.63, -0.42, 1], [1.21, 0.38, 1], [2.24, -0.93, 1],
  [0.34, -1.72, 1], [1.62, -1.81, 1], [-0.12, -0.71, 1], [2.41, 0.24, 1], [1.12, -0.61, 1], [0.97, 1.18, 1],
  [2.05, 1.43, 1], [-0.31, -1.94, 1], [0.71, 0.31, 1],
]);

/** @type {State} */
export const DEFAULT_STATE = freeze({
  version: 1,
  mode: "classify",
  points: FIRST_POINTS,
  view: [-3, 3, -3, 3],
  kernel: "gaussian(gamma=0.5)",
  C: 1,
  loss: "hinge",
  bias: true,
  epsilon: 0.1,
  nu: 0.1,
  quantiles: [0.1, 0.5, 0.9],
  noise: 0.1,
  procedure: null,
  lesson: null,
  selected: null,
  show: { margins: true, slack: true, support: true, regions: true },
});

/** A state that cannot be used; `where` names its field. */
export class StateError extends Error {
  /** @param {string} what @param {string} where */
  constructor(what, where) {
    super(what);
    this.name = "StateError";
    this.where = where;
  }
}

/** @template T @param {T} value @returns {T} frozen two levels deep */
function freeze(value) {
  for (const part of Object.values(/** @type {any} */ (value))) if (part && typeof part === "object") Object.freeze(part);
  return Object.freeze(value);
}

/** @param {unknown} value @param {string} where @param {number} low @param {number} high @param {string} [name] @returns {number} */
function number(value, where, low, high, name = where) {
  if (typeof value !== "number" || !Number.isFinite(value)) throw new StateError(`${name} must be a finite number, found ${show(value)}.`, where);
  if (value < low || value > high) throw new StateError(`${name} must be between ${low} and ${high}, found ${value}.`, where);
  return value;
}

/** @param {unknown} value @returns {string} */
function show(value) {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 40 ? `${text.slice(0, 40)}…` : text;
}

/** @param {unknown} value @param {string} where @param {string[]} allowed @returns {any} */
function oneOf(value, where, allowed) {
  if (typeof value !== "string" || !allowed.includes(value)) throw new StateError(`${where} must be one of ${allowed.join(", ")}, found ${show(value)}.`, where);
  return value;
}

/** @type {Record<string, (value: any) => any>} how each field is read */
const READERS = {
  version(value) {
    if (value !== 1) throw new StateError(`version must be 1, found ${show(value)}.`, "version");
    return 1;
  },
  mode: (value) => oneOf(value, "mode", MODES),
  points(value) {
    if (!Array.isArray(value)) throw new StateError(`points must be a list of [x, y, label], found ${show(value)}.`, "points");
    if (value.length > MOST_POINTS) throw new StateError(`A state has at most ${MOST_POINTS.toLocaleString("en")} points, found ${value.length.toLocaleString("en")}.`, "points");
    return value.map((point, index) => {
      if (!Array.isArray(point) || point.length !== 3) throw new StateError(`Point ${index} must be [x, y, label], found ${show(point)}.`, "points");
      const x = number(point[0], "points", -LARGEST, LARGEST, `x of point ${index}`);
      const y = number(point[1], "points", -LARGEST, LARGEST, `y of point ${index}`);
      if (!Number.isInteger(point[2]) || point[2] < 0 || point[2] > 9) throw new StateError(`The label of point ${index} must be a whole number from 0 to 9, found ${show(point[2])}.`, "points");
      return [x, y, point[2]];
    });
  },
  view(value) {
    if (!Array.isArray(value) || value.length !== 4) throw new StateError(`view must be [x_min, x_max, y_min, y_max], found ${show(value)}.`, "view");
    for (const bound of value) number(bound, "view", -LARGEST, LARGEST);
    if (!(value[1] - value[0] > 1e-9 && value[3] - value[2] > 1e-9)) throw new StateError(`view must have x_min < x_max and y_min < y_max, found ${show(value)}.`, "view");
    return value.slice();
  },
  kernel(value) {
    if (typeof value !== "string" || !value.trim()) throw new StateError(`kernel must be a text such as gaussian(gamma=1.0), found ${show(value)}.`, "kernel");
    if (value.length > LONGEST_KERNEL) throw new StateError(`kernel has at most ${LONGEST_KERNEL} characters, found ${value.length}.`, "kernel");
    return value;
  },
  C: (value) => (value === "inf" ? "inf" : number(value, "C", 1e-12, 1e12)),
  loss: (value) => oneOf(value, "loss", ["hinge", "squared_hinge"]),
  bias(value) {
    if (typeof value !== "boolean") throw new StateError(`bias must be true or false, found ${show(value)}.`, "bias");
    return value;
  },
  epsilon: (value) => number(value, "epsilon", 0, LARGEST),
  nu: (value) => number(value, "nu", 1e-6, 1),
  quantiles(value) {
    if (!Array.isArray(value) || value.length < 1 || value.length > 9) throw new StateError(`quantiles must be 1 to 9 numbers between 0 and 1, found ${show(value)}.`, "quantiles");
    return value.map((q) => number(q, "quantiles", 0.001, 0.999, "a quantile"));
  },
  noise: (value) => number(value, "noise", 1e-9, LARGEST),
  procedure(value) {
    if (value === null) return null;
    if (typeof value !== "object" || Array.isArray(value)) throw new StateError(`procedure must be null or {"name": …}, found ${show(value)}.`, "procedure");
    oneOf(value.name, "procedure", PROCEDURES);
    return { ...value };
  },
  lesson(value) {
    if (value !== null && (typeof value !== "string" || value.length > 200)) throw new StateError(`lesson must be null or the name of a lesson, found ${show(value)}.`, "lesson");
    return value;
  },
  selected(value) {
    if (value !== null && (!Number.isInteger(value) || value < 0)) throw new StateError(`selected must be null or the index of a point, found ${show(value)}.`, "selected");
    return value;
  },
  show(value) {
    if (!value || typeof value !== "object" || Array.isArray(value)) throw new StateError(`show must be an object, found ${show(value)}.`, "show");
    const result = { ...DEFAULT_STATE.show };
    for (const [key, shown] of Object.entries(value)) {
      if (!(key in result) || typeof shown !== "boolean") throw new StateError(`show has the switches ${Object.keys(result).join(", ")}, each true or false; found ${key}: ${show(shown)}.`, "show");
      /** @type {any} */ (result)[key] = shown;
    }
    return result;
  },
};

/**
 * A whole state from a part of one; raises a StateError that names the field.
 *
 * @param {unknown} part @param {State} [base] @returns {State}
 */
export function checkState(part, base = DEFAULT_STATE) {
  if (!part || typeof part !== "object" || Array.isArray(part)) throw new StateError(`A state is an object, found ${show(part)}.`, "state");
  /** @type {any} */
  const state = { ...base };
  for (const [key, value] of Object.entries(part)) {
    if (!Object.hasOwn(READERS, key)) throw new StateError(`A state has no field ${show(key)}; its fields are ${Object.keys(READERS).join(", ")}.`, key.slice(0, 40));
    state[key] = READERS[key](value);
  }
  if (state.selected !== null && state.selected >= state.points.length) state.selected = null;
  return freeze(state);
}

/** @param {number} value @returns {number} with at most five significant digits after the leading one */
function short(value) {
  return Number(value.toPrecision(6));
}

/** The state as compact JSON. @param {State} state @returns {string} */
export function stateText(state) {
  return JSON.stringify({ ...state, points: state.points.map(([x, y, label]) => [short(x), short(y), label]), view: state.view.map(short) });
}

/** @param {State} state @returns {string} `#s=…` */
export function encodeFragment(state) {
  const bytes = new TextEncoder().encode(stateText(state));
  let binary = "";
  for (let start = 0; start < bytes.length; start += 8192) binary += String.fromCharCode(...bytes.subarray(start, start + 8192));
  return `#s=${btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "")}`;
}

/**
 * @param {string} fragment `location.hash`
 * @returns {State | null} null when the fragment holds no state; raises a StateError when it holds a wrong one
 */
export function decodeFragment(fragment) {
  const match = /^#?s=(.*)$/s.exec(fragment);
  if (!match) return null;
  let text;
  try {
    const binary = atob(match[1].replaceAll("-", "+").replaceAll("_", "/"));
    text = new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(binary, (c) => c.charCodeAt(0)));
  } catch {
    throw new StateError("The state in the address is cut off or damaged (not base64url).", "state");
  }
  return parseState(text);
}

/** @param {string} text JSON, as in a file, or a copied link @returns {State} */
export function parseState(text) {
  const link = /#s=[\w-]+\s*$/.exec(text);
  if (link && !text.trimStart().startsWith("{")) return /** @type {State} */ (decodeFragment(link[0].trimEnd()));
  let part;
  try {
    part = JSON.parse(text);
  } catch {
    throw new StateError("The state is not valid JSON.", "state");
  }
  return checkState(part);
}

/** @param {Point[]} points @param {string} mode @returns {[number, number, number, number]} a view with some room around the points */
export function viewOf(points, mode) {
  if (!points.length) return [-3, 3, -3, 3];
  let [xMin, xMax, yMin, yMax] = [Infinity, -Infinity, Infinity, -Infinity];
  for (const [x, y] of points) {
    [xMin, xMax] = [Math.min(xMin, x), Math.max(xMax, x)];
    [yMin, yMax] = [Math.min(yMin, y), Math.max(yMax, y)];
  }
  const plane = mode === "classify" || mode === "one_class";
  let [width, height] = [xMax - xMin || 2, yMax - yMin || 2];
  if (plane) width = height = Math.max(width, height);
  const [xMid, yMid] = [(xMin + xMax) / 2, (yMin + yMax) / 2];
  const [xHalf, yHalf] = [0.5 * width * (plane ? 1.25 : 1.08), 0.5 * height * 1.3];
  return [xMid - xHalf, xMid + xHalf, yMid - yHalf, yMid + yHalf].map(short) /** @type {any} */;
}

/** The present state, its past and its subscribers. */
export class Store {
  /** @param {State} [state] */
  constructor(state = DEFAULT_STATE) {
    this.state = state;
    /** @type {State[]} */ this.past = [];
    /** @type {State[]} */ this.future = [];
    /** @type {string | null} */ this.gesture = null;
    /** @type {Set<(state: State, previous: State) => void>} */ this.listeners = new Set();
  }

  /** @param {(state: State, previous: State) => void} listener @returns {() => void} */
  subscribe(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /**
   * Change part of the state. Changes in a row with the same gesture are one step of undo.
   *
   * @param {Partial<State>} patch @param {string | null} [gesture] @param {boolean} [transient] not a step of undo
   */
  update(patch, gesture = null, transient = false) {
    const next = checkState(patch, this.state);
    const recorded = !transient && Object.keys(patch).some((key) => !NOT_UNDONE.has(key));
    if (recorded) {
      if (!(gesture && gesture === this.gesture)) this.remember();
      this.gesture = gesture;
    }
    this.set(next);
  }

  /** Replace the state by the default with these parts. @param {object} part */
  load(part) {
    const next = checkState({ show: this.state.show, ...part });
    this.remember();
    this.gesture = null;
    this.set("view" in part ? next : checkState({ view: viewOf(next.points, next.mode) }, next));
  }

  endGesture() {
    this.gesture = null;
  }

  remember() {
    this.past.push(this.state);
    if (this.past.length > MOST_UNDO) this.past.shift();
    this.future.length = 0;
  }

  get canUndo() {
    return this.past.length > 0;
  }

  get canRedo() {
    return this.future.length > 0;
  }

  undo() {
    this.travel(this.past, this.future);
  }

  redo() {
    this.travel(this.future, this.past);
  }

  /** @param {State[]} from @param {State[]} to */
  travel(from, to) {
    const state = from.pop();
    if (!state) return;
    to.push(this.state);
    this.gesture = null;
    this.set(checkState({ show: this.state.show, selected: null }, state));
  }

  /** @param {State} next */
  set(next) {
    const previous = this.state;
    this.state = next;
    for (const listener of this.listeners) listener(next, previous);
  }
}
