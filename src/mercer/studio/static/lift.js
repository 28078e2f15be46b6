/**
 * <mercer-lift>: the points in feature space, in three dimensions, with the separating plane.
 *
 * For maps of two or three features the picture is exact; else it shows three kernel principal components. Drag or use the
 * arrow keys to turn it.
 */

import { classColour, markPath } from "./palette.js";
import { Panel, colour, define, h, machineKey, name, number, prepareCanvas } from "./panel.js";

const START = { turn: -0.6, tilt: 0.42 };
const TURN = 0.12;

/** @typedef {[number, number, number]} Place */

/**
 * The corners of a plane inside the cube [−1, 1]³, in order around it.
 * @param {Place} normal @param {number} offset of ⟨normal, z⟩ + offset = 0
 * @returns {Place[]}
 */
export function planeInCube(normal, offset) {
  /** @type {Place[]} */
  const found = [];
  for (let axis = 0; axis < 3; axis++) {
    for (const u of [-1, 1]) {
      for (const v of [-1, 1]) {
        if (Math.abs(normal[axis]) < 1e-12) continue;
        const [b, c] = [(axis + 1) % 3, (axis + 2) % 3];
        const value = -(offset + normal[b] * u + normal[c] * v) / normal[axis];
        if (value < -1 - 1e-9 || value > 1 + 1e-9) continue;
        const corner = /** @type {Place} */ ([0, 0, 0]);
        corner[axis] = value;
        corner[b] = u;
        corner[c] = v;
        found.push(corner);
      }
    }
  }
  if (found.length < 3) return [];
  const centre = [0, 1, 2].map((k) => found.reduce((sum, p) => sum + p[k], 0) / found.length);
  const first = found[0].map((value, k) => value - centre[k]);
  const second = [0, 1, 2].map((k) => normal[(k + 1) % 3] * first[(k + 2) % 3] - normal[(k + 2) % 3] * first[(k + 1) % 3]);
  const angle = (/** @type {Place} */ p) => {
    const d = p.map((value, k) => value - centre[k]);
    const dot = (/** @type {number[]} */ a) => d[0] * a[0] + d[1] * a[1] + d[2] * a[2];
    return Math.atan2(dot(second) / (Math.hypot(...second) || 1), dot(first) / (Math.hypot(...first) || 1));
  };
  return found.sort((a, b) => angle(a) - angle(b));
}

/** The lifted picture: see the head of this file. */
export class Lift extends Panel {
  build() {
    this.setAttribute("role", "group");
    this.setAttribute("aria-label", "Points in feature space");
    this.caption = h("p", { class: "mp-words" });
    this.canvas = /** @type {HTMLCanvasElement} */ (h("canvas", { class: "mp-lift", tabindex: 0, role: "application",
      "aria-roledescription": "picture in three dimensions", "aria-label": "Points in feature space: arrow keys turn the picture" }));
    this.readout = h("p", { class: "mp-muted", text: "Drag, or use the arrow keys, to turn; click a point to select it." });
    const button = (/** @type {string} */ text, /** @type {() => void} */ onclick) => h("button", { type: "button", text, onclick });
    this.append(this.caption, this.canvas, h("div", { class: "mp-row" },
      button("from above", () => this.look(0, Math.PI / 2)), button("edge of the plane", () => this.lookAlong()),
      button("start view", () => this.look(START.turn, START.tilt))), this.readout, this.errorLine());
    this.view = { ...START };
    /** @type {any} */ this.answer = null;
    /** @type {Place[]} the points in the cube */ this.places = [];
    this.canvas.addEventListener("pointerdown", (event) => this.grab(event));
    this.canvas.addEventListener("keydown", (event) => this.keyed(event));
    new ResizeObserver(() => this.draw()).observe(this.canvas);
  }

  stateChanged() {
    this.load();
    this.draw();
  }

  activeChanged() {
    this.load();
    this.draw();
  }

  resultChanged() {
    this.draw();
  }

  themeChanged() {
    this.draw();
  }

  /** Whether the samples are points of the plane. */
  get inPlane() {
    return ["classify", "one_class"].includes(this.state?.mode);
  }

  load() {
    this.canvas.hidden = !this.inPlane;
    if (!this.inPlane) {
      this.caption.textContent = "The feature space is drawn for classification and one-class machines.";
      this.key = "";
      clearTimeout(this._timer);
      return;
    }
    this.askOnce("lift", machineKey, (answer) => this.inPlane && this.take(answer), () => {
      this.answer = null;
      this.draw();
    }, 80);
  }

