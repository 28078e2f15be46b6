/**
 * <mercer-data>: a table of the user. Two columns, two kernel principal components or a kernel map of strings as the plane;
 * "fit as `mercer fit`" with progress, report and model file.
 */

import { className, classColour, markPath } from "./palette.js";
import { Panel, base64Of, blobOf, define, download, h, s } from "./panel.js";
import { viewOf } from "./store.js";

// the server takes 20 MB; base64 adds a third
const MOST_BYTES = 14_000_000;
const STRING_KERNELS = ["spectrum(3)", "spectrum(2)", "mismatch(3)", "subsequence(3)", "commonsubstrings()"];
const POLL = 400;

/** The panel for the user's data: see the head of this file. */
export class Data extends Panel {
  constructor() {
    super();
    /** @type {any} the answer of table_open */ this.table = null;
    /** @type {string | null} */ this.job = null;
    /** @type {any} the answer of the last job */ this.finished = null;
    /** @type {Promise<boolean> | null} whether the command line named a table, once asked */ this.asked = null;
  }

  build() {
    this.setAttribute("role", "group");
    this.setAttribute("aria-label", "My data");
    const file = /** @type {HTMLInputElement} */ (h("input", { type: "file", class: "mp-file", accept: ".csv,.tsv,.tab,.txt,.parquet,.pq,.jsonl,.ndjson",
      "aria-label": "Open a table: CSV, Parquet or JSON lines", onchange: () => this.open(file.files?.[0], file) }));
    this.drop = h("div", { class: "mp-drop" }, h("p", { text: "Drop a CSV, Parquet or JSON-lines file here, or" }), h("label", { class: "mp-button" }, "open a file …", file),
      h("p", { class: "mp-muted", text: "Only the mercer behind this page reads the file; it is sent nowhere else." }));
    this.name = h("p", { class: "mp-words", role: "status" });
    this.notes = h("ul", { class: "mp-advice" });
    this.target = this.select("Target (what is predicted)", () => this.fillColumns());
    this.kind = this.select("Plane", () => this.showKind());
    this.x = this.select("Horizontal axis");
    this.y = this.select("Vertical axis");
    this.kernel = /** @type {HTMLInputElement} */ (h("input", { type: "text", value: "gaussian(gamma=0.1)", spellcheck: "false" }));
    this.kernelLine = h("label", { class: "mp-field" }, "Kernel of the components ", this.kernel);
    this.strings = this.select("Column of strings");
    this.stringKernel = this.select("Kernel on strings");
    this.stringKernel.input.replaceChildren(...STRING_KERNELS.map((value) => h("option", { value, text: value })));
    this.show = h("button", { type: "button", class: "mp-primary", onclick: () => this.toPlane(), text: "show on the plane" });
    this.legend = h("ul", { class: "mp-classes", "aria-label": "Classes" });
    this.fit = h("button", { type: "button", onclick: () => this.startFit(), text: "fit as mercer fit" });
    this.stop = h("button", { type: "button", hidden: true, onclick: () => this.stopFit(), text: "stop" });
    this.bar = /** @type {HTMLProgressElement} */ (h("progress", { max: 1, value: 0, hidden: true, class: "mp-wide", "aria-label": "Progress of the fit" }));
    this.line = h("p", { class: "mp-muted", role: "status" });
    this.out = h("div", {});
    this.body = h("div", { hidden: true },
      this.target.label,
      h("fieldset", { class: "mp-set" }, h("legend", { text: "On the plane" }),
        this.kind.label, this.x.label, this.y.label, this.kernelLine, this.strings.label, this.stringKernel.label, this.show, this.legend),
      h("fieldset", { class: "mp-set" }, h("legend", { text: "The whole table" }),
        h("p", { class: "mp-muted", text: "As mercer fit: every column, kernel and C chosen by cross-validation, an honest score, a report." }),
        h("div", { class: "mp-row" }, this.fit, this.stop), this.bar, this.line, this.out));
    this.append(this.drop, this.name, this.notes, this.errorLine(), this.body);
    this.addEventListener("dragover", (event) => {
      event.preventDefault();
      this.drop.classList.add("mp-over");
    });
    this.addEventListener("dragleave", () => this.drop.classList.remove("mp-over"));
    this.addEventListener("drop", (event) => {
      event.preventDefault();
      this.drop.classList.remove("mp-over");
      this.open(/** @type {DragEvent} */ (event).dataTransfer?.files?.[0]);
    });
  }

