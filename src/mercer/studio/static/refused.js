/**
 * The page without a token: a link that holds a state is joined with the address that `mercer studio` printed.
 */
const field = /** @type {HTMLInputElement} */ (document.getElementById("printed"));
const link = /** @type {HTMLAnchorElement} */ (document.getElementById("open"));
const offer = /** @type {HTMLElement} */ (document.getElementById("with-state"));

offer.hidden = !location.hash.startsWith("#s=");
field.addEventListener("input", () => {
  const token = /[?&]token=([\w-]+)/.exec(field.value)?.[1];
  link.hidden = !token;
  if (token) link.href = `${location.pathname}?token=${token}${location.hash}`;
});
