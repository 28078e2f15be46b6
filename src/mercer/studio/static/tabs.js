/**
 * Tabs over the panels: roles and arrow keys as the ARIA authoring practices describe them.
 */
import { html } from "./dom.js";

/**
 * @param {{id: string, title: string, element: HTMLElement}[]} panels
 * @param {(id: string) => void} shown called with the panel that has become visible
 * @returns {{element: HTMLElement, show: (id: string) => void}}
 */
export function buildTabs(panels, shown) {
  const prefix = `mercer-tab-${Math.random().toString(36).slice(2, 8)}`;
  const buttons = panels.map((panel) =>
    html("button", {
      type: "button",
      role: "tab",
      class: "tab",
      id: `${prefix}-${panel.id}`,
      "aria-controls": `${prefix}-${panel.id}-panel`,
      text: panel.title,
      data: { panel: panel.id },
      on: { click: () => show(panel.id) },
    }),
  );
  const bodies = panels.map((panel) =>
    html("div", { role: "tabpanel", class: "tab-panel", id: `${prefix}-${panel.id}-panel`, "aria-labelledby": `${prefix}-${panel.id}`, tabindex: 0 }, panel.element),
  );
  const list = html("div", { role: "tablist", class: "tab-list", "aria-label": "Panels" }, ...buttons);
  list.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    const index = buttons.indexOf(/** @type {any} */ (document.activeElement));
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 4, ArrowUp: -4 }[event.key];
    let next = step === undefined ? -1 : (index + step + buttons.length) % buttons.length;
    if (event.key === "Home") next = 0;
    if (event.key === "End") next = buttons.length - 1;
    if (next < 0 || index < 0) return;
    event.preventDefault();
    show(panels[next].id);
    buttons[next].focus();
  });

  /** @param {string} id */
  function show(id) {
    panels.forEach((panel, index) => {
      const chosen = panel.id === id;
      buttons[index].setAttribute("aria-selected", String(chosen));
      buttons[index].tabIndex = chosen ? 0 : -1;
      bodies[index].hidden = !chosen;
    });
    shown(id);
  }

  return { element: html("div", { class: "tabs card" }, list, ...bodies), show };
}