  /** @param {any} answer */
  take(answer) {
    this.answer = answer;
    const { points, plane } = answer;
    // each axis is scaled to [−1, 1]: z = centre + half · u
    const ends = [0, 1, 2].map((k) => {
      const values = points.map((/** @type {number[]} */ p) => p[k]);
      return [Math.min(...values), Math.max(...values)];
    });
    const centre = ends.map(([low, high]) => (low + high) / 2);
    const half = ends.map(([low, high]) => (high - low) / 2 || 1);
    this.ends = ends;
    this.places = points.map((/** @type {number[]} */ p) => p.map((value, k) => (value - centre[k]) / half[k]));
    this.corners = [];
    this.normal = null;
    if (plane) {
      const normal = /** @type {Place} */ (plane.normal.map((/** @type {number} */ w, /** @type {number} */ k) => w * half[k]));
      const offset = plane.offset + plane.normal.reduce((/** @type {number} */ sum, /** @type {number} */ w, /** @type {number} */ k) => sum + w * centre[k], 0);
      this.normal = normal;
      this.offset = offset;
      this.corners = planeInCube(normal, offset);
    }
    const kind = answer.exact === false ? " The picture is a projection: distances are not exact." : "";
    this.caption.textContent = `${answer.text ?? ""}${kind}${plane || !points.length ? "" : " There is no single plane to draw."}`;
    this.canvas.setAttribute("aria-label", `${this.caption.textContent} Arrow keys turn the picture.`);
    this.draw();
  }

  /** Project a place of the cube: x to the right, y up, and the depth. @param {number[]} p @returns {Place} */
  project([a, b, c]) {
    const { turn, tilt } = this.view;
    const x = Math.cos(turn) * a - Math.sin(turn) * b;
    const deep = Math.sin(turn) * a + Math.cos(turn) * b;
    return [x, Math.cos(tilt) * c + Math.sin(tilt) * deep, Math.cos(tilt) * deep - Math.sin(tilt) * c];
  }

  draw() {
    if (!this.canvas || !this.active) return;
    const { pen, width, height } = prepareCanvas(this.canvas);
    if (!this.answer?.points.length) return;
    const scale = Math.min(width, height) / 3.7;
    const to = (/** @type {number[]} */ p) => {
      const [x, y, deep] = this.project(p);
      // a slight perspective: what is farther is smaller
      const size = 1 / (1 + 0.12 * deep);
      return [width / 2 + scale * x * size, height / 2 - scale * y * size, deep, size];
    };
    this.drawAxes(pen, to);
    const behind = this.facing();
    const items = this.places.map((p, index) => ({ index, place: to(p), front: behind === 0 || this.side(p) === behind }));
    items.sort((a, b) => b.place[2] - a.place[2]);
    /** @type {[number, number, number][]} places on the screen */
    this.screen = [];
    // points on the far side of the plane, the plane, points on the near side
    for (const item of items.filter((one) => !one.front)) this.drawPoint(pen, item);
    this.drawPlane(pen, to);
    for (const item of items.filter((one) => one.front)) this.drawPoint(pen, item);
  }

  /** The side of the plane that faces the reader: 1, −1, or 0 without a plane. */
  facing() {
    if (!this.normal) return 0;
    const { turn, tilt } = this.view;
    // the direction to the reader: where the depth falls
    const toward = [-Math.cos(tilt) * Math.sin(turn), -Math.cos(tilt) * Math.cos(turn), Math.sin(tilt)];
    return Math.sign(toward.reduce((sum, value, k) => sum + value * /** @type {number[]} */ (this.normal)[k], 0)) || 1;
  }

  /** @param {number[]} p */
  side(p) {
    const normal = /** @type {number[]} */ (this.normal);
    return Math.sign(p.reduce((sum, value, k) => sum + value * normal[k], /** @type {number} */ (this.offset))) || 1;
  }

  /** @param {CanvasRenderingContext2D} pen @param {(p: number[]) => number[]} to */
  drawAxes(pen, to) {
    const ink = colour(this, "--mp-muted");
    pen.strokeStyle = colour(this, "--mp-line");
    pen.lineWidth = 1;
    /** @type {Place[]} */
    const corners = [[-1, -1, -1], [1, -1, -1], [1, 1, -1], [-1, 1, -1]];
    pen.beginPath();
    corners.forEach((corner, k) => {
      const [x, y] = to(corner);
      if (k) pen.lineTo(x, y); else pen.moveTo(x, y);
    });
    pen.closePath();
    pen.stroke();
    const names = this.answer.axes ?? ["z₁", "z₂", "z₃"];
    pen.fillStyle = ink;
    pen.font = "13px system-ui, sans-serif";
    pen.textAlign = "center";
    for (let axis = 0; axis < 3; axis++) {
      const [from, end] = [[-1, -1, -1], [-1, -1, -1]];
      end[axis] = 1.12;
      const [x0, y0] = to(from);
      const [x1, y1] = to(end);
      pen.strokeStyle = ink;
      pen.beginPath();
      pen.moveTo(x0, y0);
      pen.lineTo(x1, y1);
      pen.stroke();
      end[axis] = 1.3;
      const [x, y] = to(end);
      pen.fillText(names[axis] ?? "", x, y + 4);
    }
  }

