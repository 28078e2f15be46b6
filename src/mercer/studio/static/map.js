/**
 * <mercer-map>: held-out accuracy over γ and C as a table of buttons. A click goes there.
 */

import { SCALE, shade } from "./gram.js";
import { Panel, define, h, machineKey, number, percent } from "./panel.js";

const GAMMAS = [-2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2].map((power) => 10 ** power);
const ONLY = "The map is for classification.";
const COSTS = [-2, -1, 0, 1, 2, 3, 4].map((power) => 10 ** power);

/** The γ of a kernel's text, or null. @param {string} text @returns {number | null} */
export function gammaOf(text) {
  const found = /gamma\s*=\s*([0-9.eE+-]+)/.exec(text ?? "");
  const value = found ? Number(found[1]) : NaN;
  return Number.isFinite(value) ? value : null;
}

/** The kernel's text with another γ; a kernel without one becomes Gaussian. @param {string} text @param {number} gamma */
export function withGamma(text, gamma) {
  const short = String(Number(gamma.toPrecision(4)));
  return gammaOf(text) === null ? `gaussian(gamma=${short})` : text.replace(/gamma\s*=\s*[0-9.eE+-]+/, `gamma=${short}`);
}

/** The map of held-out accuracies: see the head of this file. */
export class SearchMap extends Panel {
  build() {
    this.setAttribute("role", "group");
    this.setAttribute("aria-label", "Map of held-out accuracy over gamma and C");
    this.start = h("button", { type: "button", onclick: () => this.load(true), text: "compute the map" });
    this.words = h("p", { class: "mp-words", role: "status" });
    this.table = h("div", { class: "mp-map", role: "grid", "aria-label": "Accuracy; rows are C, columns are γ" });
    this.best = h("button", { type: "button", hidden: true, text: "go to the best ★" });
    this.note = h("p", { class: "mp-muted" });
    this.append(h("div", { class: "mp-row" }, this.start, this.best), this.errorLine(), this.words, this.table, this.note);
    this.table.addEventListener("keydown", (event) => this.keyed(event));
    /** @type {any} */ this.answer = null;
    /** @type {HTMLElement[][]} rows from the largest C down */ this.cells = [];
    this.key = "";
  }

  stateChanged() {
    const classify = !this.state || this.state.mode === "classify";
    if (!classify) this.clear();
    this.start.toggleAttribute("disabled", !classify);
    if (!classify) return;
    if (this.words.textContent === ONLY) this.words.textContent = "";
    const key = this.keyOf();
    this.start.textContent = this.answer && key !== this.key ? "compute again for these points" : "compute the map";
    this.start.hidden = Boolean(this.answer) && key === this.key;
    this.table.classList.toggle("mp-stale", Boolean(this.answer) && key !== this.key);
    this.place();
  }

  /** No map in other modes. */
  clear() {
    this.answer = null;
    this.cells = [];
    this.table.replaceChildren();
    this.best.hidden = true;
    this.start.hidden = false;
    this.start.textContent = "compute the map";
    this.note.textContent = "";
    this.words.textContent = ONLY;
    this.fail(null);
  }

  activeChanged() {
    if (this.active && !this.answer) this.load(false);
  }

  /** The parts of the state that the map depends on: all but γ and C. */
  keyOf() {
    if (!this.state) return "";
    return machineKey({ ...this.state, C: 0, kernel: withGamma(this.state.kernel, 1), view: 0 });
  }

  /** @param {boolean} asked by the reader; else only for few points */
  load(asked) {
    if (!this.active || !this.state) return;
    if (this.state.mode !== "classify") return;
    if (!asked && this.state.points.length > 120) return;
    const key = this.keyOf();
    this.words.textContent = "Computing held-out accuracies …";
    this.start.setAttribute("disabled", "");
    this.askNewest("search_map", { state: this.state, gammas: GAMMAS, Cs: COSTS }, (answer) => {
      if (this.state.mode !== "classify") return;
      this.fail(null);
      this.answer = answer;
      this.key = key;
      this.start.removeAttribute("disabled");
      this.draw();
      this.stateChanged();
    }, (error) => {
      this.start.removeAttribute("disabled");
      this.words.textContent = "";
      this.fail(error);
    });
  }

