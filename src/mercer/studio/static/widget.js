/**
 * mercer studio in a notebook: the same page, with the widget's messages in place of HTTP.
 *
 * A notebook loads this file alone, so the other modules come as text in the trait `modules`; each becomes a blob address
 * once the modules it imports have theirs. Messages: {id, name, payload} out, {id, answer} or {id, error} back.
 */

/** @type {Map<string, Promise<any>>} the page's main module, made once per set of sources */
const made = new Map();

/**
 * @param {Record<string, string>} sources name of a file -> its text
 * @returns {Promise<any>} main.js
 */
function importMain(sources) {
  const key = JSON.stringify(Object.keys(sources).map((name) => [name, sources[name].length]));
  if (!made.has(key)) made.set(key, import(/* @vite-ignore */ address("main.js", sources, new Map(), [])));
  return /** @type {Promise<any>} */ (made.get(key));
}

/**
 * The blob address of a module, made after those of its imports.
 *
 * @param {string} name @param {Record<string, string>} sources @param {Map<string, string>} known @param {string[]} above
 * @returns {string}
 */
function address(name, sources, known, above) {
  const found = known.get(name);
  if (found) return found;
  if (!(name in sources)) throw new Error(`The widget has no module ${name}.`);
  if (above.includes(name)) throw new Error(`The modules ${[...above, name].join(" → ")} import each other in a ring.`);
  const text = sources[name].replace(/((?:^|\n)\s*(?:import|export)\b[^"'`;]*?["'])\.\/([\w.-]+)(["'])/g, (_, before, file, after) => before + address(file, sources, known, [...above, name]) + after);
  const made = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  known.set(name, made);
  return made;
}

/** Answers by messages of the widget. @param {any} model @returns {(name: string, payload: object) => Promise<any>} */
function messageCall(model) {
  let count = 0;
  /** @type {Map<number, {resolve: (answer: any) => void, reject: (error: Error) => void}>} */
  const waiting = new Map();
  model.on("msg:custom", (/** @type {any} */ message) => {
    const request = waiting.get(message?.id);
    if (!request) return;
    waiting.delete(message.id);
    if (message.error) request.reject(Object.assign(new Error(message.error.what), { name: "AnswerError", where: message.error.where ?? "" }));
    else request.resolve(message.answer);
  });
  return (name, payload) =>
    new Promise((resolve, reject) => {
      const id = ++count;
      waiting.set(id, { resolve, reject });
      model.send({ id, name, payload });
    });
}

/** @param {{model: any, el: HTMLElement}} widget @returns {Promise<() => void>} */
async function render({ model, el }) {
  const root = document.createElement("div");
  // a notebook takes plain keys as commands: "a" adds a cell, "d d" deletes one. Keys with Ctrl or Cmd, and Shift+Enter, stay its own
  root.addEventListener("keydown", (event) => {
    if (!event.ctrlKey && !event.metaKey && !(event.shiftKey && event.key === "Enter")) event.stopPropagation();
  });
  el.append(root);
  const { mount } = await importMain(model.get("modules"));
  let own = false;
  /** @type {any} */ let timer = null;
  const studio = mount(root, messageCall(model), {
    state: model.get("state"),
    onState(/** @type {any} */ state) {
      // Python need not see every place of a dragged point
      clearTimeout(timer);
      timer = setTimeout(() => {
        own = true;
        model.set("state", state);
        model.save_changes();
        own = false;
      }, 150);
    },
  });
  const follow = () => {
    if (own) return;
    clearTimeout(timer);
    studio.load(model.get("state"));
  };
  model.on("change:state", follow);
  return () => {
    model.off("change:state", follow);
    studio.destroy();
  };
}

export default { render };
