/**
 * <mercer-plane>: the points and the machine. A canvas holds regions and lines, an SVG above it the points.
 *
 * Properties in: state, result, frame (the machine of one step, from the stepper), other (a second marked point), axes, dark.
 * Events out: patch, select, ask (point), hold (the user is editing the plane), gesture-end, resized, notice.
 */
import { fieldOf, valueAt } from "./contours.js";
import { define, html, send, svg, tidy } from "./dom.js";
import { classColour, className } from "./palette.js";
import { paintShapes, writeShapes } from "./pen.js";
import { PointCard } from "./plane_card.js";
import { PlaneInput } from "./plane_input.js";
import { PointLayer, describePoint } from "./plane_points.js";
import { buildTools } from "./plane_tools.js";
import { paintRegions } from "./regions.js";
import { PLANE_MODES, buildScene, toPixels } from "./scene.js";
import { MOST_POINTS, viewOf } from "./store.js";

const AXES = { classify: { x: "x₁", y: "x₂" }, one_class: { x: "x₁", y: "x₂" }, regress: { x: "x", y: "y" }, quantiles: { x: "x", y: "y" }, process: { x: "x", y: "y" } };
const KEYS =
  "Arrow keys move the cross; Enter adds a point there. N and P walk through the points; then arrow keys move the selected point " +
  "(with Shift in larger steps), Delete removes it, digits choose its class, Escape lets go. Plus and minus zoom.";

class MercerPlane extends HTMLElement {
  constructor() {
    super();
    /** @type {any} */ this._state = null;
    /** @type {any} */ this._result = null;
    /** @type {any} */ this._frame = null;
    /** @type {number | null} */ this._other = null;
    /** @type {{x: string, y: string} | null} */ this._axes = null;
    this._dark = false;
    this.width = 600;
    this.height = 600;
    this.tool = "move";
    this.currentClass = 0;
    this.keyboard = false;
    /** @type {number | null} */ this.dragging = null;
    /** @type {number | null} */ this.hover = null;
    /** @type {number[]} */ this.cross = [0, 0];
    /** @type {any} */ this.resultState = null;
    this.scheduled = false;
    /** @type {any[] | null} what the canvas shows */ this.paintedFor = null;
    this.cardVersion = 0;
    /** @type {any} */ this.look = null;
  }

  connectedCallback() {
    if (this.canvas) return;
    this.canvas = html("canvas", { "aria-hidden": "true" });
    this.layer = svg("g", {});
    this.crossMark = svg("path", { class: "cross", d: "M-12,0H12M0,-12V12", visibility: "hidden" });
    this.brush = svg("circle", { class: "brush", r: 34, visibility: "hidden" });
    this.surface = svg("svg", { class: "surface", tabindex: 0, role: "application", "aria-roledescription": "plane of points", "aria-describedby": "mercer-plane-keys" }, this.layer, this.brush, this.crossMark);
    this.card = new PointCard();
    this.live = html("p", { class: "visually-hidden", role: "status", "aria-live": "polite" });
    this.readout = html("p", { class: "readout", "aria-hidden": "true" });
    this.banner = html("p", { class: "plane-banner", role: "status", hidden: true });
    this.stage = html("div", { class: "stage" }, this.canvas, this.surface, this.card.element, this.banner, this.readout);
    this.tools = buildTools(this);
    this.legend = html("div", { class: "legend" });
    this.append(this.tools.element, this.stage, this.legend, html("p", { id: "mercer-plane-keys", class: "visually-hidden", text: KEYS }), this.live);
    this.points = new PointLayer(this.layer);
    this.input = new PlaneInput(this, this.surface);
    this.surface.addEventListener("focus", () => this.draw());
    this.surface.addEventListener("blur", () => this.draw());
    new ResizeObserver(() => this.resize()).observe(this.stage);
    this.resize();
  }

  // ---- properties ------------------------------------------------------------------------------------------------

  get state() {
    return this._state;
  }