  /** @param {string} text @param {() => void} [onchange] */
  select(text, onchange) {
    const input = /** @type {HTMLSelectElement} */ (h("select", { "aria-label": text, onchange: onchange ?? null }));
    return { input, label: h("label", { class: "mp-field" }, `${text} `, input) };
  }

  async activeChanged() {
    if (this.active) await this.named();
  }

  /** Take the table of the command line. @returns {Promise<boolean>} whether there is one */
  named() {
    this.asked ??= this.ask("session", {}).then((/** @type {any} */ { table }) => {
      if (table) this.take(table, table.name ?? "the table of the command line");
      return Boolean(table);
    }, (/** @type {Error} */ error) => {
      this.fail(error);
      return false;
    });
    return /** @type {Promise<boolean>} */ (this.asked);
  }

  /** Begin with the table of the command line, if there is one: on the plane, as its first two columns of numbers. */
  async begin() {
    if (!(await this.named())) return;
    this.emit("view", { name: "data" });
    if (!this.show.hasAttribute("disabled")) await this.toPlane();
  }

  /** @param {File | undefined} file @param {HTMLInputElement} [input] */
  async open(file, input) {
    if (!file) return;
    this.fail(null);
    this.name.textContent = `Reading ${file.name} …`;
    try {
      if (file.size > MOST_BYTES) {
        throw new Error(`${file.name} has ${(file.size / 1e6).toFixed(1)} MB; the page takes at most ${MOST_BYTES / 1e6} MB. ` +
          `Start “mercer studio ${file.name}” instead, or use “mercer fit”.`);
      }
      this.take(await this.ask("table_open", { name: file.name, base64: await base64Of(file) }), file.name);
    } catch (error) {
      this.name.textContent = "";
      this.fail(error);
    } finally {
      if (input) input.value = "";
    }
  }

  /** @param {any} answer @param {string} file */
  take(answer, file) {
    this.table = answer;
    this.finished = null;
    this.out.replaceChildren();
    this.legend.replaceChildren();
    this.line.textContent = "";
    this.name.textContent = `${file}: ${answer.rows.toLocaleString("en")} rows, ${answer.columns.length} columns.`;
    this.notes.replaceChildren(...(answer.notes ?? []).map((/** @type {string} */ text) => h("li", { text })));
    this.target.input.replaceChildren(...answer.columns.map((/** @type {any} */ column) => h("option", { value: column.name, text: `${column.name} (${column.kind})` })));
    if (answer.target) this.target.input.value = answer.target;
    this.body.hidden = false;
    this.fillColumns();
  }

  /** Offer the columns that are not the target. */
  fillColumns() {
    const others = this.table.columns.filter((/** @type {any} */ column) => column.name !== this.target.input.value);
    const numbers = others.filter((/** @type {any} */ column) => column.kind === "number");
    const texts = others.filter((/** @type {any} */ column) => column.kind === "text" || column.kind === "category");
    const options = (/** @type {any[]} */ columns) => columns.map((column) => h("option", { value: column.name, text: column.name }));
    this.x.input.replaceChildren(...options(numbers));
    this.y.input.replaceChildren(...options(numbers));
    if (numbers.length > 1) this.y.input.value = numbers[1].name;
    this.strings.input.replaceChildren(...options(texts));
    const kinds = [];
    if (numbers.length > 1 || (numbers.length && this.continuous())) kinds.push(["columns", this.continuous() ? "one column and the target" : "two columns"]);
    if (numbers.length && !this.continuous()) kinds.push(["components", "two kernel principal components"]);
    if (texts.length) kinds.push(["strings", "strings as a kernel map"]);
    this.kind.input.replaceChildren(...kinds.map(([value, text]) => h("option", { value, text })));
    this.show.toggleAttribute("disabled", !kinds.length);
    this.showKind();
  }

  /** Whether the target is a number with many values: regression. */
  continuous() {
    const column = this.table.columns.find((/** @type {any} */ one) => one.name === this.target.input.value);
    return column?.kind === "number" && (column.distinct ?? 0) > 10;
  }

  showKind() {
    const kind = this.kind.input.value;
    this.x.label.hidden = kind !== "columns";
    this.y.label.hidden = kind !== "columns" || this.continuous();
    this.kernelLine.hidden = kind !== "components";
    this.strings.label.hidden = kind !== "strings";
    this.stringKernel.label.hidden = kind !== "strings";
  }

