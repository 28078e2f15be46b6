/**
 * The bar at the top: name, undo and redo, files, link, light and dark.
 */
import { html } from "./dom.js";
import { icon } from "./icons.js";

const THEME = "mercer-studio-theme";

/**
 * @param {{undo: () => void, redo: () => void, save: () => void, open: (text: string) => void, link: (() => void) | null,
 *   theme: (dark: boolean) => void}} actions
 * @returns {{element: HTMLElement, update: (canUndo: boolean, canRedo: boolean) => void, dark: () => boolean}}
 */
export function buildHeader(actions) {
  const system = matchMedia("(prefers-color-scheme: dark)");
  let chosen = recall();
  // an attribute of the body tells whether JupyterLab's theme is light
  const around = () => (document.body.dataset.jpThemeLight ? document.body.dataset.jpThemeLight === "false" : system.matches);
  const dark = () => (chosen === null ? around() : chosen === "dark");

  /** @param {string} text @param {string} title @param {() => void} click @param {string} picture */
  const button = (text, title, click, picture) =>
    html("button", { type: "button", class: "button header-button", title, "aria-label": title, on: { click } }, icon(picture), html("span", { class: "wide", text }));
  const undo = button("Undo", "Undo (Ctrl+Z)", actions.undo, "undo");
  const redo = button("Redo", "Redo (Ctrl+Shift+Z)", actions.redo, "redo");
  const file = html("input", { type: "file", accept: ".json,application/json", class: "visually-hidden", tabindex: -1, "aria-label": "State file" });
  file.addEventListener("change", async () => {
    const chosenFile = file.files?.[0];
    file.value = "";
    if (chosenFile) actions.open(chosenFile.size > 20e6 ? "" : await chosenFile.text());
  });
  const theme = html("button", { type: "button", class: "button header-button theme-switch", "aria-pressed": "false", on: { click: toggle } });

  function toggle() {
    chosen = dark() ? "light" : "dark";
    try {
      localStorage.setItem(THEME, chosen);
    } catch {
      /* private windows have no storage: the choice lasts as long as the page */
    }
    apply();
  }

  function apply() {
    theme.replaceChildren(icon(dark() ? "sun" : "moon"));
    theme.setAttribute("aria-pressed", String(dark()));
    theme.setAttribute("aria-label", "Dark theme");
    theme.title = dark() ? "Switch to the light theme" : "Switch to the dark theme";
    actions.theme(dark());
  }
  const follow = () => chosen === null && apply();
  system.addEventListener("change", follow);
  new MutationObserver(follow).observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light"] });

  const element = html(
    "header",
    { class: "studio-header" },
    html("h1", { class: "brand" }, html("span", { class: "brand-mark", "aria-hidden": "true" }), "mercer ", html("span", { class: "brand-soft", text: "studio" })),
    html("span", { class: "working", "aria-hidden": "true" }),
    html(
      "div",
      { class: "header-actions", role: "toolbar", "aria-label": "State" },
      undo,
      redo,
      html("span", { class: "divider", "aria-hidden": "true" }),
      button("Open", "Open a state file; a copied link opens with Ctrl+V", () => file.click(), "open"),
      button("Save", "Save this state as a file", actions.save, "save"),
      actions.link ? button("Link", "Copy the address of this state", actions.link, "link") : null,
      theme,
      file,
    ),
  );
  queueMicrotask(apply);
  return {
    element,
    dark,
    update(canUndo, canRedo) {
      undo.disabled = !canUndo;
      redo.disabled = !canRedo;
    },
  };
}

/** @returns {string | null} the theme chosen earlier */
function recall() {
  try {
    const theme = localStorage.getItem(THEME);
    return theme === "dark" || theme === "light" ? theme : null;
  } catch {
    return null;
  }
}