  set state(state) {
    const previous = this._state;
    this._state = state;
    if (this.hover !== null && this.hover >= state.points.length) this.hover = null;
    if (previous && previous.mode !== state.mode) {
      this._result = null;
      this._frame = null;
    }
    this.tools?.update();
    if (previous?.selected !== state.selected || (previous?.points !== state.points && this.dragging === null)) this.updateCard();
    this.draw();
  }

  get result() {
    return this._result;
  }

  set result(result) {
    this._result = result;
    this._field = null;
    this.updateCard();
    this.draw();
  }

  /** @param {any} frame {answer, grey, step, marks} or null */
  set frame(frame) {
    this._frame = frame;
    this._field = null;
    this.updateCard();
    this.draw();
  }

  /** The machine that is drawn in colour: that of a step, else the exact one. */
  get machine() {
    return this._frame?.answer ?? this._result;
  }

  /** @param {number | null} index */
  set other(index) {
    this._other = index;
    this.draw();
  }

  /** @param {{x: string, y: string} | string[] | null} axes */
  set axes(axes) {
    this._axes = Array.isArray(axes) ? { x: axes[0], y: axes[1] } : axes;
    this.draw();
  }

  /** @param {boolean} dark */
  set dark(dark) {
    this._dark = dark;
    this.look = null;
    this.draw();
  }

  // ---- geometry --------------------------------------------------------------------------------------------------

  resize() {
    const [width, height] = [this.stage.clientWidth, this.stage.clientHeight];
    if (!width || !height || (width === this.width && height === this.height)) return;
    this.width = width;
    this.height = height;
    this.draw();
    clearTimeout(this.resizeTimer);
    this.resizeTimer = setTimeout(() => this._state && send(this, "resized", {}), 60);
  }

  /** The visible part of the plane: in a plane of two features, x and y have the same scale. @param {any} state @returns {number[]} */
  viewFor(state) {
    const [x0, x1, y0, y1] = state.view;
    if (!PLANE_MODES.has(state.mode)) return [x0, x1, y0, y1];
    const scale = Math.max((x1 - x0) / this.width, (y1 - y0) / this.height);
    const [xMid, yMid] = [(x0 + x1) / 2, (y0 + y1) / 2];
    return [xMid - (scale * this.width) / 2, xMid + (scale * this.width) / 2, yMid - (scale * this.height) / 2, yMid + (scale * this.height) / 2];
  }

  get view() {
    return this.viewFor(this._state);
  }

  get pixels() {
    return toPixels({ width: this.width, height: this.height, view: this.view });
  }

  /** @param {number} px @param {number} py @returns {[number, number]} */
  toData(px, py) {
    const [x0, x1, y0, y1] = this.view;
    return [x0 + (px / this.width) * (x1 - x0), y1 - (py / this.height) * (y1 - y0)];
  }

  /** @param {number} index */
  pixelsOf(index) {
    const [x, y] = this._state.points[index];
    return this.pixels(x, y);
  }

  /** @param {number[]} place @param {number} reach @returns {number | null} the nearest point within reach */
  hit(place, reach) {
    let best = null;
    let nearest = reach;
    const pixels = this.pixels;
    this._state.points.forEach((/** @type {number[]} */ [x, y], /** @type {number} */ index) => {
      const [px, py] = pixels(x, y);
      const distance = Math.hypot(px - place[0], py - place[1]);
      if (distance < nearest) [best, nearest] = [index, distance];
    });
    return best;
  }

  /** @param {number[]} view */
  setView(view) {
    send(this, "patch", { patch: { view: view.map((bound) => Number(bound.toPrecision(6))) } });
  }

  /** @param {number} factor below 1 nearer @param {number[]} [place] in pixels, stays where it is */
  zoom(factor, place = [this.width / 2, this.height / 2]) {
    const [x, y] = this.toData(place[0], place[1]);
    const [x0, x1, y0, y1] = this.view;
    const view = [x + (x0 - x) * factor, x + (x1 - x) * factor, y + (y0 - y) * factor, y + (y1 - y) * factor];
    if (view[1] - view[0] > 1e-4 && view[1] - view[0] < 1e6) this.setView(view);
  }

