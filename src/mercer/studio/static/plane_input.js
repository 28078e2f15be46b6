/**
 * Input on the plane: mouse, touch and keyboard become changes of the points.
 *
 * Tools: "move" (click adds, dragging a point moves it, a click on a point selects it), "paint" (a brush that scatters
 * points) and "erase". Keys: arrows move the cross or the selected point, Enter adds, N and P walk through the points,
 * Delete removes, digits choose the class, Escape lets go.
 */
import { MOST_POINTS } from "./store.js";

const TOUCH = 22; // pixels between a finger and its point
const BRUSH = 34; // radius in pixels
const SPACING = 26; // pixels between two dabs of the brush
const DAB = 2; // points per dab

export class PlaneInput {
  /** @param {any} plane the <mercer-plane> @param {SVGElement} surface */
  constructor(plane, surface) {
    this.plane = plane;
    this.surface = surface;
    /** @type {null | {kind: string, index: number, moved: boolean, start: number[], last: number[], offset: number[], gesture: string, added: boolean, view: number[]}} */
    this.drag = null;
    this.count = 0;
    /** @type {number[] | null} */ this.pending = null;
    // a finger on a point or with a brush draws; elsewhere it scrolls the page up and down (touch-action: pan-y)
    surface.addEventListener("touchstart", (event) => this.touch(/** @type {TouchEvent} */ (event)), { passive: false });
    surface.addEventListener("pointerdown", (event) => this.down(/** @type {PointerEvent} */ (event)));
    surface.addEventListener("pointermove", (event) => this.move(/** @type {PointerEvent} */ (event)));
    surface.addEventListener("pointerup", (event) => this.up(/** @type {PointerEvent} */ (event)));
    surface.addEventListener("pointercancel", (event) => this.up(/** @type {PointerEvent} */ (event)));
    surface.addEventListener("pointerleave", () => !this.drag && this.plane.hoverAt(null, null));
    surface.addEventListener("contextmenu", (event) => this.erase(/** @type {MouseEvent} */ (event)));
    surface.addEventListener("wheel", (event) => this.wheel(/** @type {WheelEvent} */ (event)), { passive: false });
    surface.addEventListener("keydown", (event) => this.key(/** @type {KeyboardEvent} */ (event)));
  }

