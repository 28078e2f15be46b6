/**
 * Small builders for HTML and SVG elements. Text is always set as text, never as markup.
 */

const SVG = "http://www.w3.org/2000/svg";

/**
 * @param {string} tag
 * @param {Record<string, any>} [attributes] `class`, `text`, `on` (listeners by name), `data` (dataset); others become attributes;
 *   true gives an empty attribute, false and null give none
 * @param {...(Node | string | null | false)} children
 * @returns {any} an HTML element
 */
export function html(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** As `html`, in the SVG namespace. @param {string} tag @param {Record<string, any>} [attributes] @param {...(Node | string | null | false)} children @returns {any} */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** @param {Element} element @param {Record<string, any>} attributes @param {(Node | string | null | false)[]} children */
function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "text") element.textContent = value;
    else if (key === "on") for (const [name, listener] of Object.entries(value)) element.addEventListener(name, /** @type {any} */ (listener));
    else if (key === "data") Object.assign(/** @type {HTMLElement} */ (element).dataset, value);
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  for (const child of children) if (child !== null && child !== false) element.append(child);
  return element;
}

/** Set attributes that differ from the last ones set here. @param {any} element @param {Record<string, string | number>} attributes */
export function setAttributes(element, attributes) {
  const last = (element.mercerLast ??= {});
  for (const key in attributes) {
    const value = attributes[key];
    if (last[key] === value) continue;
    last[key] = value;
    element.setAttribute(key, value);
  }
}

/** @param {EventTarget} target @param {string} name @param {any} detail */
export function send(target, name, detail) {
  target.dispatchEvent(new CustomEvent(name, { bubbles: true, composed: true, detail }));
}

/** Define a custom element once, also when the module is loaded twice. @param {string} name @param {CustomElementConstructor} constructor */
export function define(name, constructor) {
  if (!customElements.get(name)) customElements.define(name, constructor);
}

/** A number for people: about four significant digits. @param {number | null | undefined} value @param {number} [digits] @returns {string} */
export function tidy(value, digits = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-4) {
    const [mantissa, exponent] = value.toExponential(Math.min(digits - 1, 2)).split("e");
    return `${Number(mantissa)}·10${superscript(Number(exponent))}`.replace("-", "−");
  }
  return String(Number(value.toPrecision(digits))).replace("-", "−");
}

/** @param {number} exponent */
function superscript(exponent) {
  const digits = "⁰¹²³⁴⁵⁶⁷⁸⁹";
  return (exponent < 0 ? "⁻" : "") + [...String(Math.abs(exponent))].map((digit) => digits[Number(digit)]).join("");
}