  fitView() {
    this.setView(viewOf(this._state.points, this._state.mode));
  }

  // ---- changes of points -----------------------------------------------------------------------------------------

  /** @param {any[]} points @param {string | null | undefined} gesture @param {number | null} [selected] */
  change(points, gesture, selected = this._state.selected) {
    send(this, "patch", { patch: { points, selected }, gesture });
  }

  get labelToAdd() {
    return this._state.mode === "classify" ? this.currentClass : 0;
  }

  /** @param {number} x @param {number} y @param {string} gesture @returns {number | null} index of the new point */
  add(x, y, gesture) {
    return this.addMany([[x, y]], gesture) ? this._state.points.length - 1 : null;
  }

  /** @param {number[][]} places @param {string | null | undefined} gesture @returns {boolean} */
  addMany(places, gesture) {
    if (this._state.points.length + places.length > MOST_POINTS) {
      send(this, "notice", { text: `The plane holds at most ${MOST_POINTS.toLocaleString("en")} points.`, kind: "error" });
      return false;
    }
    this.change([...this._state.points, ...places.map(([x, y]) => [this.round(x), this.round(y), this.labelToAdd])], gesture);
    return true;
  }

  /** A place to a hundred-thousandth of the view, in six digits: the address keeps as many. @param {number} value */
  round(value) {
    const step = 10 ** (Math.floor(Math.log10(this.view[1] - this.view[0])) - 5);
    return Number((Math.round(value / step) * step).toPrecision(6));
  }

  /** @param {number} index @param {number} x @param {number} y @param {string} gesture */
  moveTo(index, x, y, gesture) {
    if (!this._state.points[index]) return;
    const [x0, x1, y0, y1] = this.view;
    const inside = [Math.max(x0, Math.min(x1, x)), Math.max(y0, Math.min(y1, y))];
    const points = this._state.points.slice();
    points[index] = [this.round(inside[0]), this.round(inside[1]), points[index][2]];
    this.change(points, gesture);
  }

  /** @param {number} index @param {string | null | undefined} gesture @param {boolean} [stay] select the next point */
  remove(index, gesture, stay = false) {
    const points = this._state.points.filter((/** @type {any} */ _, /** @type {number} */ k) => k !== index);
    const selected = this._state.selected;
    const next = stay && points.length ? Math.min(index, points.length - 1) : selected === null || selected === index ? null : selected > index ? selected - 1 : selected;
    this.hover = null;
    this.change(points, gesture, next);
    this.announce(`Removed. ${points.length} points.`);
  }

  clear() {
    this.change([], null, null);
  }

  /** @param {number | null} index */
  select(index) {
    if (index !== this._state.selected) send(this, "select", { index });
  }

  /** @param {boolean} holding whether the user is editing the plane */
  hold(holding) {
    send(this, "hold", { holding });
  }

  endGesture() {
    send(this, "gesture-end", {});
    this.draw();
  }

  /** @param {number} label @param {number | null} [selected] a point that gets this class */
  chooseClass(label, selected = null) {
    this.currentClass = label;
    if (selected !== null && this._state.points[selected]) {
      const points = this._state.points.slice();
      points[selected] = [points[selected][0], points[selected][1], label];
      this.change(points, null);
    }
    this.tools.update();
    this.announce(`Class ${label}, ${className(label)}.`);
  }

  // ---- keyboard --------------------------------------------------------------------------------------------------

  /** @param {number} dx pixels @param {number} dy */
  moveCross(dx, dy) {
    const [px, py] = this.crossPixels();
    this.cross = this.toData(Math.max(0, Math.min(this.width, px + dx)), Math.max(0, Math.min(this.height, py + dy)));
    const value = this.valueAtPlace(this.cross[0], this.cross[1]);
    this.announce(`x ${tidy(this.cross[0], 3)}, y ${tidy(this.cross[1], 3)}${value === null ? "" : `, f ${tidy(value, 3)}`}`);
  }

