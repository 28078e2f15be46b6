/**
 * The icons of the page as line drawings on a field of 16 by 16.
 */
import { svg } from "./dom.js";

const PATHS = /** @type {Record<string, string>} */ ({
  undo: "M6 3 2.5 6.5 6 10M2.8 6.5H10a3.5 3.5 0 0 1 0 7H6",
  redo: "M10 3l3.5 3.5L10 10M13.2 6.5H6a3.5 3.5 0 0 0 0 7h4",
  open: "M8 10.5V2.5M4.8 5.5 8 2.3l3.2 3.2M2.5 10v3.5h11V10",
  save: "M8 2.5v8M4.8 7.5 8 10.7l3.2-3.2M2.5 10v3.5h11V10",
  link: "M6.7 9.3a2.6 2.6 0 0 0 3.7 0l2.3-2.3a2.6 2.6 0 0 0-3.7-3.7l-.9.9M9.3 6.7a2.6 2.6 0 0 0-3.7 0L3.3 9a2.6 2.6 0 0 0 3.7 3.7l.9-.9",
  sun: "M8 5.2a2.8 2.8 0 1 1 0 5.6 2.8 2.8 0 0 1 0-5.6ZM8 1v1.8M8 13.2V15M1 8h1.8M13.2 8H15M3 3l1.3 1.3M11.7 11.7 13 13M13 3l-1.3 1.3M4.3 11.7 3 13",
  moon: "M13.2 9.6A5.6 5.6 0 0 1 6.4 2.8a5.6 5.6 0 1 0 6.8 6.8Z",
  move: "M8 1.8v12.4M1.8 8h12.4M6 3.6l2-2 2 2M6 12.4l2 2 2-2M3.6 6l-2 2 2 2M12.4 6l2 2-2 2",
  paint: "M3.5 4.5h.01M8 3h.01M12 5.5h.01M5.5 9h.01M10 9.5h.01M3.8 12.6h.01M8 13h.01M12.6 12h.01",
  erase: "M6 13.5 2.3 9.8a1 1 0 0 1 0-1.4l5.9-5.9a1 1 0 0 1 1.4 0l3.9 3.9a1 1 0 0 1 0 1.4L7.8 13.5ZM5.3 5.4l5.3 5.3M6 13.5h7.5",
  minus: "M3 8h10",
  plus: "M3 8h10M8 3v10",
  all: "M2.5 5.5v-3h3M10.5 2.5h3v3M13.5 10.5v3h-3M5.5 13.5h-3v-3",
  bin: "M2.5 4.5h11M6 4.3V2.5h4v1.8M4 4.5l.6 9h6.8l.6-9M6.6 7v4M9.4 7v4",
});

/** @param {string} name @returns {SVGElement} */
export function icon(name) {
  return svg("svg", { class: `icon${name === "paint" ? " dots" : ""}`, viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": "true" }, svg("path", { d: PATHS[name] }));
}
