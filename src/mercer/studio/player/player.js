"use strict";
/*
 * The player of an exported page: it draws precomputed machines, one for each position of a slider.
 * No network, no library.
 */
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.getElementById("player");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  // Okabe and Ito's palette and two greys: told apart by most colour-blind readers
  const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8a6d3b", "#7f3fbf", "#555555", "#b8a000"];
  const inPlane = data.mode === "classify" || data.mode === "one_class";
  let position = data.start;
  let timer = null;

  function element(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  function bytes(text) {
    const raw = atob(text);
    const found = new Uint8Array(raw.length);
    for (let k = 0; k < raw.length; k++) found[k] = raw.charCodeAt(k);
    return found;
  }

  const canvas = element("canvas", { class: "plane", role: "img" });
  const slider = element("input", { type: "range", min: 0, max: data.stops.length - 1, step: 1, value: position });
  const shown = element("output");
  const play = element("button", { type: "button" }, "▶ play");
  const primal = element("div");
  const dual = element("div");
  const primalText = element("span");
  const dualText = element("span");
  const proof = element("p", { class: "note" });
  const table = element("table");
  const spoken = element("p", { class: "note", "aria-live": "polite" });
  slider.setAttribute("aria-label", data.parameter === "ν" ? "nu" : data.parameter || "machine");
  const side = element(
    "div",
    {},
    element("div", { class: "bars" }, primalText, element("div", { class: "bar" }, primal), dualText, element("div", { class: "bar" }, dual)),
    proof,
    table,
    spoken,
  );
  const picture = element("div", {}, canvas);
  if (data.stops.length > 1) picture.append(element("div", { class: "slider" }, play, slider, shown));
  root.append(element("div", { class: "stage" }, picture, side));
  root.append(element("p", { class: "note" }, data.along));
  const code = element("pre", { tabindex: 0, "aria-label": "Python code of this machine" }, data.code);
  root.append(element("details", {}, element("summary", {}, "Python code"), code));

  // ---- drawing ----------------------------------------------------------------------------------------------------

  const [xMin, xMax, yMin, yMax] = data.view;
  const toX = (x, size) => ((x - xMin) / (xMax - xMin)) * size;
  const toY = (y, size) => size - ((y - yMin) / (yMax - yMin)) * size;

  function rgb(colour) {
    return [1, 3, 5].map((k) => parseInt(colour.slice(k, k + 2), 16));
  }

  function field(grid) {
    const { columns, rows } = grid;
    if (grid.runs) return { columns, rows, labels: unrolled(bytes(grid.runs), columns * rows) };
    const values = new Int16Array(bytes(grid.values).buffer);
    return { columns, rows, labels: null, at: (c, r) => values[r * columns + c] * grid.scale };
  }

  /** Labels from pairs of a label and how often it follows itself. */
  function unrolled(runs, size) {
    const labels = new Uint8Array(size);
    let end = 0;
    for (let k = 0; k < runs.length; k += 2) labels.fill(runs[k], end, (end += runs[k + 1]));
    return labels;
  }

  function paintRegions(context, size, found) {
    const ground = dark.matches ? [20, 23, 27] : [255, 255, 255];
    const picture = new ImageData(found.columns, found.rows);
    for (let r = 0; r < found.rows; r++) {
      for (let c = 0; c < found.columns; c++) {
        const value = found.labels ? 0 : found.at(c, r);
        let colour;
        if (found.labels) colour = rgb(COLOURS[found.labels[r * found.columns + c]]);
        else if (data.mode === "one_class") colour = value >= 0 ? rgb(COLOURS[0]) : ground;
        else colour = rgb(COLOURS[data.classes[value >= 0 ? 1 : 0]]);
        const weight = found.labels ? 0.24 : 0.1 + 0.22 * Math.min(1, Math.abs(value));
        const place = 4 * ((found.rows - 1 - r) * found.columns + c);
        for (let k = 0; k < 3; k++) picture.data[place + k] = ground[k] + weight * (colour[k] - ground[k]);
        picture.data[place + 3] = 255;
      }
    }
    const small = new OffscreenCanvas(found.columns, found.rows);
    small.getContext("2d").putImageData(picture, 0, 0);
    context.imageSmoothingEnabled = true;
    // the outer values stand on the edge of the view
    const cell = size / (found.columns - 1);
    context.drawImage(small, -cell / 2, -cell / 2, size + cell, size + cell);
  }

  /** Draw the line on which the values have a level: marching squares. */
  function paintLevel(context, size, found, level, dash) {
    const ink = getComputedStyle(document.body).getPropertyValue("--ink");
    context.strokeStyle = ink;
    context.lineWidth = (level === 0 ? 2.2 : 1.2) * devicePixelRatio;
    context.setLineDash(dash.map((one) => one * devicePixelRatio));
    context.beginPath();
    const stepX = size / (found.columns - 1);
    const stepY = size / (found.rows - 1);
    for (let r = 0; r + 1 < found.rows; r++) {
      for (let c = 0; c + 1 < found.columns; c++) {
        const corners = [found.at(c, r), found.at(c + 1, r), found.at(c + 1, r + 1), found.at(c, r + 1)].map((v) => v - level);
        const places = [[c, r], [c + 1, r], [c + 1, r + 1], [c, r + 1]];
        const cuts = [];
        for (let k = 0; k < 4; k++) {
          const a = corners[k];
          const b = corners[(k + 1) % 4];
          if (a < 0 === b < 0) continue;
          const t = a / (a - b);
          const [x0, y0] = places[k];
          const [x1, y1] = places[(k + 1) % 4];
          cuts.push([(x0 + t * (x1 - x0)) * stepX, size - (y0 + t * (y1 - y0)) * stepY]);
        }
        for (let k = 0; k + 1 < cuts.length; k += 2) {
          context.moveTo(...cuts[k]);
          context.lineTo(...cuts[k + 1]);
        }
      }
    }
    context.stroke();
    context.setLineDash([]);
  }

  function curve(context, size, x, y, colour, width, dash = []) {
    context.strokeStyle = colour;
    context.lineWidth = width * devicePixelRatio;
    context.setLineDash(dash.map((one) => one * devicePixelRatio));
    context.beginPath();
    x.forEach((one, k) => context[k ? "lineTo" : "moveTo"](toX(one, size), toY(y[k], size)));
    context.stroke();
    context.setLineDash([]);
  }

  function band(context, size, x, low, high, colour) {
    context.fillStyle = colour;
    context.beginPath();
    x.forEach((one, k) => context[k ? "lineTo" : "moveTo"](toX(one, size), toY(high[k], size)));
    for (let k = x.length - 1; k >= 0; k--) context.lineTo(toX(x[k], size), toY(low[k], size));
    context.fill();
  }

  function paintCurves(context, size, grid) {
    const blue = COLOURS[0];
    if (grid.curves) {
      grid.curves.forEach((one, k) => curve(context, size, grid.x, one, COLOURS[k % COLOURS.length], 2.2, k % 2 ? [] : [6, 3]));
    } else if (grid.mean) {
      const low = grid.mean.map((one, k) => one - 2 * grid.deviation[k]);
      const high = grid.mean.map((one, k) => one + 2 * grid.deviation[k]);
      band(context, size, grid.x, low, high, `${blue}33`);
      grid.samples.forEach((one) => curve(context, size, grid.x, one, `${blue}88`, 1, [3, 3]));
      curve(context, size, grid.x, grid.mean, blue, 2.4);
    } else {
      band(context, size, grid.x, grid.lower, grid.upper, `${blue}2e`);
      curve(context, size, grid.x, grid.lower, blue, 1, [4, 3]);
      curve(context, size, grid.x, grid.upper, blue, 1, [4, 3]);
      curve(context, size, grid.x, grid.f, blue, 2.4);
    }
  }

  /** Marks of different shapes, so that colour is not needed to tell classes apart. */
  function mark(context, label, x, y, r) {
    context.beginPath();
    const corners = [0, 4, 3, 4, 5, 6, 3, 4, 5, 6][label % 10];
    if (!corners) {
      context.arc(x, y, r, 0, 2 * Math.PI);
    } else {
      const turn = label === 1 ? Math.PI / 4 : -Math.PI / 2;
      for (let k = 0; k < corners; k++) {
        const angle = turn + (2 * Math.PI * k) / corners;
        context[k ? "lineTo" : "moveTo"](x + 1.25 * r * Math.cos(angle), y + 1.25 * r * Math.sin(angle));
      }
      context.closePath();
    }
  }

  function paintPoints(context, size, stop) {
    const ink = getComputedStyle(document.body).getPropertyValue("--ink");
    const radius = (data.points.length > 300 ? 2.5 : 4.5) * devicePixelRatio;
    data.points.forEach(([x, y, label], k) => {
      const state = stop.states[k];
      const px = toX(x, size);
      const py = toY(y, size);
      context.fillStyle = COLOURS[label];
      mark(context, label, px, py, radius);
      context.fill();
      context.strokeStyle = dark.matches ? "#14171b" : "#ffffff";
      context.lineWidth = devicePixelRatio;
      context.stroke();
      if (state === "z" || data.mode === "process") return;
      context.strokeStyle = ink;
      context.lineWidth = (state === "f" ? 1.8 : 1.2) * devicePixelRatio;
      context.setLineDash(state === "f" ? [] : [2 * devicePixelRatio, 2 * devicePixelRatio]);
      context.beginPath();
      context.arc(px, py, 1.9 * radius, 0, 2 * Math.PI);
      context.stroke();
      context.setLineDash([]);
    });
  }

  function draw() {
    const stop = data.stops[position];
    const size = Math.max(200, Math.round(canvas.clientWidth * devicePixelRatio));
    canvas.width = canvas.height = size;
    const context = canvas.getContext("2d");
    context.clearRect(0, 0, size, size);
    if (inPlane) {
      const found = field(stop.grid);
      paintRegions(context, size, found);
      if (!found.labels) {
        paintLevel(context, size, found, 0, []);
        if (data.mode === "classify") for (const level of [-1, 1]) paintLevel(context, size, found, level, [6, 4]);
      }
    } else {
      paintCurves(context, size, stop.grid);
    }
    paintPoints(context, size, stop);
    const support = [...stop.states].filter((one) => one !== "z").length;
    const band = `Mean and two standard deviations given ${data.points.length} points; thin lines are functions drawn at random.`;
    const words = data.mode === "process" ? band : `${stop.text || "One machine"}: ${support} of ${data.points.length} points are support vectors.`;
    canvas.setAttribute("aria-label", words);
    spoken.textContent = data.mode === "process" ? words : `${words} A ring marks a free one, a dotted ring one at its bound.`;
  }

  function tell() {
    const stop = data.stops[position];
    shown.textContent = stop.text;
    slider.setAttribute("aria-valuetext", stop.text);
    const known = Number.isFinite(stop.primal) && Number.isFinite(stop.dual);
    side.firstChild.hidden = !known;
    if (known) {
      const largest = Math.max(Math.abs(stop.primal), Math.abs(stop.dual)) || 1;
      primal.style.width = `${(100 * Math.abs(stop.primal)) / largest}%`;
      dual.style.width = `${(100 * Math.abs(stop.dual)) / largest}%`;
      primalText.textContent = `primal ${stop.primal.toPrecision(7)}`;
      dualText.textContent = `dual ${stop.dual.toPrecision(7)}`;
    }
    proof.textContent = stop.gap ?? "";
    table.replaceChildren(
      ...stop.numbers.map(([name, text]) => element("tr", {}, element("th", { scope: "row" }, name), element("td", {}, text))),
    );
  }

  function go(to) {
    position = Math.max(0, Math.min(data.stops.length - 1, to));
    slider.value = position;
    tell();
    draw();
  }

  function pause() {
    clearInterval(timer);
    timer = null;
    play.textContent = "▶ play";
  }

  slider.addEventListener("input", () => {
    pause();
    go(Number(slider.value));
  });
  play.addEventListener("click", () => {
    if (timer) {
      pause();
      return;
    }
    if (position === data.stops.length - 1) go(0);
    play.textContent = "⏸ pause";
    timer = setInterval(() => (position === data.stops.length - 1 ? pause() : go(position + 1)), 120);
  });
  dark.addEventListener("change", draw);
  new ResizeObserver(draw).observe(canvas);
  go(position);
})();
