/**
 * Colours and marks of the classes.
 *
 * The first eight colours are those of Okabe and Ito (with yellow darkened and black lightened so that both show on light
 * and dark paper); each class also has a mark of its own shape, so that no information hangs on colour alone.
 */

/** @type {string[]} one colour per class, the same on light and dark paper */
export const CLASS_COLOURS = [
  "#0072b2", // blue
  "#d55e00", // vermilion
  "#009e73", // green
  "#cc79a7", // pink
  "#e69f00", // orange
  "#56b4e9", // sky
  "#b8a800", // yellow
  "#7a6fb0", // violet
  "#8c6d46", // brown
  "#7f7f7f", // grey
];

const COLOUR_NAMES = ["blue", "vermilion", "green", "pink", "orange", "sky", "yellow", "violet", "brown", "grey"];
const MARK_NAMES = ["circle", "square", "triangle", "diamond", "cross", "star", "hexagon", "down triangle", "plus", "pentagon"];

/** @param {number} label @returns {string} hex colour of a class */
export function classColour(label) {
  return CLASS_COLOURS[((label % 10) + 10) % 10];
}

/** @param {number} label @returns {string} such as "blue circle" */
export function className(label) {
  const index = ((label % 10) + 10) % 10;
  return `${COLOUR_NAMES[index]} ${MARK_NAMES[index]}`;
}

/** @param {number} label @returns {[number, number, number]} red, green, blue in 0..255 */
export function classRGB(label) {
  return hexToRGB(classColour(label));
}

/** @param {string} hex such as "#0072b2" @returns {[number, number, number]} */
export function hexToRGB(hex) {
  const value = parseInt(hex.slice(1), 16);
  return [(value >> 16) & 255, (value >> 8) & 255, value & 255];
}

/**
 * The outline of a class's mark around (0, 0); all marks have about the area of a circle of that radius.
 *
 * @param {number} label
 * @param {number} size radius in pixels
 * @returns {string} the `d` of an SVG path, also understood by `new Path2D(d)`
 */
export function markPath(label, size) {
  const r = size;
  switch (((label % 10) + 10) % 10) {
    case 0:
      return `M${-r},0a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0Z`;
    case 1:
      return polygon([[-1, -1], [1, -1], [1, 1], [-1, 1]], r * 0.89);
    case 2:
      return regular(3, r * 1.35, -Math.PI / 2);
    case 3:
      return polygon([[0, -1], [1, 0], [0, 1], [-1, 0]], r * 1.25);
    case 4:
      return cross(r * 1.05, Math.PI / 4);
    case 5:
      return star(r * 1.4);
    case 6:
      return regular(6, r * 1.1, 0);
    case 7:
      return regular(3, r * 1.35, Math.PI / 2);
    case 8:
      return cross(r * 1.15, 0);
    default:
      return regular(5, r * 1.15, -Math.PI / 2);
  }
}

/** @param {[number, number][]} corners @param {number} scale */
function polygon(corners, scale) {
  return `M${corners.map(([x, y]) => `${round(x * scale)},${round(y * scale)}`).join("L")}Z`;
}

/** @param {number} count @param {number} radius @param {number} start angle of the first corner */
function regular(count, radius, start) {
  const corners = [];
  for (let k = 0; k < count; k++) {
    const angle = start + (2 * Math.PI * k) / count;
    corners.push([Math.cos(angle), Math.sin(angle)]);
  }
  return polygon(/** @type {[number, number][]} */ (corners), radius);
}

/** @param {number} radius */
function star(radius) {
  const corners = [];
  for (let k = 0; k < 10; k++) {
    const angle = -Math.PI / 2 + (Math.PI * k) / 5;
    const length = k % 2 ? 0.48 : 1;
    corners.push([length * Math.cos(angle), length * Math.sin(angle)]);
  }
  return polygon(/** @type {[number, number][]} */ (corners), radius);
}

/** A cross with thick arms. @param {number} radius @param {number} turn */
function cross(radius, turn) {
  const a = 0.34;
  const plus = [[-a, -1], [a, -1], [a, -a], [1, -a], [1, a], [a, a], [a, 1], [-a, 1], [-a, a], [-1, a], [-1, -a], [-a, -a]];
  const [c, s] = [Math.cos(turn), Math.sin(turn)];
  return polygon(/** @type {[number, number][]} */ (plus.map(([x, y]) => [c * x - s * y, s * x + c * y])), radius);
}

/** @param {number} value */
function round(value) {
  return Math.round(value * 100) / 100;
}
