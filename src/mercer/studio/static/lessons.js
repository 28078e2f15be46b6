/**
 * <mercer-lessons>: cards that follow the lecture notes; each is a state of the page, a question, what to try, what to see.
 *
 * Teachers open their own cards as a JSON file: a card, an array of cards, or {"lessons": [cards]}. A card is
 *   {"id", "title", "question", "try": ["…"], "see": ["…"], "state": {part of a state}, "notes"?: "where", "panel"?: "stepper"}
 */

import { Panel, define, download, h } from "./panel.js";
import { checkState } from "./store.js";

const STORED = "mercer-studio-lessons";
const PANELS = { stepper: "Steps", gram: "Gram matrix", lift: "Feature space", map: "γ × C map", kernel: "Kernel" };
const KEYS = new Set(["id", "title", "notes", "state", "question", "try", "see", "panel"]);
const MOST_CARDS = 100;

/**
 * Check a file of cards; the error says which card, which field, and what is allowed.
 * @param {string} text
 * @returns {any[]} the cards
 */
export function parseCards(text) {
  let found;
  try {
    found = JSON.parse(text);
  } catch (error) {
    throw new Error(`The file is not JSON: ${/** @type {Error} */ (error).message}.`);
  }
  const cards = Array.isArray(found) ? found : Array.isArray(found?.lessons) ? found.lessons : [found];
  if (!cards.length) throw new Error("The file has no cards: write at least one.");
  if (cards.length > MOST_CARDS) throw new Error(`The file has ${cards.length} cards; at most ${MOST_CARDS} are allowed.`);
  const ids = new Set();
  cards.forEach((/** @type {any} */ card, /** @type {number} */ k) => {
    checkCard(card, `Card ${k + 1}`);
    if (ids.has(card.id)) throw new Error(`Card ${k + 1}: the id ${JSON.stringify(card.id)} is taken by another card.`);
    ids.add(card.id);
  });
  return cards;
}

/** @param {any} card @param {string} where */
function checkCard(card, where) {
  if (!card || typeof card !== "object" || Array.isArray(card)) throw new Error(`${where} is not an object such as {"id": …, "title": …}.`);
  for (const key of Object.keys(card)) {
    if (!KEYS.has(key)) throw new Error(`${where}: unknown field ${JSON.stringify(key)}; a card has ${[...KEYS].join(", ")}.`);
  }
  for (const key of ["id", "title", "question"]) {
    if (typeof card[key] !== "string" || !card[key].trim()) throw new Error(`${where}: ${key} must be a text that is not empty.`);
  }
  for (const key of ["try", "see"]) {
    const list = card[key];
    if (!Array.isArray(list) || !list.length || list.some((line) => typeof line !== "string")) {
      throw new Error(`${where} (${card.title}): ${key} must be a list of texts, such as ["Drag a point."].`);
    }
  }
  if (card.notes !== undefined && typeof card.notes !== "string") throw new Error(`${where}: notes must be a text.`);
  if (card.panel !== undefined && !(card.panel in PANELS)) {
    throw new Error(`${where}: panel must be one of ${Object.keys(PANELS).join(", ")}, not ${JSON.stringify(card.panel)}.`);
  }
  if (!card.state || typeof card.state !== "object" || Array.isArray(card.state)) {
    throw new Error(`${where} (${card.title}): state must be an object, such as {"points": [[0, 0, 0], [1, 1, 1]], "C": 10}.`);
  }
  try {
    checkState({ ...card.state, lesson: card.id });
  } catch (error) {
    throw new Error(`${where} (${card.title}), state: ${/** @type {Error} */ (error).message}`);
  }
}

/** The lessons: see the head of this file. */
export class Lessons extends Panel {
  constructor() {
    super();
    /** @type {any[]} */ this.cards = [];
    /** @type {any[]} those that come with mercer */ this.own = [];
    /** @type {any} */ this.embedded = null;
    this.shown = "";
    /** @type {Set<string>} */ this.done = new Set();
    try {
      this.done = new Set(JSON.parse(localStorage.getItem(STORED) ?? "[]"));
    } catch {
      /* storage is forbidden, or holds something else: progress starts anew */
    }
  }

