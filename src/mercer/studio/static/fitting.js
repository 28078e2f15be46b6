/**
 * Decides which answer the page asks for after a change.
 *
 * A change of points or parameters asks for `fit` on a coarse grid at once (a newer change replaces a waiting one) and, after
 * a pause without changes, for the same machine on a fine grid. While C slides over its exact path, `at_C` answers instead:
 * it reads the machine off the path without a new fit. The path itself is asked for after a pause.
 *
 * @typedef {import("./store.js").State} State
 */

const HELD_CELLS = 3200; // while the user holds a point
const COARSE_CELLS = 4800;
const FINE_CELLS = 20000;
const REST = 220; // milliseconds without a change
const FITTED = ["mode", "points", "view", "kernel", "C", "loss", "bias", "epsilon", "nu", "quantiles", "noise"];
const PATH_FIELDS = ["mode", "points", "kernel", "loss", "bias"];

/** @param {State} a @param {State} b @param {string[]} fields */
function differ(a, b, fields) {
  return fields.some((field) => /** @type {any} */ (a)[field] !== /** @type {any} */ (b)[field]);
}

/** @param {State} state @returns {boolean} whether C has an exact path: two classes with the hinge loss */
export function hasPath(state) {
  return state.mode === "classify" && state.loss === "hinge" && new Set(state.points.map((point) => point[2])).size === 2;
}

export class Fitting {
  /**
   * @param {(name: string, payload: object) => Promise<any>} ask
   * @param {{view: (state: State) => number[], result: (result: any, state: State) => void, path: (path: any) => void,
   *   failed: (error: Error) => void, busy: (busy: boolean) => void}} listeners
   */
  constructor(ask, listeners) {
    this.ask = ask;
    this.listeners = listeners;
    this.sliding = false;
    this.holding = false;
    /** @type {State | null} the newest */ this.state = null;
    this.fits = 0;
    this.seconds = 0;
    this.pending = 0;
    /** the fine picture of the newest state is shown */ this.settled = false;
    this.version = 0;
    this.mode = "";
    /** @type {State | null} */ this.pathState = null;
    /** @type {any} */ this.timer = null;
  }

  /** @param {State} state @param {State | null} previous */
  changed(state, previous) {
    if (previous && !differ(state, previous, FITTED)) return;
    if (previous && differ(state, previous, PATH_FIELDS)) this.forgetPath();
    this.version++;
    this.mode = state.mode;
    this.settled = false;
    clearTimeout(this.timer);
    this.request(state, this.holding ? HELD_CELLS : COARSE_CELLS);
    if (!this.holding) this.timer = setTimeout(() => this.rested(state), REST);
    this.state = state;
  }

  /** While the user holds a point, only coarse machines are fitted; fine pictures and paths wait. @param {boolean} holding */
  hold(holding) {
    this.holding = holding;
    clearTimeout(this.timer);
    const state = this.state;
    if (!holding && state && !this.settled) this.timer = setTimeout(() => this.rested(state), REST);
  }

  forgetPath() {
    if (!this.pathState) return;
    this.pathState = null;
    this.listeners.path(null);
  }

  /** @param {State} state */
  async rested(state) {
    const version = this.version;
    const path = hasPath(state) && !this.pathState ? this.requestPath(state) : null;
    await this.request(state, FINE_CELLS);
    await path;
    if (version === this.version) this.settled = true;
  }

  /** @param {State} state @param {number} cells */
  async request(state, cells) {
    const view = this.listeners.view(state);
    const version = this.version;
    const payload = { state: { ...state, view, procedure: null, lesson: null, selected: null }, grid: gridShape(view, state.mode, cells) };
    const fromPath = this.sliding && this.pathState !== null && state.C !== "inf";
    this.busy(1);
    try {
      const result = fromPath ? await this.onPath(payload, state) : await this.ask("fit", payload);
      // a fine grid of an older machine must not replace a newer coarse one, nor a machine of another mode
      if (version === this.version || (cells <= COARSE_CELLS && state.mode === this.mode)) {
        this.fits++;
        this.seconds += result.seconds ?? 0;
        this.listeners.result(result, state);
      }
    } catch (error) {
      if (/** @type {Error} */ (error).name !== "AbortError" && version === this.version) this.listeners.failed(/** @type {Error} */ (error));
    } finally {
      this.busy(-1);
    }
  }

  /** The machine at C from the path; beyond the end of the path a fit. @param {any} payload @param {State} state */
  async onPath(payload, state) {
    try {
      return await this.ask("at_C", { ...payload, C: state.C });
    } catch (error) {
      if (/** @type {Error} */ (error).name !== "AnswerError") throw error;
      return this.ask("fit", payload);
    }
  }

  /** @param {State} state */
  async requestPath(state) {
    try {
      const path = await this.ask("path", { state: { ...state, C: state.C === "inf" ? 1 : state.C, procedure: null, lesson: null, selected: null } });
      this.pathState = state;
      this.listeners.path(path);
    } catch {
      this.listeners.path(null); // no path for this machine: the slider then fits anew
    }
  }

  /** @param {number} change */
  busy(change) {
    this.pending += change;
    this.listeners.busy(this.pending > 0);
  }
}

/** @param {number[]} view @param {string} mode @param {number} cells @returns {[number, number]} columns and rows of about this many cells */
export function gridShape(view, mode, cells) {
  if (mode !== "classify" && mode !== "one_class") return [cells > COARSE_CELLS ? 401 : 201, 2];
  const aspect = (view[1] - view[0]) / (view[3] - view[2]);
  const columns = Math.max(16, Math.min(256, Math.round(Math.sqrt(cells * aspect))));
  return [columns, Math.max(16, Math.min(256, Math.round(columns / aspect)))];
}
