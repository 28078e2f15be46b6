/**
 * From the page to the answers: HTTP with a token, and the rule that at most one request of a name runs at a time.
 *
 * While a request runs, the newest waiting one of the same name replaces older ones: their promises reject with
 * `Superseded` (name "AbortError"). So a dragged point never queues up fits, and the last position is always fitted.
 *
 * @typedef {(name: string, payload: object) => Promise<any>} Call
 */

/** The back end refused; `where` names the field of the state. */
export class AnswerError extends Error {
  /** @param {string} what @param {string} [where] */
  constructor(what, where = "") {
    super(what);
    this.name = "AnswerError";
    this.where = where;
  }
}

/** A newer request of the same name has taken this one's place. */
export class Superseded extends Error {
  constructor() {
    super("a newer request replaced this one");
    this.name = "AbortError";
  }
}

/**
 * @param {string} [base] address of the server, ending in "/"
 * @param {string} [token]
 * @returns {Call}
 */
export function httpCall(base = "/", token = "") {
  return async (name, payload) => {
    let response;
    try {
      response = await fetch(`${base}api/${name}`, {
        method: "POST",
        headers: { "Content-Type": "application/json", "X-Mercer-Token": token },
        body: JSON.stringify(payload),
        cache: "no-store",
      });
    } catch {
      throw new AnswerError("The server does not answer. Is “mercer studio” still running in the terminal?", "server");
    }
    let answer = null;
    try {
      answer = await response.json();
    } catch {
      throw new AnswerError(`The server sent no JSON (HTTP ${response.status}).`, "server");
    }
    if (answer && answer.error) throw new AnswerError(answer.error.what ?? String(answer.error), answer.error.where ?? "");
    if (!response.ok) throw new AnswerError(`The server refused (HTTP ${response.status}).`, "server");
    return answer;
  };
}

/**
 * At most one running request per name; the newest waiting one wins.
 *
 * @param {Call} call
 * @returns {Call}
 */
export function newestOnly(call) {
  /** @type {Map<string, {waiting: null | {payload: object, resolve: Function, reject: Function}}>} */
  const running = new Map();

  /** @param {string} name @param {{payload: object, resolve: Function, reject: Function}} request */
  async function run(name, request) {
    const slot = { waiting: /** @type {any} */ (null) };
    running.set(name, slot);
    try {
      request.resolve(await call(name, request.payload));
    } catch (error) {
      request.reject(error);
    }
    running.delete(name);
    if (slot.waiting) run(name, slot.waiting);
  }

  return (name, payload) =>
    new Promise((resolve, reject) => {
      const request = { payload, resolve, reject };
      const slot = running.get(name);
      if (!slot) {
        run(name, request);
        return;
      }
      if (slot.waiting) slot.waiting.reject(new Superseded());
      slot.waiting = request;
    });
}
