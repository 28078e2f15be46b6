/**
 * Starts the page on the local server: the token comes from the address, the state from the fragment.
 */
import { mount } from "./main.js";
import { httpCall } from "./transport.js";

const token = new URLSearchParams(location.search).get("token") ?? "";
const base = new URL(".", location.href).pathname;
const root = /** @type {HTMLElement} */ (document.getElementById("studio"));
/** @type {any} */ (globalThis).mercerStudio = mount(root, httpCall(base, token), { address: true });
