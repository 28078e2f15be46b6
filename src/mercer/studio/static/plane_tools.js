/**
 * The bar above the plane (tools, classes, zoom) and the legend below it.
 */
import { html, svg } from "./dom.js";
import { icon } from "./icons.js";
import { classColour, className, markPath } from "./palette.js";

const TOOLS = [
  { id: "move", title: "Point", help: "Click to add a point, drag to move it, click it to select" },
  { id: "paint", title: "Paint", help: "Drag to scatter points under a brush" },
  { id: "erase", title: "Erase", help: "Click or drag to remove points (or the secondary button with any tool)" },
];

/** @param {number} label @param {number} [size] @returns {SVGElement} the mark of a class as a small picture */
export function markIcon(label, size = 16) {
  return svg("svg", { viewBox: "-10 -10 20 20", width: size, height: size, class: "mark-icon", "aria-hidden": "true" }, svg("path", { d: markPath(label, 6.5), fill: classColour(label) }));
}

/** @param {any} plane @returns {{element: HTMLElement, update: () => void, choose: (id: string) => void, drawLegend: (element: HTMLElement) => void}} */
export function buildTools(plane) {
  const tools = TOOLS.map((tool) =>
    html("button", { type: "button", class: "tool", title: tool.help, "aria-pressed": "false", data: { tool: tool.id }, on: { click: () => choose(tool.id) } }, icon(tool.id), html("span", { class: "tool-title", text: tool.title })),
  );
  const classes = html("div", { class: "class-chips", role: "radiogroup", "aria-label": "Class of new points" });
  classes.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const count = classes.querySelectorAll("[role=radio]").length;
    if (!step || !count) return;
    event.preventDefault();
    pick((plane.currentClass + step + count) % count);
    /** @type {HTMLElement | null} */ (classes.querySelector("[aria-checked=true]"))?.focus();
  });
  /** @param {string} picture @param {string} title @param {() => void} click */
  const small = (picture, title, click) => html("button", { type: "button", class: "tool small", title, "aria-label": title, on: { click } }, icon(picture));
  const element = html(
    "div",
    { class: "plane-tools", role: "toolbar", "aria-label": "Plane" },
    html("div", { class: "tool-group" }, ...tools),
    classes,
    html("span", { class: "spring" }),
    html(
      "div",
      { class: "tool-group" },
      small("minus", "Zoom out", () => plane.zoom(1.25)),
      small("plus", "Zoom in", () => plane.zoom(0.8)),
      small("all", "Show all points", () => plane.fitView()),
      small("bin", "Remove all points", () => plane.clear()),
    ),
  );

  /** @param {string} id of a tool */
  function choose(id) {
    plane.tool = id;
    update();
    plane.draw();
  }

  /** @param {number} label */
  function pick(label) {
    plane.chooseClass(label, null);
  }

  let drawn = "";
  function update() {
    for (const button of tools) button.setAttribute("aria-pressed", String(button.dataset.tool === plane.tool));
    plane.stage.dataset.tool = plane.tool;
    const state = plane.state;
    if (!state) return;
    classes.hidden = state.mode !== "classify";
    // the classes in use, the chosen one, and the next free one
    const highest = Math.max(1, plane.currentClass, ...state.points.map((/** @type {number[]} */ p) => p[2]));
    const count = Math.min(10, highest + 2);
    const key = `${count},${plane.currentClass}`;
    if (key === drawn) return;
    drawn = key;
    const focused = classes.contains(document.activeElement);
    classes.replaceChildren(
      ...Array.from({ length: count }, (_, label) => {
        const chosen = label === plane.currentClass;
        const fresh = label === count - 1 && count === highest + 2;
        const title = fresh ? `New class ${label}, ${className(label)}` : `Class ${label}, ${className(label)}`;
        return html("button", { type: "button", role: "radio", class: `class-chip${fresh ? " fresh" : ""}`, "aria-checked": String(chosen), tabindex: chosen ? 0 : -1, title, "aria-label": title, on: { click: () => pick(label) } }, markIcon(label));
      }),
    );
    if (focused) /** @type {HTMLElement | null} */ (classes.querySelector("[aria-checked=true]"))?.focus();
  }

  let legendKey = "";
  /** @param {HTMLElement} element */
  function drawLegend(element) {
    const { mode, show } = plane.state;
    const many = Boolean(plane.result?.grid?.labels);
    const key = `${mode}${many}${JSON.stringify(show)}`;
    if (key === legendKey) return;
    legendKey = key;
    /** @param {string} name @param {string} text */
    const entry = (name, text) => html("span", { class: "legend-entry" }, html("span", { class: `legend-mark ${name}`, "aria-hidden": "true" }), text);
    /** @type {Record<string, [string, string][]>} */
    const lines = {
      classify: [["boundary", many ? "border" : "f = 0"], ...(show.margins && !many ? /** @type {[string, string][]} */ ([["margin", "f = ±1"]]) : [])],
      one_class: [["boundary", "f = 0"]],
      regress: [["boundary", "f"], ...(show.margins ? /** @type {[string, string][]} */ ([["margin", "f ± ε"]]) : [])],
      quantiles: [["boundary", "median"], ["curve", "quantiles"]],
      process: [["boundary", "mean"], ["band", "± 1, 2 deviations"], ["sample", "draws"]],
    };
    const support = !show.support || mode === "process" ? [] : mode !== "quantiles" ? [entry("zero", "α = 0"), entry("free", "free"), entry("bound", mode === "classify" ? "at C" : "at the bound")] : [entry("free", "on a curve")];
    const slack = show.slack && mode !== "process" && mode !== "quantiles" ? [entry("slack", "slack ξ")] : [];
    element.replaceChildren(...lines[mode].map(([name, text]) => entry(name, text)), ...support, ...slack);
  }

  return { element, update, choose, drawLegend };
}
