/**
 * mount(root, call, options): builds the page from web components and wires the store and the transport to them.
 *
 * Components get data by properties (state, result, active, dark) and speak by events that bubble; only this file knows store
 * and transport:
 *   ask     {name, payload, resolve, reject}            a question to the back end
 *   patch   {patch, gesture?, transient?, reset?, axes?} a change of the state; changes in a row with one gesture are one step
 *           of undo, transient changes none; reset puts the patch onto the default state
 *   select  {index, other?}                             the point that is selected
 *   frame   {answer, grey, step, marks, values}         a machine to draw on the plane before the grey exact one, and its primal
 *                                                       and dual value; answer null: none
 *   notice  {text, kind}                                a sentence for the status line
 *   view    {name}                                      a panel to open
 */
import "./plane.js";
import "./controls.js";
import "./certificate.js";
import "./kernel.js";
import "./gram.js";
import "./lift.js";
import "./map.js";
import "./stepper.js";
import "./lessons.js";
import "./data.js";
import "./takeaway.js";
import { html } from "./dom.js";
import { Fitting } from "./fitting.js";
import { buildHeader } from "./header.js";
import { DEFAULT_STATE, Store, StateError, decodeFragment, encodeFragment, parseState, stateText } from "./store.js";
import { buildTabs } from "./tabs.js";
import { newestOnly } from "./transport.js";

/** The panels: title of the tab and name of the element. */
const PANELS = [
  { id: "kernel", title: "Kernel", tag: "mercer-kernel" },
  { id: "lessons", title: "Lessons", tag: "mercer-lessons" },
  { id: "stepper", title: "Steps", tag: "mercer-stepper" },
  { id: "gram", title: "Gram matrix", tag: "mercer-gram" },
  { id: "lift", title: "Feature space", tag: "mercer-lift" },
  { id: "map", title: "γ × C map", tag: "mercer-map" },
  { id: "data", title: "My data", tag: "mercer-data" },
  { id: "takeaway", title: "Take away", tag: "mercer-takeaway" },
];
const COMPILATION = 1500; // milliseconds between questions whether the loops are compiled
const FITTED = ["mode", "points", "kernel", "C", "loss", "bias", "epsilon", "nu", "quantiles", "noise"];

/**
 * @param {HTMLElement} root emptied and filled
 * @param {(name: string, payload: object) => Promise<any>} call asks the back end
 * @param {{state?: object, address?: boolean, onState?: (state: import("./store.js").State) => void}} [options]
 *   address: keep the state in the URL fragment
 */