  crossPixels() {
    const [px, py] = this.pixels(this.cross[0], this.cross[1]);
    const seen = px >= 0 && py >= 0 && px <= this.width && py <= this.height;
    return seen ? [px, py] : [this.width / 2, this.height / 2];
  }

  addAtCross() {
    const index = this.add(...this.toData(.../** @type {[number, number]} */ (this.crossPixels())), `cross-${Date.now()}`);
    if (index !== null) this.announce(`Added. ${this._state.points.length} points.`);
  }

  /** @param {number} index */
  selectAloud(index) {
    this.select(index);
    this.announce(describePoint(this._state, this.machine, index));
  }

  announceSoon() {
    clearTimeout(this.announceTimer);
    this.announceTimer = setTimeout(() => {
      if (this._state.selected !== null) this.announce(describePoint(this._state, this.machine, this._state.selected));
    }, 500);
  }

  /** @param {string} text */
  announce(text) {
    this.live.textContent = text;
  }

  // ---- card ------------------------------------------------------------------------------------------------------

  /** @param {number | null} index @param {number[] | null} place */
  hoverAt(index, place) {
    if (index !== this.hover) {
      this.hover = index;
      this.updateCard();
    }
    this.pointer = place;
    this.showReadout(place);
    this.draw();
  }

  /** The card shows the point under the pointer, else the selected one. */
  updateCard() {
    if (!this.card || !this._state) return;
    const index = this.hover ?? this._state.selected;
    const busy = this.dragging !== null || this.input?.drag;
    if (index === null || !this._state.points[index] || (busy && this.input?.drag?.kind !== "move")) return this.card.hide();
    const step = this._frame?.answer ? (this._frame.step ?? null) : null;
    const known = step === null && this.card.index === index && this.answerFor === this._state.points ? this.card.answer : null;
    this.card.fill(index, this._state, this.machine, known, step);
    this.placeCard(index);
    // conditions and leave-one-out answers are those of the exact machine
    if (known || busy || step !== null) return;
    const version = ++this.cardVersion;
    clearTimeout(this.cardTimer);
    this.cardTimer = setTimeout(() => this.askPoint(index, version), 140);
  }

  /** @param {number} index */
  placeCard(index) {
    const pixels = this.pixels;
    this.card.place(this.pixelsOf(index), this.width, this.height, this._state.points.map((/** @type {number[]} */ [x, y]) => pixels(x, y)));
  }

  /** @param {number} index @param {number} version */
  async askPoint(index, version) {
    const state = this._state;
    if (version !== this.cardVersion || !this._result || this._result.status === "waiting" || this._result.status === "not_separable") return;
    try {
      const payload = { state: { ...state, procedure: null, lesson: null, selected: null }, index };
      const answer = await new Promise((resolve, reject) => send(this, "ask", { name: "point", payload, resolve, reject }));
      if (this.card.index !== index || state.points !== this._state.points || this._frame) return;
      this.card.answer = answer;
      this.answerFor = state.points;
      this.card.fill(index, this._state, this._result, answer);
      this.placeCard(index);
    } catch {
      /* the numbers of the fit stay on the card */
    }
  }

  /** @param {number} x @param {number} y @returns {number | null} f between grid points */
  valueAtPlace(x, y) {
    const grid = this.machine?.grid;
    if (!grid?.values || grid.labels) return null;
    this._field ??= fieldOf(grid.values);
    const [x0, x1, y0, y1] = grid.view;
    return valueAt(this._field, ((x - x0) / (x1 - x0)) * (grid.columns - 1), ((y - y0) / (y1 - y0)) * (grid.rows - 1));
  }

