// Draws a watch. All text that comes from the data goes through textContent or a canvas, never through markup.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const MIB = 1048576;
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const number = (value, digits) =>
    value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  const mib = (bytes) => number(bytes / MIB, 1) + " MiB";

  function element(tag, text, parent, className) {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    if (parent) parent.appendChild(made);
    return made;
  }

  // "45 s", "2:05", "1:02:05"
  function time(seconds, whole) {
    if (whole < 120) return number(seconds, whole < 10 ? 1 : 0) + " s";
    const s = Math.round(seconds), pad = (n) => String(n).padStart(2, "0");
    const hours = Math.floor(s / 3600), minutes = Math.floor(s / 60) % 60;
    return hours ? `${hours}:${pad(minutes)}:${pad(s % 60)}` : `${minutes}:${pad(s % 60)}`;
  }

  // Areas one upon the other: uPlot draws the series in their order, so the whole stack comes first and each next
  // one covers its lower part. parts[0] is at the bottom, series[1] at the top.
  function stack(parts, shown) {
    const sums = data.seconds.map(() => 0);
    const rows = parts.map((part, p) => {
      if (!shown[p]) return data.seconds.map(() => null);
      return part.bytes.map((bytes, i) => (bytes === null ? null : (sums[i] += bytes / MIB)));
    });
    return [data.seconds, ...rows.reverse()];
  }

  const charts = [];
  const zoomed = () => charts.some((chart) => chart.scales.x.min > first || chart.scales.x.max < last);
  const first = data.seconds[0] ?? 0;
  const last = Math.max(data.seconds[data.seconds.length - 1] ?? 1, first + 1e-3);
  const reset = document.getElementById("reset");
  let following = false;

  function zoom(min, max, from) {
    if (following) return;
    following = true;
    for (const chart of charts)
      if (chart !== from && (chart.scales.x.min !== min || chart.scales.x.max !== max))
        chart.setScale("x", { min, max });
    following = false;
    reset.disabled = !zoomed();
  }

  function hatch(context) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 8;
    const pen = tile.getContext("2d");
    pen.strokeStyle = colour("--soft");
    pen.globalAlpha = 0.6;
    pen.beginPath();
    for (const shift of [-8, 0, 8]) pen.moveTo(shift, 8), pen.lineTo(shift + 8, 0);
    pen.stroke();
    return context.createPattern(tile, "repeat");
  }

  // Where nothing could be read.
  function drawGaps(chart) {
    const { ctx, bbox } = chart;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    for (const gap of data.gaps) {
      const left = chart.valToPos(gap.from, "x", true), right = chart.valToPos(gap.to, "x", true);
      ctx.fillStyle = hatch(ctx);
      ctx.fillRect(left, bbox.top, Math.max(right - left, 2), bbox.height);
      ctx.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
      const width = ctx.measureText(gap.reason).width, pad = 4 * devicePixelRatio;
      if (width + 4 * pad > right - left) continue;
      const middle = (left + right) / 2, top = bbox.top + 8 * devicePixelRatio;
      ctx.fillStyle = colour("--paper");
      ctx.fillRect(middle - width / 2 - pad, top, width + 2 * pad, 18 * devicePixelRatio);
      ctx.fillStyle = colour("--ink");
      ctx.textAlign = "center";
      ctx.textBaseline = "top";
      ctx.fillText(gap.reason, middle, top + 2 * devicePixelRatio);
    }
    ctx.restore();
  }

  function drawLimit(chart, limit) {
    if (!limit || limit / MIB > chart.scales.y.max) return;
    const { ctx, bbox } = chart;
    const y = chart.valToPos(limit / MIB, "y", true);
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = colour("--bad");
    ctx.lineWidth = 1.5 * devicePixelRatio;
    ctx.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
    ctx.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
    ctx.textAlign = "right";
    ctx.textBaseline = "bottom";
    ctx.fillText("limit " + mib(limit), bbox.left + bbox.width - 4 * devicePixelRatio, y - 2 * devicePixelRatio);
    ctx.restore();
  }

  function axis(more) {
    return { stroke: () => colour("--soft"), grid: { stroke: () => colour("--grid"), width: 1 },
             ticks: { stroke: () => colour("--grid"), width: 1 }, font: "12px system-ui, sans-serif",
             labelFont: "12px system-ui, sans-serif", ...more };
  }

  // Without a cursor the legend tells the end.
  function series(parts, shown) {
    const end = data.seconds.length - 1;
    const rows = parts.map((part, p) => ({
      label: part.label + (marked(part.label) ? " ▲ grows" : ""), stroke: part.colour, fill: part.colour, width: 1, points: { show: data.seconds.length === 1 },
      value: (chart, value, index, at) => {
        const bytes = part.bytes[at ?? end];
        return bytes === null || !shown[p] ? "–" : mib(bytes);
      },
    }));
    const when = (chart, value, index, at) => {
      const iteration = data.iterations[at ?? end];
      return time(data.seconds[at ?? end], last) + (iteration >= 0 ? `, iteration ${number(iteration, 0)}` : "");
    };
    return [{ label: "at", value: when }, ...rows.reverse()];
  }

  function draw(id, view) {
    const room = document.getElementById(id);
    if (!view || data.seconds.length === 0) {
      element("p", view ? "There are no samples." : "The container's memory could not be read.", room, "hint");
      return;
    }
    const shown = view.parts.map(() => true);
    const chart = new uPlot({
      width: room.clientWidth, height: 300,
      cursor: { sync: { key: "watch" }, drag: { x: true, y: false }, points: { show: false } },
      scales: {
        x: { time: false, range: (u, min, max) => (max > min ? [min, max] : [min, min + 1]) },
        y: { range: (u, min, max) => {
          const top = Math.max(max * 1.05, 1 / 16), limit = (view.limit || 0) / MIB;
          return [0, limit && limit < 2 * top ? Math.max(top, limit * 1.08) : top];
        } },
      },
      axes: [
        axis({ values: (u, ticks) => ticks.map((tick) => time(tick, last)), space: 70 }),
        axis({ label: "MiB", values: (u, ticks) => ticks.map((tick) => number(tick, ticks[1] - ticks[0] < 1 ? 2 : 0)),
               size: (u, values) => 16 + 7.5 * Math.max(3, ...(values || []).map((text) => text.length)) }),
      ],
      series: series(view.parts, shown),
      hooks: {
        drawClear: [drawGaps],
        draw: [(u) => drawLimit(u, view.limit)],
        setScale: [(u, key) => { if (key === "x") zoom(u.scales.x.min, u.scales.x.max, u); }],
        setSeries: [(u, index, changed) => {
          if (index === null || changed.show === undefined) return;
          shown[view.parts.length - index] = changed.show;
          u.setData(stack(view.parts, shown), false);
          u.redraw();
        }],
      },
    }, stack(view.parts, shown), room);
    charts.push(chart);
    new ResizeObserver(() => chart.setSize({ width: room.clientWidth, height: 300 })).observe(room);
  }

  // Counts have no MiB.
  const COUNTS = ["descriptors", "threads", "mappings", "processes"];
  // Which parts of the stack a part of the verdict consists of.
  const LABELS = { "heap": ["heap", "allocator arenas"], "anonymous maps": ["anonymous maps"], "stacks": ["stacks"],
                   "private file": ["private file"], "shared file": ["shared file"], "shared memory": ["shared memory"],
                   "private": ["heap", "allocator arenas", "anonymous maps", "stacks", "private file"],
                   "kernel memory": ["slab", "other kernel"], "page cache": ["page cache"], "reclaimable slab": ["slab"] };
  const rises = ["leak", "cache", "warming up", "undecided"].includes(data.verdict);
  const marked = (label) => rises && data.growth && (LABELS[data.growth.part] || []).includes(label);

  // What was fitted, over what was measured: the 95 % interval as an area, the curve as a line.
  function drawFit(chart, scale) {
    const { ctx, bbox } = chart, curve = data.growth.curve;
    const at = (point, value) => [chart.valToPos(point[0], "x", true), chart.valToPos(value / scale, "y", true)];
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.fillStyle = ctx.strokeStyle = colour(data.verdict === "leak" ? "--bad" : "--warn");
    ctx.globalAlpha = 0.18;
    ctx.beginPath();
    curve.forEach((point, i) => (i ? ctx.lineTo(...at(point, point[3])) : ctx.moveTo(...at(point, point[3]))));
    [...curve].reverse().forEach((point) => ctx.lineTo(...at(point, point[2])));
    ctx.fill();
    ctx.globalAlpha = 1;
    ctx.lineWidth = 2 * devicePixelRatio;
    ctx.setLineDash([7 * devicePixelRatio, 4 * devicePixelRatio]);
    ctx.beginPath();
    curve.forEach((point, i) => (i ? ctx.lineTo(...at(point, point[1])) : ctx.moveTo(...at(point, point[1]))));
    ctx.stroke();
    ctx.restore();
  }

  function drawGrowth() {
    const growth = data.growth;
    if (!growth || data.seconds.length < 2) return document.getElementById("growth-section").remove();
    const counts = COUNTS.includes(growth.part), scale = counts ? 1 : MIB;
    document.getElementById("growth-title").textContent = (rises ? "What grows: " : "What was fitted: ") + growth.part;
    const room = document.getElementById("growth");
    const end = data.seconds.length - 1;
    const value = (values) => (chart, shown, index, at) => {
      const one = values[at ?? end];
      return one === null ? "–" : counts ? number(one, 0) : mib(one);
    };
    const rows = [data.seconds, growth.values.map((one) => (one === null ? null : one / scale))];
    const lines = [{ label: "at", value: (chart, shown, index, at) => time(data.seconds[at ?? end], last) },
                   { label: growth.part, stroke: () => colour("--calm"), width: 1.5, points: { show: false }, value: value(growth.values) }];
    if (growth.process) {
      rows.push(growth.process.map((one) => (one === null ? null : one / scale)));
      lines.push({ label: growth.process_label, stroke: () => colour("--good"), width: 1.5, points: { show: false },
                   value: value(growth.process) });
    }
    const chart = new uPlot({
      width: room.clientWidth, height: 220,
      cursor: { sync: { key: "watch" }, drag: { x: true, y: false }, points: { show: false } },
      scales: { x: { time: false, range: (u, min, max) => (max > min ? [min, max] : [min, min + 1]) },
                y: { range: (u, min, max) => [Math.max(0, min - 0.08 * (max - min)), max + 0.08 * (max - min) || 1] } },
      axes: [axis({ values: (u, ticks) => ticks.map((tick) => time(tick, last)), space: 70 }),
             axis({ label: counts ? "number" : "MiB",
                    values: (u, ticks) => ticks.map((tick) => number(tick, ticks[1] - ticks[0] < 1 ? 2 : 0)),
                    size: (u, values) => 16 + 7.5 * Math.max(3, ...(values || []).map((text) => text.length)) })],
      series: lines,
      hooks: { drawClear: [drawGaps], draw: [(u) => drawFit(u, scale)],
               setScale: [(u, key) => { if (key === "x") zoom(u.scales.x.min, u.scales.x.max, u); }] },
    }, rows, room);
    charts.push(chart);
    element("p", "Dashed: the curve that explains it best, with its 95 % interval.", room, "hint");
    new ResizeObserver(() => chart.setSize({ width: room.clientWidth, height: 220 })).observe(room);
  }

  function table(id, title, rows, foot, name = (part) => part.name) {
    if (!rows.length && !foot.length) return;
    const place = document.getElementById(id);
    element("h2", title, place);
    const made = element("table", undefined, element("div", undefined, place, "wide"));
    const head = element("tr", undefined, element("thead", undefined, made));
    for (const [text, name] of [["part", ""], ["MiB", "number"], ["bytes", "number"], ["would come back", "number"], ["by", ""]])
      element("th", text, head, name);
    const body = element("tbody", undefined, made);
    for (const part of rows) {
      const row = element("tr", undefined, body);
      element("td", name(part), row);
      element("td", number(part.bytes / MIB, 1), row, "number");
      element("td", number(part.bytes, 0), row, "number");
      element("td", part.returnable_bytes ? mib(part.returnable_bytes) : "", row, "number");
      element("td", part.returnable_bytes ? part.returns_by || "ending the process" : "", row);
    }
    for (const [name, bytes] of foot) {
      const row = element("tr", undefined, body, "sum");
      element("td", name, row);
      element("td", number(bytes / MIB, 1), row, "number");
      element("td", number(bytes, 0), row, "number");
      element("td", "", row);
      element("td", "", row);
    }
  }

  function list(id, texts) {
    const place = document.getElementById(id);
    for (const text of texts) element("li", text, place);
    if (!texts.length) place.closest("section")?.remove();
  }

  document.getElementById("title").textContent = data.title;
  document.getElementById("facts").textContent = data.facts;
  document.getElementById("verdict-text").textContent = data.verdict_text;
  document.getElementById("verdict").classList.add(...data.verdict.split(" "));
  for (const text of data.evidence) element("li", text, document.getElementById("evidence"));
  draw("process", data.process);
  draw("container", data.container);
  drawGrowth();
  reset.disabled = true;
  reset.addEventListener("click", () => charts[0] && charts[0].setScale("x", { min: first, max: last }));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => charts.forEach((chart) => chart.redraw()));
  list("experiments", data.experiments);
  if (data.account) {
    const account = data.account, sample = account.sample;
    const words = (part) => part.name.replaceAll("_", " ");
    table("tables", `Process after ${number(sample.seconds, 1)} s`, account.process.filter((part) => part.bytes),
          [["unexplained", account.process_unexplained_bytes], ["the kernel's figure", sample.process.kernel_bytes]],
          words);
    if (sample.container)
      table("tables", "Container", account.container.filter((part) => part.bytes),
            [["unexplained", account.container_unexplained_bytes],
             ["the kernel's figure", sample.container.kernel_bytes]], words);
    table("tables", "By mapped file", account.libraries.slice(0, 20), []);
    table("tables", "Page cache by file", account.cached_files.slice(0, 20), []);
  }
  const gaps = data.gaps.map((gap) => `nothing was read from ${number(gap.from, 1)} s to ${number(gap.to, 1)} s: ${gap.reason}`);
  list("notes", data.notes.concat(gaps.slice(0, 20), data.account ? data.account.notes : []));
  window.plimsollWatch = { charts };  // for tests and the curious
})();