export function mount(root, call, options = {}) {
  const ask = newestOnly(call);
  const store = new Store();
  root.classList.add("mercer-studio");

  /** @type {any} */ const plane = html("mercer-plane");
  /** @type {any} */ const controls = html("mercer-controls");
  /** @type {any} */ const certificate = html("mercer-certificate");
  const panels = PANELS.map((panel) => ({ ...panel, element: /** @type {any} */ (html(panel.tag)) }));
  const components = [plane, controls, certificate, ...panels.map((panel) => panel.element)];
  const message = html("p", { class: "message", role: "status", "aria-live": "polite", hidden: true });

  const header = buildHeader({
    undo: () => store.undo(),
    redo: () => store.redo(),
    save: () => save(store.state),
    open: (text) => open(text),
    link: options.address ? () => copyLink() : null,
    theme: (dark) => setTheme(dark),
  });
  const tabs = buildTabs(panels, (id) => activate(id));
  root.replaceChildren(
    header.element,
    message,
    html(
      "div",
      { class: "studio-layout" },
      html("section", { class: "studio-plane", "aria-label": "Points and machine" }, plane),
      html("section", { class: "studio-controls", "aria-label": "Controls" }, controls),
      html("section", { class: "studio-side", "aria-label": "Certificate and panels" }, certificate, tabs.element),
    ),
  );

  let started = false; // whether a machine has been shown
  /** @type {any} */ let shown = null; // the newest answer
  // while the user edits the plane, the panels wait: their questions would slow the fits down
  const listening = () => (fitting.holding ? [plane, controls, certificate] : components);
  const fitting = new Fitting(ask, {
    view: (state) => plane.viewFor(state),
    result(result, state) {
      started = true;
      for (const component of listening()) component.result = result;
      shown = result;
      plane.resultState = state;
      // the newest machine is shown: an error about an older one is out of date
      if (message.dataset.from === "fit") tell("", "info");
    },
    path: (path) => (controls.path = path),
    failed(error) {
      const refused = error.name === "AnswerError" && /** @type {any} */ (error).where !== "server";
      if (!started && refused && store.state !== DEFAULT_STATE) {
        store.set(DEFAULT_STATE);
        tell(`This state cannot be shown: ${error.message} The page starts with its default.`, "error", "state");
        return;
      }
      controls.problem = error;
      certificate.fail();
      tell(error.message, "error", "fit");
    },
    busy: (busy) => root.classList.toggle("busy", busy),
  });

  /** @param {string} text @param {string} kind @param {string} [from] */
  function tell(text, kind, from = "") {
    message.textContent = text;
    message.hidden = !text;
    message.className = `message ${kind}`;
    message.dataset.from = from;
  }

  /** The machine of a step, or null for the exact one. @param {any} frame */
  function showFrame(frame) {
    plane.frame = frame;
    certificate.frame = frame;
  }

  /** @param {string} id */
  function activate(id) {
    for (const panel of panels) panel.element.active = panel.id === id;
  }

  /** @param {boolean} dark */
  function setTheme(dark) {
    root.dataset.theme = dark ? "dark" : "light";
    for (const component of components) component.dark = dark;
  }

  /** @type {any} */ let addressTimer = null;
  let written = -Infinity;
  /** Write the state into the address: at once, or a moment after the last time, since browsers limit how often. */
  function writeAddress() {
    if (!options.address) return;
    clearTimeout(addressTimer);
    addressTimer = setTimeout(replaceAddress, Math.max(0, written + 250 - performance.now()));
  }

  function replaceAddress() {
    written = performance.now();
    try {
      history.replaceState(null, "", encodeFragment(store.state));
    } catch {
      /* the browser refuses for a while: the next change writes it */
    }
  }

  store.subscribe((state, previous) => {
    if (FITTED.some((key) => /** @type {any} */ (state)[key] !== /** @type {any} */ (previous)[key])) {
      showFrame(null);
      controls.problem = null;
    }
    for (const component of listening()) component.state = state;
    header.update(store.canUndo, store.canRedo);
    fitting.changed(state, previous);
    writeAddress();
    options.onState?.(state);
  });

  /** Run a change; an invalid state is reported and changes nothing. @param {() => void} change */
  function attempt(change) {
    try {
      change();
    } catch (error) {
      if (!(error instanceof StateError)) throw error;
      tell(error.message, "error", "state");
    }
  }

  /** @type {WeakMap<EventTarget, import("./transport.js").Call>} for each component its own queue, which keeps only the newest request */
  const asks = new WeakMap();
  /** @type {Record<string, (detail: any, target: EventTarget) => void>} */
  const listeners = {
    ask({ name, payload, resolve, reject }, target) {
      if (!asks.has(target)) asks.set(target, newestOnly(call));
      /** @type {any} */ (asks.get(target))(name, payload).then(resolve, reject);
    },
    patch: ({ patch, gesture, transient, reset, axes }) =>
      attempt(() => {
        if (reset) {
          store.load(patch);
          plane.axes = axes ?? null;
          plane.tools.choose("move"); // a lesson says "drag a point": the eraser would remove it
          tell("", "info");
        } else store.update(patch, gesture ?? null, transient);
      }),
    select({ index, other }) {
      attempt(() => store.update({ selected: index }));
      plane.other = other ?? null;
    },
    frame: (detail) => showFrame(detail.answer ? detail : null),
    notice: ({ text, kind }) => tell(text, kind),
    view: ({ name }) => tabs.show(name),
    "gesture-end": () => store.endGesture(),
    hold({ holding }) {
      fitting.hold(holding);
      certificate.holding = holding;
      if (holding) return;
      for (const { element } of panels) {
        element.state = store.state;
        element.result = shown;
      }
    },
    sliding: ({ sliding }) => (fitting.sliding = certificate.holding = sliding),
    resized: () => fitting.changed(store.state, null),
  };
  for (const [name, listener] of Object.entries(listeners))
    // inputs have a "select" event of their own
    root.addEventListener(name, (event) => event instanceof CustomEvent && listener(event.detail, /** @type {EventTarget} */ (event.target)));

  root.addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || /** @type {HTMLElement} */ (event.target).matches("input[type=text], textarea")) return;
    const key = event.key.toLowerCase();
    if (key === "z" && !event.shiftKey) store.undo();
    else if ((key === "z" && event.shiftKey) || key === "y") store.redo();
    else return;
    event.preventDefault();
  });

  // a file dropped on the page opens as a table or, if it is JSON, as a state; without this the browser would leave the page.
  // The panels "Lessons" and "My data" take files of their own
  root.addEventListener("dragover", (event) => event.preventDefault());
  root.addEventListener("drop", async (event) => {
    const file = event.dataTransfer?.files?.[0];
    if (event.defaultPrevented) return;
    event.preventDefault();
    if (!file) return;
    if (/\.json$/i.test(file.name)) return open(await file.text());
    tabs.show("data");
    panels.find((panel) => panel.id === "data")?.element.open(file);
  });

  /** @param {import("./store.js").State} state */
  function save(state) {
    const link = html("a", { download: `${state.mode}.mercer-studio.json`, href: URL.createObjectURL(new Blob([stateText(state)], { type: "application/json" })) });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  // a copied link, pasted on the page, opens its state
  const pasted = (/** @type {ClipboardEvent} */ event) => {
    const text = event.clipboardData?.getData("text/plain") ?? "";
    if (/** @type {HTMLElement} */ (event.target).matches?.("input, textarea") || !/#s=/.test(text)) return;
    event.preventDefault();
    open(text);
  };
  const pasteRoot = /** @type {HTMLElement} */ (options.address ? document.body : root);
  pasteRoot.addEventListener("paste", pasted);

  /** @param {string} text of a file, or a copied link */
  function open(text) {
    attempt(() => {
      store.load(parseState(text));
      tell("Opened.", "info");
    });
  }

  async function copyLink() {
    const address = `${location.origin}${location.pathname}${encodeFragment(store.state)}`;
    try {
      await navigator.clipboard.writeText(address);
      tell("The address of this state is copied, without the token. This browser opens it while this studio runs; anyone else opens a studio of their own and pastes it there with Ctrl+V.", "info");
    } catch {
      tell("The browser does not allow copying; the address bar holds this state.", "error");
    }
  }

  /** The state to start with: given, in the address, or the default. */
  function start() {
    try {
      const given = options.state ? parseState(JSON.stringify(options.state)) : null;
      return given ?? (options.address ? decodeFragment(location.hash) : null);
    } catch (error) {
      if (!(error instanceof StateError)) throw error;
      tell(`This state cannot be shown: ${error.message} The page ${started ? "stays as it was" : "starts with its default"}.`, "error", "state");
      return null;
    }
  }

  function readAddress() {
    if (location.hash && location.hash !== encodeFragment(store.state)) {
      const state = start();
      if (state) store.load(state);
    }
  }
  if (options.address) addEventListener("hashchange", readAddress);

  const takeaway = panels.find((panel) => panel.id === "takeaway");
  if (takeaway) takeaway.element.plane = plane;
  setTheme(header.dark());
  const given = start();
  store.set(given ?? store.state);
  fitting.changed(store.state, null);
  tabs.show(store.state.lesson ? "lessons" : "kernel");
  loadLists();
  tellCompilation();
  if (options.address && !given && !location.hash) /** @type {any} */ (panels.find((panel) => panel.id === "data"))?.element.begin();

  /** Presets and lessons are the same for every state: asked for once. */
  async function loadLists() {
    try {
      controls.presets = (await ask("presets", {})).presets;
      const lessons = panels.find((panel) => panel.id === "lessons");
      if (lessons) lessons.element.lessons = (await ask("lessons", {})).lessons;
    } catch (error) {
      tell(/** @type {Error} */ (error).message, "error");
    }
  }

  /** On the first start the first machine waits for compiled loops: say so until they are there. */
  async function tellCompilation() {
    for (;;) {
      await new Promise((resolve) => setTimeout(resolve, COMPILATION));
      const session = await ask("session", {}).catch(() => null);
      if (!session || session.ready || !root.isConnected) break;
      // what is wrong with the state in the address stays on the page
      if (message.dataset.from !== "state") tell(`First start: mercer compiles its loops for this computer, step ${session.line}. This takes up to a minute, once.`, "info", "compilation");
    }
    if (message.dataset.from === "compilation") tell("", "info");
  }

  return {
    store,
    plane,
    fitting,
    /** Show another state; one that is shown already changes nothing. @param {object} part */
    load: (part) =>
      attempt(() => {
        if (stateText(parseState(JSON.stringify(part))) !== stateText(store.state)) store.load(part);
      }),
    destroy() {
      removeEventListener("hashchange", readAddress);
      pasteRoot.removeEventListener("paste", pasted);
      root.replaceChildren();
    },
  };
}