  /** @param {MouseEvent} event @returns {[number, number]} pixels in the plane */
  at(event) {
    const box = this.surface.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  /** @param {TouchEvent} event */
  touch(event) {
    const box = this.surface.getBoundingClientRect();
    const { clientX, clientY } = event.touches[0];
    if (this.plane.tool !== "move" || this.plane.hit([clientX - box.left, clientY - box.top], TOUCH) !== null) event.preventDefault();
  }

  /** @param {PointerEvent} event */
  down(event) {
    if (event.button === 2 || this.drag) return;
    const place = this.at(event);
    this.surface.setPointerCapture(event.pointerId);
    /** @type {HTMLElement} */ (/** @type {any} */ (this.surface)).focus({ preventScroll: true });
    event.preventDefault();
    this.plane.keyboard = false;
    const gesture = `hand-${++this.count}`;
    const base = { index: -1, moved: false, start: place, last: place, offset: [0, 0], gesture, added: false, view: this.plane.view };
    if (event.button === 1 || event.shiftKey) this.drag = { ...base, kind: "pan" };
    else if (this.plane.tool === "paint") {
      this.drag = { ...base, kind: "paint" };
      this.dab(place);
    } else if (this.plane.tool === "erase") {
      this.drag = { ...base, kind: "erase" };
      this.eraseAt(place, event.pointerType === "touch");
    } else {
      let index = this.plane.hit(place, event.pointerType === "touch" ? TOUCH : 13);
      let added = false;
      if (index === null && event.pointerType === "touch") {
        // the finger may scroll the page: the point is added once it lifts
        this.drag = { ...base, kind: "tap" };
        return;
      }
      if (index === null) {
        const [x, y] = this.plane.toData(...place);
        index = this.plane.add(x, y, gesture);
        added = index !== null;
      }
      if (index === null) return;
      const [px, py] = this.plane.pixelsOf(index);
      this.drag = { ...base, kind: "move", index, added, offset: [px - place[0], py - place[1]] };
      this.plane.dragging = index;
      if (added) this.plane.select(null);
    }
    this.plane.hold(true);
  }

  /** @param {PointerEvent} event */
  move(event) {
    const place = this.at(event);
    const drag = this.drag;
    if (!drag) {
      this.plane.hoverAt(this.plane.hit(place, 11), place);
      return;
    }
    if (!drag.moved && Math.hypot(place[0] - drag.start[0], place[1] - drag.start[1]) < 4) return;
    drag.moved = true;
    // one change per picture, however many events the mouse sends
    if (this.pending) {
      this.pending = place;
      return;
    }
    this.pending = place;
    requestAnimationFrame(() => {
      const newest = this.pending;
      this.pending = null;
      if (newest && this.drag === drag) this.apply(drag, newest);
    });
  }

  /** @param {NonNullable<PlaneInput["drag"]>} drag @param {number[]} place */
  apply(drag, place) {
    if (drag.kind === "move") {
      const [x, y] = this.plane.toData(place[0] + drag.offset[0], place[1] + drag.offset[1]);
      this.plane.moveTo(drag.index, x, y, drag.gesture);
    } else if (drag.kind === "paint") {
      if (Math.hypot(place[0] - drag.last[0], place[1] - drag.last[1]) < SPACING) return this.plane.hoverAt(null, place);
      this.dab(place);
    } else if (drag.kind === "erase") this.eraseAt(place, false);
    else if (drag.kind === "pan") {
      const [x0, x1, y0, y1] = drag.view;
      const dx = ((place[0] - drag.start[0]) / this.plane.width) * (x1 - x0);
      const dy = ((place[1] - drag.start[1]) / this.plane.height) * (y1 - y0);
      this.plane.setView([x0 - dx, x1 - dx, y0 + dy, y1 + dy]);
    }
    drag.last = place;
    if (drag.kind === "tap") return;
    this.plane.hoverAt(drag.kind === "move" ? drag.index : null, place);
  }

  /** @param {PointerEvent} event */
  up(event) {
    const drag = this.drag;
    if (!drag) return;
    if (this.pending && drag.moved) this.apply(drag, this.at(event));
    if (drag.kind === "tap" && event.type === "pointerup" && !drag.moved) {
      this.plane.add(...this.plane.toData(...drag.start), drag.gesture);
      this.plane.select(null);
    }
    this.pending = null;
    this.drag = null;
    this.plane.dragging = null;
    if (drag.kind === "move" && !drag.moved && !drag.added) this.plane.select(this.plane.state.selected === drag.index ? null : drag.index);
    this.plane.endGesture();
    this.plane.hold(false);
  }

  /** @param {number[]} place */
  dab(place) {
    const points = [];
    for (let k = 0; k < DAB; k++) {
      // uniform in the disc of the brush
      const radius = BRUSH * Math.sqrt(Math.random());
      const angle = 2 * Math.PI * Math.random();
      points.push(this.plane.toData(place[0] + radius * Math.cos(angle), place[1] + radius * Math.sin(angle)));
    }
    this.plane.addMany(points, this.drag?.gesture);
  }

  /** @param {number[]} place @param {boolean} touch */
  eraseAt(place, touch) {
    const index = this.plane.hit(place, touch ? TOUCH : 14);
    if (index !== null) this.plane.remove(index, this.drag?.gesture);
  }

  /** The secondary button removes the point under it. @param {MouseEvent} event */
  erase(event) {
    event.preventDefault();
    const index = this.plane.hit(this.at(event), 13);
    if (index !== null) this.plane.remove(index, null);
  }

  /** @param {WheelEvent} event */
  wheel(event) {
    if (!event.ctrlKey && !event.metaKey) return; // plain scrolling belongs to the page
    event.preventDefault();
    this.plane.zoom(Math.exp(Math.max(-50, Math.min(50, event.deltaY)) * 0.01), this.at(event));
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const plane = this.plane;
    const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const arrow = arrows[/** @type {"ArrowUp"} */ (event.key)];
    const selected = plane.state.selected;
    const n = plane.state.points.length;
    if (arrow) {
      const step = event.shiftKey ? 40 : 8;
      if (selected !== null) {
        const [px, py] = plane.pixelsOf(selected);
        plane.moveTo(selected, ...plane.toData(px + arrow[0] * step, py + arrow[1] * step), `keys-${selected}`);
        plane.announceSoon();
      } else plane.moveCross(arrow[0] * step, arrow[1] * step);
    } else if (event.key === "Enter" || event.key === " ") {
      if (n < MOST_POINTS) plane.addAtCross();
    } else if (event.key === "n" || event.key === "p") {
      if (n) plane.selectAloud(event.key === "n" ? ((selected ?? -1) + 1) % n : ((selected ?? 0) - 1 + n) % n);
    } else if (event.key === "Delete" || event.key === "Backspace") {
      if (selected !== null) plane.remove(selected, null, true);
    } else if (event.key === "Escape") {
      plane.select(null);
    } else if (/^[0-9]$/.test(event.key) && plane.state.mode === "classify") {
      plane.chooseClass(Number(event.key), selected);
    } else if (event.key === "+" || event.key === "=") plane.zoom(0.8);
    else if (event.key === "-") plane.zoom(1.25);
    else return;
    plane.keyboard = true;
    event.preventDefault();
    plane.draw();
  }
}