  /** @param {any[]} lessons */
  set lessons(lessons) {
    this.own = lessons ?? [];
    this.cards = this.own;
    this.shown = "";
    if (this._built) this.stateChanged();
  }

  build() {
    this.setAttribute("role", "group");
    this.setAttribute("aria-label", "Lessons");
    this.list = /** @type {HTMLSelectElement} */ (h("select", { class: "mp-wide", "aria-label": "Lesson", onchange: () => this.open(this.list.value) }));
    this.back = h("button", { type: "button", onclick: () => this.move(-1), text: "← previous" });
    this.next = h("button", { type: "button", onclick: () => this.move(1), text: "next →" });
    this.bar = h("progress", { max: 1, value: 0, "aria-label": "Lessons done" });
    this.count = h("span", { class: "mp-muted" });
    this.card = h("article", { class: "mp-card", "aria-live": "polite" });
    this.place = h("div", { class: "mp-embedded" });
    const file = /** @type {HTMLInputElement} */ (h("input", { type: "file", accept: ".json,application/json", class: "mp-file",
      "aria-label": "Open lesson cards of your own, a JSON file", onchange: () => this.readFile(file.files?.[0], file) }));
    this.standard = h("button", { type: "button", hidden: true, onclick: () => this.restore(), text: "mercer's own lessons" });
    this.append(
      h("div", { class: "mp-row" }, this.back, this.next, this.bar, this.count), this.list, this.errorLine(), this.card, this.place,
      h("details", { class: "mp-more" }, h("summary", { text: "For teachers: your own cards" }),
        h("p", { class: "mp-muted", text: "Open or drop a JSON file with cards. A card has id, title, question, try, see and state; “save as a card” writes one with the present state, to be completed." }),
        h("div", { class: "mp-row" }, h("label", { class: "mp-button" }, "open cards …", file),
          h("button", { type: "button", onclick: () => this.saveCard(), text: "save as a card" }), this.standard)));
    this.addEventListener("dragover", (event) => event.preventDefault());
    this.addEventListener("drop", (event) => {
      event.preventDefault();
      this.readFile(/** @type {DragEvent} */ (event).dataTransfer?.files?.[0]);
    });
  }

  stateChanged() {
    if (this.embedded) this.embedded.state = this.state;
    const wanted = this.state?.lesson ?? "";
    if (!this.list || this.shown === wanted + this.cards.length) return;
    this.shown = wanted + this.cards.length;
    this.fill();
  }

  resultChanged() {
    if (this.embedded) this.embedded.result = this.result;
  }

  activeChanged() {
    if (this.embedded) this.embedded.active = this.active;
  }

  /** @param {boolean} dark */
  set dark(dark) {
    if (this.embedded) this.embedded.dark = dark;
  }

  get index() {
    return this.cards.findIndex((card) => card.id === this.state?.lesson);
  }

  /** Show the card of the state, or the introduction. */
  fill() {
    const card = this.cards[this.index];
    this.list.replaceChildren(h("option", { value: "", text: this.cards.length ? "choose a lesson …" : "no lessons yet" }),
      ...this.cards.map((one, k) => h("option", { value: one.id, text: `${this.done.has(one.id) ? "✓ " : ""}${k + 1}. ${one.title}` })));
    this.list.value = card?.id ?? "";
    const finished = this.cards.filter((one) => this.done.has(one.id)).length;
    this.bar.setAttribute("value", String(this.cards.length ? finished / this.cards.length : 0));
    this.count.textContent = `${finished} of ${this.cards.length} done`;
    this.back.toggleAttribute("disabled", this.index <= 0);
    this.next.toggleAttribute("disabled", !this.cards.length || this.index >= this.cards.length - 1);
    this.next.textContent = this.index < 0 ? "first lesson →" : "next →";
    this.embed(card?.panel ?? null);
    if (!card) {
      this.card.replaceChildren(h("p", { text: "Each lesson sets up the page, asks a question, and says what to try and what you should see." }));
      return;
    }
    const see = /** @type {HTMLDetailsElement} */ (h("details", { class: "mp-see" }, h("summary", { text: "What you should see" }),
      h("ul", {}, ...card.see.map((/** @type {string} */ text) => h("li", { text })))));
    see.addEventListener("toggle", () => see.open && this.finish(card.id));
    this.card.replaceChildren(
      h("h3", { text: card.title }),
      card.notes ? h("p", { class: "mp-muted", text: card.notes }) : "",
      h("p", { class: "mp-question", text: card.question }),
      h("h4", { text: "Try" }),
      h("ol", {}, ...card.try.map((/** @type {string} */ text) => h("li", { text }))),
      see,
      h("div", { class: "mp-row" }, h("button", { type: "button", onclick: () => this.open(card.id), text: "set up again" })));
  }

