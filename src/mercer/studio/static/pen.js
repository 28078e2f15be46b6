/**
 * Paints a list of shapes (see scene.js) on a canvas, or writes it as SVG.
 */

const FONT = "system-ui, sans-serif";

/** @param {CanvasRenderingContext2D} context @param {import("./scene.js").Shape[]} shapes @param {string} halo colour around text */
export function paintShapes(context, shapes, halo) {
  context.lineJoin = "round";
  context.lineCap = "round";
  for (const shape of shapes) {
    context.globalAlpha = shape.opacity ?? 1;
    if (shape.label) {
      const { x, y, text, anchor, size } = shape.label;
      context.font = `${size ?? 12}px ${FONT}`;
      context.textAlign = anchor ?? "left";
      context.strokeStyle = halo;
      context.lineWidth = 3;
      context.setLineDash([]);
      context.strokeText(text, x, y);
      context.fillStyle = shape.fill ?? "#000";
      context.fillText(text, x, y);
      continue;
    }
    context.beginPath();
    for (const line of shape.lines ?? []) {
      line.forEach(([x, y], k) => (k ? context.lineTo(x, y) : context.moveTo(x, y)));
      if (shape.closed) context.closePath();
    }
    if (shape.fill) {
      const alpha = context.globalAlpha;
      if (shape.stroke && shape.dash?.length) context.globalAlpha = 0.1; // the inside of a hull
      context.fillStyle = shape.fill;
      context.fill();
      context.globalAlpha = alpha;
    }
    if (shape.stroke) {
      context.strokeStyle = shape.stroke;
      context.lineWidth = shape.width ?? 1;
      context.setLineDash(shape.dash ?? []);
      context.stroke();
    }
  }
  context.globalAlpha = 1;
  context.setLineDash([]);
}

/** @param {import("./scene.js").Shape[]} shapes @param {string} halo @returns {string} SVG elements */
export function writeShapes(shapes, halo) {
  return shapes
    .map((shape) => {
      if (shape.label) {
        const { x, y, text, anchor, size } = shape.label;
        const place = { left: "start", center: "middle", right: "end" }[/** @type {string} */ (anchor ?? "left")] ?? "start";
        return `<text x="${fixed(x)}" y="${fixed(y)}" text-anchor="${place}" font-size="${size ?? 12}" fill="${shape.fill}" stroke="${halo}" stroke-width="3" paint-order="stroke">${escape(text)}</text>`;
      }
      const d = (shape.lines ?? []).map((line) => (line.length ? `M${line.map(([x, y]) => `${fixed(x)},${fixed(y)}`).join("L")}${shape.closed ? "Z" : ""}` : "")).join("");
      if (!d) return "";
      const hull = shape.fill && shape.stroke && shape.dash?.length;
      return (
        `<path d="${d}" fill="${shape.fill ?? "none"}"${hull ? ' fill-opacity="0.1"' : ""} opacity="${shape.opacity ?? 1}"` +
        (shape.stroke ? ` stroke="${shape.stroke}" stroke-width="${shape.width ?? 1}" stroke-linejoin="round" stroke-linecap="round"` : "") +
        (shape.dash?.length ? ` stroke-dasharray="${shape.dash.join(" ")}"` : "") +
        "/>"
      );
    })
    .join("\n");
}

/** @param {number} value */
function fixed(value) {
  return Math.round(value * 100) / 100;
}

/** @param {string} text */
export function escape(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
