/**
 * A labelled slider with a number box, on a linear or a logarithmic scale, with optional marks below its track.
 */
import { html, tidy } from "./dom.js";

const STEPS = 1000;
let count = 0;

/**
 * @param {{label: string, help?: string, min: number, max: number, value: number, log?: boolean, whole?: boolean,
 *   name?: string, onInput: (value: number, gesture: string) => void, onChange?: (value: number) => void}} options
 *   onInput: while the slider moves; onChange: when it is released; values stay within min and max
 * @returns {{element: HTMLElement, input: HTMLInputElement, box: HTMLInputElement, set: (value: number) => void,
 *   marks: (values: number[]) => void, help: (text: string) => void, disable: (disabled: boolean) => void}}
 */
export function createSlider(options) {
  const { label, help, min, max, log = false, whole = false } = options;
  const id = `mercer-slider-${++count}`;
  const input = html("input", { type: "range", id, min: 0, max: whole ? max - min : STEPS, step: 1, "aria-describedby": help ? `${id}-help` : null, data: { name: options.name ?? label } });
  const box = html("input", { type: "text", inputmode: "decimal", class: "number-box", "aria-label": `${label}, as a number`, autocomplete: "off", spellcheck: "false" });
  const track = html("canvas", { class: "slider-marks", "aria-hidden": "true", hidden: true });
  let value = options.value;
  let gesture = 0;
  /** @type {number[]} */ let marked = [];

  /** @param {number} v @returns {number} the place on the track, 0..1 */
  const place = (v) => (log ? Math.log(v / min) / Math.log(max / min) : (v - min) / (max - min));
  /** @param {number} share */
  const valueOf = (share) => (log ? min * (max / min) ** share : min + (max - min) * share);

  /** @param {number} v */
  function set(v) {
    value = v;
    const share = Math.max(0, Math.min(1, place(v)));
    input.value = String(whole ? Math.round(share * (max - min)) : Math.round(share * STEPS));
    input.style.setProperty("--fill", `${100 * share}%`);
    input.setAttribute("aria-valuetext", tidy(v, 3));
    if (document.activeElement !== box) box.value = plainNumber(v);
  }

  /** @param {number} v */
  function report(v) {
    set(v);
    options.onInput(v, `${id}-${gesture}`);
  }

  function rest() {
    gesture++;
    options.onChange?.(value);
  }

  input.addEventListener("input", () => {
    const share = Number(input.value) / (whole ? max - min : STEPS);
    report(whole ? Math.round(valueOf(share)) : Number(valueOf(share).toPrecision(3)));
  });
  input.addEventListener("change", rest);
  box.addEventListener("change", () => {
    const typed = Number(box.value.replace(",", ".").replace("−", "-"));
    const valid = box.value.trim() !== "" && Number.isFinite(typed) && typed >= min && typed <= max;
    box.setAttribute("aria-invalid", String(!valid));
    box.title = valid ? "" : `A number between ${plainNumber(min)} and ${plainNumber(max)}`;
    if (!valid) return;
    report(whole ? Math.round(typed) : typed);
    box.value = plainNumber(value);
    rest();
  });
  box.addEventListener("blur", () => {
    box.removeAttribute("aria-invalid");
    box.value = plainNumber(value);
  });

  function drawMarks() {
    track.hidden = !marked.length;
    const width = track.clientWidth;
    if (track.hidden || !width) return;
    const ratio = globalThis.devicePixelRatio || 1;
    [track.width, track.height] = [Math.round(width * ratio), Math.round(9 * ratio)];
    const context = /** @type {CanvasRenderingContext2D} */ (track.getContext("2d"));
    context.scale(ratio, ratio);
    context.strokeStyle = getComputedStyle(track).color;
    context.globalAlpha = marked.length > 120 ? 0.45 : 0.8;
    // the thumb's centre travels over the track less its own width
    for (const mark of marked) {
      const share = place(mark);
      if (share < 0 || share > 1) continue;
      const x = 8 + share * (width - 16);
      context.beginPath();
      context.moveTo(x, 1);
      context.lineTo(x, 8);
      context.stroke();
    }
  }

  const name = html("label", { for: id, text: label, title: help ?? null });
  const about = help ? html("p", { id: `${id}-help`, class: "visually-hidden", text: help }) : null;
  const element = html("div", { class: "slider" }, name, box, html("div", { class: "slider-track" }, input, track), about);
  new ResizeObserver(drawMarks).observe(track);
  set(value);
  return {
    element,
    input,
    box,
    set,
    marks(values) {
      marked = values;
      track.hidden = !values.length;
      drawMarks();
    },
    help(text) {
      name.title = text;
      if (about) about.textContent = text;
    },
    disable(disabled) {
      input.disabled = disabled;
      box.disabled = disabled;
      element.classList.toggle("disabled", disabled);
    },
  };
}

/** @param {number} value @returns {string} as a person would type it */
export function plainNumber(value) {
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e6 || size < 1e-4)) return value.toExponential(2).replace(/\.?0+e/, "e").replace("e+", "e");
  return String(Number(value.toPrecision(4)));
}
