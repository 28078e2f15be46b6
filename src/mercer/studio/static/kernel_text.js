/**
 * Kernels by name: their parameters with ranges, and the text that mercer.parse_kernel reads.
 *
 * @typedef {{name: string, label: string, help: string, min: number, max: number, value: number, log?: boolean, whole?: boolean}} Parameter
 */

/** @param {number} value @returns {Parameter} */
const gamma = (value) => ({ name: "gamma", label: "γ", help: "Width of the kernel: large γ means narrow bumps around the points.", min: 0.001, max: 1000, value, log: true });
/** @type {Parameter} */
const length = { name: "length_scale", label: "Length scale", help: "Distance over which values change.", min: 0.01, max: 100, value: 1, log: true };
/** @type {Parameter} */
const coef0 = { name: "coef0", label: "Constant", help: "The constant added to the inner product: 0 keeps only terms of the full degree.", min: 0, max: 10, value: 1 };

/** @type {{name: string, title: string, parameters: Parameter[]}[]} */
export const KERNELS = [
  { name: "linear", title: "Linear", parameters: [] },
  {
    name: "polynomial",
    title: "Polynomial",
    parameters: [{ name: "degree", label: "Degree", help: "Products of up to this many features.", min: 1, max: 8, value: 2, whole: true }, { ...gamma(1), help: "Factor of the inner product." }, coef0],
  },
  { name: "gaussian", title: "Gaussian (RBF)", parameters: [gamma(1)] },
  { name: "laplacian", title: "Laplacian", parameters: [gamma(1)] },
  {
    name: "matern",
    title: "Matérn",
    parameters: [{ name: "nu", label: "ν of the kernel", help: "Smoothness: 0.5 is rough, 2.5 has two derivatives.", min: 0.5, max: 5, value: 1.5 }, length],
  },
  {
    name: "rational_quadratic",
    title: "Rational quadratic",
    parameters: [{ name: "alpha", label: "Shape", help: "Mixture of length scales; a large shape gives the Gaussian.", min: 0.05, max: 50, value: 1, log: true }, length],
  },
  {
    name: "periodic",
    title: "Periodic",
    parameters: [length, { name: "period", label: "Period", help: "Distance after which values repeat.", min: 0.05, max: 50, value: 1, log: true }],
  },
  {
    name: "sigmoid",
    title: "Sigmoid (not Mercer)",
    parameters: [gamma(0.1), { ...coef0, min: -5, max: 5, value: 0, help: "The constant added to the inner product." }],
  },
];

const ALIASES = /** @type {Record<string, string>} */ ({ rbf: "gaussian", poly: "polynomial", laplace: "laplacian", tanh: "sigmoid" });

/**
 * A kernel text with one name and plain numbers, or null for any other expression.
 *
 * @param {string} text @returns {{name: string, values: Record<string, number>} | null}
 */
export function readKernel(text) {
  const match = /^\s*([A-Za-z_]+)\s*(?:\(([^()]*)\))?\s*$/.exec(text);
  if (!match) return null;
  const name = ALIASES[match[1].toLowerCase()] ?? match[1].toLowerCase();
  const kernel = KERNELS.find((one) => one.name === name);
  if (!kernel) return null;
  /** @type {Record<string, number>} */ const values = {};
  for (const part of (match[2] ?? "").split(",")) {
    if (!part.trim()) continue;
    const pair = /^\s*(\w+)\s*=\s*([-+.\deE]+)\s*$/.exec(part);
    if (!pair || !kernel.parameters.some((parameter) => parameter.name === pair[1]) || !Number.isFinite(Number(pair[2]))) return null;
    values[pair[1]] = Number(pair[2]);
  }
  return { name, values };
}

/** @param {string} name @param {Record<string, number>} values @returns {string} */
export function writeKernel(name, values) {
  const kernel = KERNELS.find((one) => one.name === name);
  const parts = (kernel?.parameters ?? []).map((parameter) => `${parameter.name}=${number(values[parameter.name] ?? parameter.value, parameter.whole)}`);
  return `${name}(${parts.join(", ")})`;
}

/** A Python number: whole only where the parameter is. @param {number} value @param {boolean} [whole] */
function number(value, whole = false) {
  const text = String(Number(value.toPrecision(6)));
  return whole || /[.e]/.test(text) ? text : `${text}.0`;
}
