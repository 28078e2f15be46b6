/**
 * <mercer-gram>: the Gram matrix as an image, sorted by class, in step with the selection. A click on a cell marks its pair.
 */

import { Panel, colour, define, h, kernelKey, name, number, prepareCanvas } from "./panel.js";

/** Colours from low to high: a scale whose lightness grows evenly, readable without colour vision. */
const SCALE = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
/** With values below 0: blue below, white at 0, orange above. */
const SIGNED = [[33, 102, 172], [146, 197, 222], [247, 247, 247], [244, 165, 90], [178, 84, 4]];

/**
 * @param {number[][]} scale
 * @param {number} part from 0 to 1
 * @returns {[number, number, number]}
 */
export function shade(scale, part) {
  const place = Math.max(0, Math.min(1, Number.isFinite(part) ? part : 0)) * (scale.length - 1);
  const k = Math.min(scale.length - 2, Math.floor(place));
  const [a, b] = [scale[k], scale[k + 1]];
  return /** @type {any} */ (a.map((value, c) => Math.round(value + (place - k) * (b[c] - value))));
}

export { SCALE };

/** The picture of the Gram matrix: see the head of this file. */
export class Gram extends Panel {
  build() {
    this.setAttribute("role", "group");
    this.setAttribute("aria-label", "Gram matrix");
    this.canvas = /** @type {HTMLCanvasElement} */ (h("canvas", { class: "mp-gram", tabindex: 0, role: "application",
      "aria-roledescription": "matrix", "aria-label": "Gram matrix: arrow keys move over the cells, Enter marks the pair" }));
    this.readout = h("p", { class: "mp-words", role: "status", text: "Point at a cell to read k(x, z); click to mark the pair." });
    this.scale = /** @type {HTMLCanvasElement} */ (h("canvas", { class: "mp-scale", "aria-hidden": "true" }));
    this.low = h("span");
    this.high = h("span");
    this.note = h("p", { class: "mp-muted" });
    this.append(this.canvas, h("div", { class: "mp-scale-row" }, this.low, this.scale, this.high), this.readout, this.errorLine(), this.note);
    this.canvas.addEventListener("pointermove", (event) => this.read(this.cellAt(event)));
    this.canvas.addEventListener("pointerleave", () => this.read(this.marked()));
    this.canvas.addEventListener("click", (event) => this.mark(this.cellAt(event)));
    this.canvas.addEventListener("keydown", (event) => this.keyed(event));
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    /** @type {any} */ this.answer = null;
    /** @type {[number, number] | null} row and column */ this.cell = null;
    /** @type {number | null} */ this.other = null;
  }

  stateChanged() {
    if (this.state?.selected === null || this.state?.selected === undefined) this.other = null;
    this.load();
    this.draw();
  }

  activeChanged() {
    this.load();
    this.draw();
  }

  themeChanged() {
    this.draw();
  }

  load() {
    this.askOnce("gram", kernelKey, (answer) => this.take(answer), () => {
      this.answer = null;
      this.draw();
    }, 60);
  }

  /** @param {any} answer */
  take(answer) {
    this.answer = answer;
    const n = answer.matrix.length;
    this.image = null;
    const all = this.state.points.length;
    this.note.textContent = n < all
      ? `${n} of ${all} points, sorted by class.`
      : "Rows and columns are the points, sorted by class: a kernel that fits the classes shows bright blocks.";
    this.low.textContent = number(answer.low, 3);
    this.high.textContent = number(answer.high, 3);
    if (this.cell && (this.cell[0] >= n || this.cell[1] >= n)) this.cell = null;
    this.draw();
  }

  /** Whether some values are clearly below 0. */
  get signed() {
    return this.answer && this.answer.low < -1e-9 * Math.abs(this.answer.high);
  }

  /** The place of a value on the scale. @param {number} value */
  part(value) {
    const { low, high } = this.answer;
    if (this.signed) {
      const reach = Math.max(-low, high) || 1;
      return 0.5 + 0.5 * (value / reach);
    }
    return high > low ? (value - low) / (high - low) : 0.5;
  }