  async toPlane() {
    const { table } = this.table;
    const target = this.target.input.value;
    this.fail(null);
    this.show.setAttribute("disabled", "");
    this.show.textContent = "computing …";
    try {
      const kind = this.kind.input.value;
      const answer = kind === "strings"
        ? await this.ask("table_strings", { table, target, column: this.strings.input.value, kernel: this.stringKernel.input.value })
        : await this.ask("table_plane", kind === "components"
          ? { table, target, components: true, kernel: this.kernel.value }
          : { table, target, x: this.x.input.value, y: this.continuous() ? target : this.y.input.value });
      const { points } = answer;
      const mode = answer.mode ?? "classify";
      const [x, y] = answer.axes ?? ["x", "y"];
      this.emit("patch", { patch: { mode, points, view: viewOf(points, mode), kernel: "gaussian(gamma=0.5)", C: 1, ...answer.state },
        label: "my data", reset: true, axes: { x, y } });
      this.notes.replaceChildren(...(answer.notes ?? []).map((/** @type {string} */ text) => h("li", { text })));
      this.legend.replaceChildren(...(answer.classes ?? []).map((/** @type {string} */ text, /** @type {number} */ label) => {
        const picture = s("svg", { viewBox: "-9 -9 18 18", class: "mp-glyph", role: "img", "aria-label": className(label) });
        picture.append(s("path", { d: markPath(label, 6), fill: classColour(label) }));
        return h("li", {}, /** @type {any} */ (picture), String(text));
      }));
      const shown = answer.shown ?? points.length;
      const rows = answer.rows ?? this.table.rows;
      this.emit("notice", { text: shown < rows ? `${shown} of ${rows.toLocaleString("en")} rows are on the plane, drawn at random.` : `${shown} rows are on the plane.`, kind: "info" });
    } catch (error) {
      this.fail(error);
    } finally {
      this.show.removeAttribute("disabled");
      this.show.textContent = "show on the plane";
    }
  }

  async startFit() {
    this.fail(null);
    this.out.replaceChildren();
    this.fit.setAttribute("disabled", "");
    this.bar.hidden = false;
    this.bar.removeAttribute("value");
    this.line.textContent = "Started …";
    try {
      const { job } = await this.ask("table_fit", { table: this.table.table, target: this.target.input.value });
      this.job = job;
      this.stop.hidden = false;
      await this.follow(job);
    } catch (error) {
      this.fail(error);
      this.line.textContent = "";
    } finally {
      this.job = null;
      this.stop.hidden = true;
      this.bar.hidden = true;
      this.fit.removeAttribute("disabled");
    }
  }

  /** Ask until the job ends. @param {string} job */
  async follow(job) {
    for (;;) {
      await new Promise((resolve) => setTimeout(resolve, POLL));
      const answer = await this.ask("job", { job });
      if (typeof answer.progress === "number") this.bar.value = answer.progress;
      this.line.textContent = answer.line ?? "";
      if (answer.state === "running") continue;
      if (answer.state === "failed") throw new Error(answer.line || answer.text || "The fit failed.");
      this.showJob(answer, job);
      return;
    }
  }

  /** @param {any} answer @param {string} job */
  showJob(answer, job) {
    this.finished = answer;
    this.line.textContent = answer.state === "stopped" ? "Stopped." : "Done.";
    const row = h("div", { class: "mp-row" });
    const button = (/** @type {string} */ text, /** @type {() => void} */ onclick) => row.append(h("button", { type: "button", text, onclick }));
    if (answer.report_url) button("show the report", () => this.showReport(answer.report_url));
    if (answer.report) button("download the report", () => download("report.html", new Blob([answer.report], { type: "text/html" })));
    if (answer.model) button("download the model", () => download(answer.name ?? "model.mercer", blobOf(answer.model)));
    this.report = h("div", {});
    this.out.replaceChildren(row, answer.text ? h("pre", { class: "mp-code", tabindex: 0, "aria-label": "Summary of the fit", text: answer.text }) : "", this.report);
    this.out.dataset.job = job;
  }

  /** The report in a frame that may run nothing. @param {string} address */
  showReport(address) {
    this.report?.replaceChildren(h("iframe", { src: address, sandbox: "", class: "mp-report", title: "Report of the fit" }));
  }

  async stopFit() {
    if (!this.job) return;
    this.stop.setAttribute("disabled", "");
    try {
      await this.ask("job_stop", { job: this.job });
    } catch (error) {
      this.fail(error);
    } finally {
      this.stop.removeAttribute("disabled");
    }
  }
}

define("mercer-data", Data);
