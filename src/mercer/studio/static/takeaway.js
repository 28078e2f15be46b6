/**
 * <mercer-takeaway>: downloads: the Python code, a picture, the model file, an interactive page, the state.
 */

import { Panel, blobOf, define, download, h, machineKey } from "./panel.js";

/** The panel of files: see the head of this file. */
export class TakeAway extends Panel {
  constructor() {
    super();
    /** @type {any} the element that draws the plane; the page sets it */ this.plane = null;
  }

  build() {
    this.setAttribute("role", "group");
    this.setAttribute("aria-label", "Take away");
    this.code = h("pre", { class: "mp-code", tabindex: 0, "aria-label": "Python code of this machine" });
    this.copy = h("button", { type: "button", onclick: () => this.copyCode(), text: "copy" });
    const button = (/** @type {string} */ text, /** @type {string} */ title, /** @type {() => Promise<void>} */ work) =>
      h("button", { type: "button", title, text, onclick: (/** @type {Event} */ event) => this.run(/** @type {HTMLButtonElement} */ (event.currentTarget), work) });
    this.append(
      h("h3", { text: "Python code" }),
      h("p", { class: "mp-muted", text: "A script that fits this machine and prints its certificate." }),
      h("div", { class: "mp-row" }, this.copy, button("download studio.py", "the script as a file", () => this.saveCode())),
      this.code,
      h("h3", { text: "Files" }),
      h("div", { class: "mp-files" },
        button("picture, PNG", "the plane as pixels, twice the size of the screen", () => this.savePNG()),
        button("picture, SVG", "the plane as a drawing that can be scaled", () => this.saveSVG()),
        button("model, .mercer", "for mercer.load and mercer predict", () => this.saveModel()),
        button("page that moves, HTML", "one file without network: the machine along its path over C", () => this.savePage()),
        button("state, JSON", "to open on this page again", () => this.saveState())),
      h("p", { class: "mp-words", role: "status" }), this.errorLine());
    this.words = /** @type {HTMLElement} */ (this.querySelector(".mp-words"));
  }

  stateChanged() {
    this.load();
  }

  activeChanged() {
    this.load();
  }

  load() {
    this.askOnce("code", machineKey, (answer) => this.showCode(answer.python), () => this.showCode(""));
  }

  /** @param {string} python */
  showCode(python) {
    this.python = python;
    this.code.textContent = python;
  }

  /** Run one of the buttons and tell how it went. @param {HTMLButtonElement} button @param {() => Promise<void>} work */
  async run(button, work) {
    button.disabled = true;
    this.fail(null);
    this.words.textContent = "";
    try {
      await work.call(this);
    } catch (error) {
      this.fail(error);
    } finally {
      button.disabled = false;
    }
  }

  /** @param {string} file @param {Blob} blob */
  save(file, blob) {
    download(file, blob);
    this.words.textContent = `${file} was handed to the browser's downloads (${Math.max(1, Math.round(blob.size / 1024))} kB).`;
  }

  async copyCode() {
    if (!this.python) return;
    try {
      await navigator.clipboard.writeText(this.python);
      this.words.textContent = "The code is copied.";
    } catch {
      // a page without the right to the clipboard: select the code, so that Ctrl+C copies it
      getSelection()?.selectAllChildren(this.code);
      this.words.textContent = "The code is selected: press Ctrl+C (or ⌘C) to copy it.";
    }
    this.copy.textContent = "copied ✓";
    setTimeout(() => (this.copy.textContent = "copy"), 2000);
  }

  async saveCode() {
    const { python } = await this.ask("code", { state: this.state });
    this.save("studio.py", new Blob([python], { type: "text/x-python" }));
  }

  async savePNG() {
    this.save("plane.png", await this.plane.toPNG(2));
  }

  async saveSVG() {
    this.save("plane.svg", new Blob([await this.plane.toSVG()], { type: "image/svg+xml" }));
  }

  async saveModel() {
    const answer = await this.ask("export_model", { state: this.state });
    this.save(answer.name ?? "studio.mercer", blobOf(answer.base64));
  }

  async savePage() {
    this.words.textContent = "Computing the path …";
    const { html } = await this.ask("export_page", { state: this.state });
    this.save("studio.html", new Blob([html], { type: "text/html" }));
  }

  async saveState() {
    this.save("studio.mercer-studio.json", new Blob([JSON.stringify(this.state, null, 1)], { type: "application/json" }));
  }
}

define("mercer-takeaway", TakeAway);