  draw() {
    if (!this.canvas || !this.active) return;
    const { pen, width, height } = prepareCanvas(this.canvas);
    if (!this.answer?.matrix.length) return;
    const { matrix } = this.answer;
    const n = matrix.length;
    const scale = this.signed ? SIGNED : SCALE;
    if (!this.image) {
      this.image = document.createElement("canvas");
      this.image.width = n;
      this.image.height = n;
      const inner = /** @type {CanvasRenderingContext2D} */ (this.image.getContext("2d"));
      const pixels = inner.createImageData(n, n);
      for (let row = 0; row < n; row++) {
        for (let column = 0; column < n; column++) {
          const place = 4 * (row * n + column);
          pixels.data.set([...shade(scale, this.part(matrix[row][column])), 255], place);
        }
      }
      inner.putImageData(pixels, 0, 0);
    }
    pen.imageSmoothingEnabled = false;
    pen.drawImage(this.image, 0, 0, width, height);
    this.drawClasses(pen, width, height, n);
    const marked = this.marked();
    const ink = colour(this, "--mp-ring");
    const line = (/** @type {number} */ row, /** @type {boolean} */ across, /** @type {number[]} */ dash) => {
      pen.setLineDash(dash);
      const place = ((row + 0.5) / n) * (across ? height : width);
      for (const [shadeOf, thick] of /** @type {[string, number][]} */ ([["#000", 3], [ink, 1.4]])) {
        pen.strokeStyle = shadeOf;
        pen.lineWidth = thick;
        pen.beginPath();
        if (across) { pen.moveTo(0, place); pen.lineTo(width, place); } else { pen.moveTo(place, 0); pen.lineTo(place, height); }
        pen.stroke();
      }
      pen.setLineDash([]);
    };
    if (marked) {
      line(marked[0], true, []);
      line(marked[1], false, marked[0] === marked[1] ? [] : [5, 4]);
    }
    if (this.cell && document.activeElement === this.canvas) {
      const size = width / n;
      pen.strokeStyle = "#000";
      pen.lineWidth = 4;
      const [x, y] = [this.cell[1] * size, (this.cell[0] * height) / n];
      const [w, t] = [Math.max(size, 6), Math.max(height / n, 6)];
      pen.strokeRect(x, y, w, t);
      pen.strokeStyle = "#fff";
      pen.lineWidth = 2;
      pen.strokeRect(x, y, w, t);
    }
    this.drawScale(scale);
  }

  /** Thin lines between the classes. @param {CanvasRenderingContext2D} pen @param {number} width @param {number} height @param {number} n */
  drawClasses(pen, width, height, n) {
    const { order, labels } = this.answer;
    const label = (/** @type {number} */ k) => (labels ? labels[k] : this.state.points[order[k]]?.[2]);
    pen.strokeStyle = "rgba(255, 255, 255, 0.85)";
    pen.lineWidth = 1;
    pen.beginPath();
    for (let k = 1; k < n; k++) {
      if (label(k) === label(k - 1)) continue;
      pen.moveTo((k / n) * width, 0);
      pen.lineTo((k / n) * width, height);
      pen.moveTo(0, (k / n) * height);
      pen.lineTo(width, (k / n) * height);
    }
    pen.stroke();
  }

  /** @param {number[][]} scale */
  drawScale(scale) {
    const { pen, width, height } = prepareCanvas(this.scale);
    const { low, high } = this.answer;
    for (let x = 0; x < width; x++) {
      pen.fillStyle = `rgb(${shade(scale, this.part(low + (x / width) * (high - low))).join(",")})`;
      pen.fillRect(x, 0, 1.5, height);
    }
  }

  /** The marked cell: row of the selected point, column of the other one. @returns {[number, number] | null} */
  marked() {
    const { selected } = this.state ?? {};
    if (!this.answer || selected === null || selected === undefined) return null;
    const row = this.answer.order.indexOf(selected);
    if (row < 0) return null;
    const column = this.other === null ? row : this.answer.order.indexOf(this.other);
    return [row, column < 0 ? row : column];
  }

  /** @param {MouseEvent} event @returns {[number, number] | null} */
  cellAt(event) {
    if (!this.answer?.matrix.length) return null;
    const area = this.canvas.getBoundingClientRect();
    const n = this.answer.matrix.length;
    const row = Math.floor(((event.clientY - area.top) / area.height) * n);
    const column = Math.floor(((event.clientX - area.left) / area.width) * n);
    return row < 0 || column < 0 || row >= n || column >= n ? null : [row, column];
  }

  /** @param {[number, number] | null} cell */
  read(cell) {
    if (!cell || !this.answer) return;
    const [i, j] = cell.map((k) => this.answer.order[k]);
    const classes = [i, j].map((k) => this.state.points[k]?.[2]);
    const kind = this.state.mode !== "classify" ? "" : classes[0] === classes[1] ? " (same class)" : " (different classes)";
    this.readout.textContent = `k(x${name(i)}, x${name(j)}) = ${number(this.answer.matrix[cell[0]][cell[1]])}${kind}`;
  }

  /** @param {[number, number] | null} cell */
  mark(cell) {
    if (!cell) return;
    this.cell = cell;
    const [i, j] = cell.map((k) => this.answer.order[k]);
    this.other = j;
    this.read(cell);
    this.emit("select", { index: i, other: j });
    this.draw();
  }

  /** @param {KeyboardEvent} event */
  keyed(event) {
    if (!this.answer?.matrix.length) return;
    const n = this.answer.matrix.length;
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const move = moves[/** @type {keyof typeof moves} */ (event.key)];
    if (move) {
      const [row, column] = this.cell ?? this.marked() ?? [0, 0];
      this.cell = [Math.max(0, Math.min(n - 1, row + move[0])), Math.max(0, Math.min(n - 1, column + move[1]))];
      this.read(this.cell);
      this.draw();
    } else if (event.key === "Enter" || event.key === " ") this.mark(this.cell ?? [0, 0]);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

define("mercer-gram", Gram);