  /** Put the panel that a card needs below it. @param {string | null} panel */
  embed(panel) {
    const tag = panel ? `mercer-${panel}` : null;
    if (this.embedded?.localName !== tag) {
      if (this.embedded) this.embedded.active = false;
      this.embedded = tag ? document.createElement(tag) : null;
      this.place.replaceChildren(...(this.embedded ? [this.embedded] : []));
    }
    if (!this.embedded) return;
    this.embedded.state = this.state;
    this.embedded.result = this.result;
    this.embedded.active = this.active;
  }

  /** @param {string} id */
  finish(id) {
    if (this.done.has(id)) return;
    this.done.add(id);
    try {
      localStorage.setItem(STORED, JSON.stringify([...this.done]));
    } catch {
      /* without storage the progress lasts as long as the page */
    }
    const finished = this.cards.filter((one) => this.done.has(one.id)).length;
    this.bar.setAttribute("value", String(finished / this.cards.length));
    this.count.textContent = `${finished} of ${this.cards.length} done`;
    const option = [...this.list.options].find((one) => one.value === id);
    if (option && !option.text.startsWith("✓")) option.text = `✓ ${option.text}`;
  }

  /** @param {number} by */
  move(by) {
    const card = this.cards[Math.max(0, this.index + by)];
    if (card) this.open(card.id);
  }

  /** Set up the page for a card. @param {string} id */
  open(id) {
    const card = this.cards.find((one) => one.id === id);
    this.fail(null);
    this.shown = "";
    if (!card) this.emit("patch", { patch: { lesson: null }, label: "no lesson" });
    else this.emit("patch", { patch: { ...card.state, lesson: card.id }, label: `lesson: ${card.title}`, reset: true });
  }

  /** @param {File | undefined} file @param {HTMLInputElement} [input] */
  async readFile(file, input) {
    if (!file) return;
    try {
      const cards = parseCards(await file.text());
      // fields that only the back end can check, such as the text of a kernel
      for (const [k, card] of cards.entries()) {
        try {
          await this.ask("fit", { state: checkState({ ...card.state, lesson: card.id }), grid: [8, 8] });
        } catch (error) {
          throw new Error(`Card ${k + 1} (${card.title}), state: ${/** @type {Error} */ (error).message}`);
        }
      }
      this.cards = cards;
      this.standard.hidden = false;
      this.fail(null);
      this.emit("notice", { text: `Opened ${cards.length} ${cards.length === 1 ? "card" : "cards"} from ${file.name}.`, kind: "info" });
      this.open(cards[0].id);
    } catch (error) {
      this.fail(error);
    } finally {
      if (input) input.value = "";
    }
  }

  restore() {
    this.cards = this.own;
    this.standard.hidden = true;
    this.shown = "";
    this.fail(null);
    this.stateChanged();
  }

  /** Write the present state as a card to be completed. */
  saveCard() {
    const { lesson, selected, version, ...state } = this.state;
    const card = { id: "my-card", title: "My card", notes: "where in the notes", question: "What happens if …?",
      try: ["Move a point."], see: ["The margin changes."], state };
    download("my-card.json", new Blob([JSON.stringify({ lessons: [card] }, null, 1)], { type: "application/json" }));
  }
}

define("mercer-lessons", Lessons);