  /** @param {number[] | null} place */
  showReadout(place) {
    if (!place) {
      this.readout.textContent = "";
      return;
    }
    const [x, y] = this.toData(place[0], place[1]);
    const value = this.valueAtPlace(x, y);
    this.readout.textContent = `(${tidy(x, 3)}, ${tidy(y, 3)})${value === null ? "" : `   f = ${tidy(value, 3)}`}`;
  }

  // ---- drawing ---------------------------------------------------------------------------------------------------

  draw() {
    if (this.scheduled || !this.canvas || !this._state) return;
    this.scheduled = true;
    requestAnimationFrame(() => {
      this.scheduled = false;
      this.paint();
    });
  }

  readLook() {
    const style = getComputedStyle(this);
    const value = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
    this.look = { ink: value("--ink"), soft: value("--ink-soft"), faint: value("--ink-faint"), line: value("--line"), paper: value("--plane"), accent: value("--accent"), warn: value("--warn") };
  }

  /** The scene with the colours of the two classes. */
  scene() {
    if (!this.look) this.readLook();
    const labels = this._result?.classes?.length === 2 ? this._result.classes : [...new Set(this._state.points.map((/** @type {number[]} */ p) => p[2]))].sort();
    const pair = labels.length === 2 ? labels : [0, 1];
    const look = { ...this.look, pair: pair.map((/** @type {number} */ label) => classColour(label)), positive: pair[1] };
    const frame = { width: this.width, height: this.height, view: this.view };
    const axes = this._axes ?? AXES[/** @type {"classify"} */ (this._state.mode)];
    return { pair, shapes: buildScene(frame, this._state, this._result, this._frame, look, axes) };
  }

  /** Regions on their own small canvas. @param {[number, number]} pair @returns {{canvas: HTMLCanvasElement, box: number[]} | null} */
  regions(pair) {
    const grid = this.machine?.grid;
    if (!this._state.show.regions || !PLANE_MODES.has(this._state.mode) || !grid?.values) return null;
    const [width, height] = [Math.ceil(this.width / 1.5), Math.ceil(this.height / 1.5)];
    const key = [grid, this._dark, width, height, pair.join()];
    if (!this.painted || key.some((part, k) => part !== this.painted.key[k])) {
      const canvas = this.painted?.canvas ?? document.createElement("canvas");
      canvas.width = width;
      canvas.height = height;
      canvas.getContext("2d").putImageData(paintRegions(grid, { paper: this.look.paper, labels: pair, mode: this._state.mode, dark: this._dark }, width, height), 0, 0);
      this.painted = { key, canvas };
    }
    const [left, bottom] = this.pixels(grid.view[0], grid.view[2]);
    const [right, top] = this.pixels(grid.view[1], grid.view[3]);
    return { canvas: this.painted.canvas, box: [left, top, right - left, bottom - top] };
  }

  paint() {
    // a held point moves at once; the picture behind it changes with the next machine
    const key = [this._result, this._frame, this._state.view, this._state.show, this.width, this.height, this._dark, this._axes];
    const same = this.dragging !== null && this.paintedFor?.every((part, k) => part === key[k]);
    this.paintedFor = key;
    if (same && this.points.move(this.dragging, this.pixelsOf(this.dragging))) return this.paintHand();
    this.paintCanvas();
    this.points.draw(this._state, this.machine?.points, this.pixels, { hover: this.hover, other: this._other, marks: this._frame?.marks ?? [] });
    this.paintHand();
    this.describe();
  }

  paintCanvas() {
    const ratio = globalThis.devicePixelRatio || 1;
    const [wide, high] = [Math.round(this.width * ratio), Math.round(this.height * ratio)];
    if (this.canvas.width !== wide || this.canvas.height !== high) [this.canvas.width, this.canvas.height] = [wide, high];
    const context = this.canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const { pair, shapes } = this.scene();
    context.fillStyle = this.look.paper;
    context.fillRect(0, 0, this.width, this.height);
    const regions = this.regions(pair);
    if (regions) context.drawImage(regions.canvas, regions.box[0], regions.box[1], regions.box[2], regions.box[3]);
    paintShapes(context, shapes, this.look.paper);
  }