  /** @param {CanvasRenderingContext2D} pen @param {(p: number[]) => number[]} to */
  drawPlane(pen, to) {
    if (!this.corners?.length) return;
    pen.beginPath();
    this.corners.forEach((corner, k) => {
      const [x, y] = to(corner);
      if (k) pen.lineTo(x, y); else pen.moveTo(x, y);
    });
    pen.closePath();
    pen.globalAlpha = 0.28;
    pen.fillStyle = colour(this, "--mp-plane");
    pen.fill();
    pen.globalAlpha = 1;
    pen.strokeStyle = colour(this, "--mp-plane");
    pen.lineWidth = 1.5;
    pen.stroke();
  }

  /** @param {CanvasRenderingContext2D} pen @param {{index: number, place: number[]}} item */
  drawPoint(pen, { index, place: [x, y, , size] }) {
    this.screen?.push([x, y, index]);
    const label = this.state.points[index]?.[2] ?? 0;
    pen.save();
    pen.translate(x, y);
    const shape = new Path2D(markPath(label, 5 * size));
    pen.fillStyle = classColour(label);
    pen.fill(shape);
    pen.strokeStyle = colour(this, "--mp-paper");
    pen.lineWidth = 1;
    pen.stroke(shape);
    pen.restore();
    const kind = this.result?.points?.state?.[index];
    const support = kind === "free" || kind === "bound";
    const selected = index === this.state.selected;
    if (support || selected) {
      pen.strokeStyle = selected ? colour(this, "--mp-accent") : colour(this, "--mp-ink");
      pen.lineWidth = selected ? 3 : 1.3;
      pen.beginPath();
      pen.arc(x, y, (selected ? 11 : 8.5) * size, 0, 2 * Math.PI);
      pen.stroke();
    }
  }

  /** @param {number} turn @param {number} tilt */
  look(turn, tilt) {
    this.view = { turn, tilt };
    this.draw();
  }

  /** Look along the plane, so that it is a line. */
  lookAlong() {
    if (!this.normal) return;
    const [a, b, c] = this.normal;
    // the direction to the reader is orthogonal to the normal
    this.look(Math.atan2(b, -a), Math.abs(c) < 1e-9 ? 0.3 : 0);
  }

  /** @param {PointerEvent} event */
  grab(event) {
    this.canvas.focus();
    this.canvas.setPointerCapture(event.pointerId);
    const from = { x: event.clientX, y: event.clientY, ...this.view };
    let moved = false;
    const move = (/** @type {PointerEvent} */ now) => {
      const [dx, dy] = [now.clientX - from.x, now.clientY - from.y];
      moved ||= Math.hypot(dx, dy) > 4;
      if (moved) this.look(from.turn - dx / 120, Math.max(-1.57, Math.min(1.57, from.tilt + dy / 120)));
    };
    const end = (/** @type {PointerEvent} */ now) => {
      this.canvas.removeEventListener("pointermove", move);
      this.canvas.removeEventListener("pointerup", end);
      this.canvas.removeEventListener("pointercancel", end);
      if (!moved && now.type === "pointerup") this.pick(now);
    };
    this.canvas.addEventListener("pointermove", move);
    this.canvas.addEventListener("pointerup", end);
    this.canvas.addEventListener("pointercancel", end);
  }

  /** Select the point under the pointer. @param {PointerEvent} event */
  pick(event) {
    const area = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - area.left, event.clientY - area.top];
    let [best, found] = [14, -1];
    for (const [px, py, index] of this.screen ?? []) {
      const distance = Math.hypot(px - x, py - y);
      if (distance < best) [best, found] = [distance, index];
    }
    if (found < 0) return;
    const names = this.answer.axes ?? [];
    const place = this.answer.points[found].map((/** @type {number} */ value, /** @type {number} */ k) => `${names[k] ?? ""} = ${number(value, 3)}`);
    this.readout.textContent = `Point ${name(found)}: ${place.join(", ")}`;
    this.emit("select", { index: found });
  }

  /** @param {KeyboardEvent} event */
  keyed(event) {
    const { turn, tilt } = this.view;
    if (event.key === "ArrowLeft") this.look(turn + TURN, tilt);
    else if (event.key === "ArrowRight") this.look(turn - TURN, tilt);
    else if (event.key === "ArrowUp") this.look(turn, Math.min(1.57, tilt + TURN));
    else if (event.key === "ArrowDown") this.look(turn, Math.max(-1.57, tilt - TURN));
    else if (event.key === "Home") this.look(START.turn, START.tilt);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

define("mercer-lift", Lift);