  draw() {
    const { Cs, scores, best, method } = this.answer;
    // a kernel without a width has a single column
    const gammas = this.answer.gammas ?? [null];
    const all = scores.flat().filter(Number.isFinite);
    const [low, high] = [Math.min(...all), Math.max(...all)];
    this.table.style.setProperty("--mp-columns", String(gammas.length));
    this.table.replaceChildren();
    this.cells = [];
    for (let c = Cs.length - 1; c >= 0; c--) {
      const row = h("div", { role: "row", class: "mp-map-row" }, h("span", { class: "mp-map-name", role: "rowheader", text: number(Cs[c], 2) }));
      this.cells.push(gammas.map((/** @type {number | null} */ gamma, /** @type {number} */ g) => {
        const value = scores[g][c];
        const part = high > low ? (value - low) / (high - low) : 1;
        const isBest = best && best.gamma === gamma && best.C === Cs[c];
        const label = `${gamma === null ? "" : `γ ${number(gamma, 3)}, `}C ${number(Cs[c], 3)}: ${percent(value)} right${isBest ? ", the best" : ""}`;
        const cell = h("button", { type: "button", role: "gridcell", class: "mp-map-cell", tabindex: -1, "aria-label": label,
          title: label, text: `${Number.isFinite(value) ? Math.round(100 * value) : "–"}${isBest ? "★" : ""}`, onclick: () => this.go(gamma, Cs[c]),
          onfocus: () => { this.words.textContent = label; }, onpointerenter: () => { this.words.textContent = label; } });
        const rgb = shade(SCALE, Number.isFinite(value) ? part : 0);
        cell.style.background = `rgb(${rgb.join(",")})`;
        cell.style.color = 0.3 * rgb[0] + 0.59 * rgb[1] + 0.11 * rgb[2] > 120 ? "#000" : "#fff";
        row.append(cell);
        return cell;
      }));
      this.table.append(row);
    }
    const foot = h("div", { class: "mp-map-row", role: "row" }, h("span", { class: "mp-map-name", role: "columnheader", text: "C ↑ γ →" }));
    for (const gamma of gammas) foot.append(h("span", { class: "mp-map-name", role: "columnheader", text: gamma === null ? "this kernel" : number(gamma, 2) }));
    this.table.append(foot);
    this.cells[0]?.[0]?.setAttribute("tabindex", "0");
    const how = method === "leave-one-out" ? "leaving out each point once" : method;
    this.words.textContent = best ? `Best: ${percent(best.score)} right at ${best.gamma === null ? "" : `γ = ${number(best.gamma, 3)}, `}C = ${number(best.C, 3)}.` : "";
    this.note.textContent = `Numbers are per cent right, by ${how}. The framed cell is the one nearest to the present machine.` +
      // a machine that always answers with the larger class never has the point that was left out right
      (low < 0.2 ? " Numbers near 0: the machine answers with the larger class, and the point that is left out makes its own class the smaller one." : "") +
      (this.answer.gammas ? "" : " This kernel has no width γ: choose a Gaussian kernel to search over it, too.");
    if (best) {
      this.best.hidden = false;
      this.best.onclick = () => this.go(best.gamma, best.C);
    }
    this.place();
  }

  /** Mark the cell nearest to the present γ and C. */
  place() {
    for (const cell of this.cells.flat()) {
      cell.classList.remove("mp-here");
      cell.removeAttribute("aria-current");
    }
    if (!this.answer || !this.state) return;
    const gamma = gammaOf(this.state.kernel);
    const C = this.state.C === "inf" ? Infinity : Number(this.state.C);
    const nearest = (/** @type {number[]} */ values, /** @type {number} */ here) => {
      const distances = values.map((value) => Math.abs(Math.log10(value) - Math.log10(here)));
      return distances.indexOf(Math.min(...distances));
    };
    const { Cs } = this.answer;
    const gammas = this.answer.gammas ?? [gamma ?? 1];
    if (gamma === null && this.answer.gammas) return;
    const row = Number.isFinite(C) ? Cs.length - 1 - nearest(Cs, C) : 0;
    const cell = this.cells[row]?.[nearest(gammas, gamma ?? 1)];
    if (!cell) return;
    cell.classList.add("mp-here");
    cell.setAttribute("aria-current", "true");
    for (const other of this.cells.flat()) other.setAttribute("tabindex", other === cell ? "0" : "-1");
  }

  /** @param {number | null} gamma @param {number} C */
  go(gamma, C) {
    const kernel = gamma === null ? this.state.kernel : withGamma(this.state.kernel, gamma);
    this.emit("patch", { patch: { kernel, C }, label: `γ and C of the map` });
  }

  /** @param {KeyboardEvent} event */
  keyed(event) {
    const target = /** @type {HTMLElement} */ (event.target);
    const row = this.cells.findIndex((cells) => cells.includes(target));
    if (row < 0) return;
    const column = this.cells[row].indexOf(target);
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const move = moves[/** @type {keyof typeof moves} */ (event.key)];
    if (!move) return;
    event.preventDefault();
    event.stopPropagation();
    this.cells[row + move[0]]?.[column + move[1]]?.focus();
  }
}

define("mercer-map", SearchMap);