  paintHand() {
    const focused = document.activeElement === this.surface && this.keyboard;
    const [px, py] = this.crossPixels();
    this.crossMark.setAttribute("transform", `translate(${px},${py})`);
    this.crossMark.setAttribute("visibility", focused && this._state.selected === null ? "visible" : "hidden");
    const brush = this.tool === "paint" && this.pointer;
    this.brush.setAttribute("visibility", brush ? "visible" : "hidden");
    if (brush) this.brush.setAttribute("transform", `translate(${this.pointer[0]},${this.pointer[1]})`);
    if (!this.card.element.hidden && this.card.index !== null && this._state.points[this.card.index]) this.placeCard(this.card.index);
  }

  describe() {
    const { mode, points } = this._state;
    const classes = new Set(points.map((/** @type {number[]} */ p) => p[2])).size;
    const label = `Plane with ${points.length} points${mode === "classify" ? ` of ${classes} ${classes === 1 ? "class" : "classes"}` : ""}`;
    if (this.surface.getAttribute("aria-label") !== label) this.surface.setAttribute("aria-label", label);
    const step = this._frame?.answer ? `Step ${this._frame.step}: in colour the machine of this step${this._frame.grey ? ", in grey the optimum" : ""}` : null;
    const text = step ?? this.messageText();
    if (this.banner.textContent !== text) this.banner.textContent = text;
    this.banner.hidden = !text;
    this.banner.classList.toggle("warning", this._result?.status === "not_separable" || this._result?.status === "limit");
    this.tools.drawLegend(this.legend);
  }

  /** The message on the plane about its machine, if there is one. */
  messageText() {
    const { status, message, proof } = this._result ?? {};
    if (status !== "not_separable") return message ?? "";
    const count = (proof?.positive?.length ?? 0) + (proof?.negative?.length ?? 0);
    const reason = count ? `: ${count} of the points combine to a common point of both convex hulls` : "";
    return `No hard margin exists${reason}. Use a finite C or a richer kernel.`;
  }

  // ---- pictures --------------------------------------------------------------------------------------------------

  /** @returns {string} the plane as an SVG file */
  toSVG() {
    const { pair, shapes } = this.scene();
    const regions = this.regions(/** @type {[number, number]} */ (pair));
    return [
      `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${this.width} ${this.height}" width="${this.width}" height="${this.height}" font-family="system-ui, sans-serif">`,
      `<rect width="100%" height="100%" fill="${this.look.paper}"/>`,
      regions ? `<image href="${regions.canvas.toDataURL("image/png")}" x="${regions.box[0]}" y="${regions.box[1]}" width="${regions.box[2]}" height="${regions.box[3]}" preserveAspectRatio="none"/>` : "",
      writeShapes(shapes, this.look.paper),
      this.points.write(this._state, this.machine?.points, this.pixels, this.look),
      "</svg>",
    ].join("\n");
  }

  /** @param {number} [scale] pixels of the picture per pixel of the page @returns {Promise<Blob>} */
  async toPNG(scale = 2) {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [this.width * scale, this.height * scale];
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    context.scale(scale, scale);
    const { pair, shapes } = this.scene();
    context.fillStyle = this.look.paper;
    context.fillRect(0, 0, this.width, this.height);
    const regions = this.regions(/** @type {[number, number]} */ (pair));
    if (regions) context.drawImage(regions.canvas, regions.box[0], regions.box[1], regions.box[2], regions.box[3]);
    paintShapes(context, shapes, this.look.paper);
    this.points.paint(context, this._state, this.machine?.points, this.pixels, this.look);
    return new Promise((resolve, reject) => canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("The browser made no picture."))), "image/png"));
  }
}

define("mercer-plane", MercerPlane);
