// The side panel: kernels by time, details of what is picked, and what a pass has changed.

const at = id => document.getElementById(id);
const link = (kind, key, text) => `<a data-${kind}="${escape(key)}">${escape(text)}</a>`;
const facts = rows => `<table>${rows.filter(([, v]) => v !== "" && v !== null && v !== undefined).map(([k, v]) => `<tr><th>${escape(k)}</th><td>${v}</td></tr>`).join("")}</table>`;
const number = value => value >= 1e9 ? `${(value / 1e9).toPrecision(3)} G` : value >= 1e6 ? `${(value / 1e6).toPrecision(3)} M` : value >= 1e3 ? `${(value / 1e3).toPrecision(3)} k` : `${value} `;
const rawOps = k => k.ops.join(", ") || k.kind;
// What a kernel computes, as the user called it: "relu" for the function or the layer, not its ops.
const opsText = k => [...new Set(k.nodes.map(key => finalRecords.get(key)).filter(Boolean).map(calledName))].join(", ") || rawOps(k);
const calledName = record => record.function || layerNames.get(record.path.slice(0, record.path.length - (record.called || 0)).join("/")) || record.op;
const layerNames = new Map();  // classes of the layers that have several ops and no weights, by path
for (const node of graphAt(0).nodes) {
  const key = node.path.slice(0, node.modules).join("/"), kind = data.classes[key.replace(/\//g, ".")];
  if (kind) push(layerNames, key, node);
}
for (const [key, nodes] of layerNames) {
  if (nodes.length > 1 && !nodes.some(n => n.attached.length)) layerNames.set(key, data.classes[key.replace(/\//g, ".")]);
  else layerNames.delete(key);
}
const percent = f => `${(100 * f).toPrecision(3)}%`;

function kernelRow(kernel, most) {
  const from = homePath(kernel).join(".") || kernel.writes.join(", ");
  const time = timed ? `<span class="time">${kernelTime(kernel)}</span>` : "<span></span>";
  const share = timed ? `<span class="share">${kernel.resolved || kernel.share < 0.0005 ? "" : "~"}${shareText(kernel.share)}</span><span class="bar" style="width:${(100 * kernel.share / most).toFixed(1)}%"></span>` : "";
  return `<div class="row${state.kernel === kernel.number ? " on" : ""}" data-kernel="${kernel.number}"><span class="number">#${kernel.number}</span>` +
    `<span class="ops">${escape(opsText(kernel))}</span>${time}<span class="from">${escape(from)}</span>${share}</div>`;
}

// Modules in the order in which they run, those in open ones indented; functions and loops count for their module.
function moduleRows() {
  const rows = new Map();
  for (const node of graphAt(0).nodes) for (let depth = 1; depth <= node.modules; depth++) {
    const parts = node.path.slice(0, depth), key = parts.join("/");
    if (depth === 1 || state.open.has(parts.slice(0, -1).join("/"))) rows.set(key, depth); else break;
  }
  return [...rows].filter(([key]) => kernelsInside.has(key));
}
function moduleRow([key, depth], most) {
  const total = spent(kernelsInside.get(key)), name = key.replace(/\//g, "."), kind = data.classes[name];
  const time = total ? total.text.split(" · ") : ["", `${kernelsInside.get(key).length} kernels`];
  const bar = total ? `<span class="bar" style="width:${(100 * total.share / most).toFixed(1)}%"></span>` : "";
  return `<div class="row module${state.group === key ? " on" : ""}" data-group="${escape(key)}" style="margin-left:${12 * (depth - 1)}px"><span class="ops">${escape(name)}${kind ? ` <i>${escape(kind)}</i>` : ""}</span>` +
    `<span class="time">${time[0]}</span><span class="share">${time[1]}</span>${bar}</div>`;
}
function showModules() {
  const rows = moduleRows(), outside = kernels.filter(k => !homePath(k).length), rest = spent(outside);
  const most = timed ? Math.max(...rows.map(([key]) => spent(kernelsInside.get(key)).share), rest ? rest.share : 0, 1e-9) : 1;
  const beside = outside.length ? `<p class="note">${outside.length} kernels belong to no module${rest ? `: ${rest.text}` : ""}.</p>` : "";
  at("modules").innerHTML = `${profileNote()}<div class="rows">${rows.map(row => moduleRow(row, most)).join("")}</div>${beside}`;
}

function showKernels() {
  const some = timed ? [...kernels].sort((a, b) => b.seconds - a.seconds) : kernels;
  at("kernels").innerHTML = `${profileNote()}<div class="rows">${some.map(k => kernelRow(k, greatest)).join("")}</div>`;
}
function profileNote() {
  const p = data.profile;
  if (!p) return `<p class="note">${kernels.length} kernel calls in the order in which they run; without times.</p>`;
  const sizes = Object.entries(p.sizes).map(([name, size]) => `${name}=${size}`).join(" ");
  return `<p class="note">${sizes && `At ${escape(sizes)}: `}${kernels.length} kernel calls, ${timeText(p.kernels)} one by one (shares are of this). The whole call takes ${timeText(p.seconds)} on one thread, ` +
    `from Python ${timeText(p.overhead)} more. Middle of ${p.rounds} runs; less than ${timeText(p.resolution)} is not told from nothing.</p>`;
}

function showDetails() {
  const graph = state.graph;
  let text = "";
  if (state.kernel !== null) text = kernelDetails(kernels[state.kernel]);
  else if (state.node !== null) text = nodeDetails(graph, state.node);
  else if (state.group !== null) text = groupDetails(graph, state.group);
  at("details").innerHTML = text || `<p class="note">Click a node${kernels.length ? ", a module or a kernel" : " or a module"}.</p>`;
}

function nodeDetails(graph, key) {
  const node = graph.all.get(key);
  if (!node) return `<h2>%${escape(key)}</h2><p class="note">It is not in this graph. ${lifeText(key)}</p>${kernelLinks(key)}`;
  const mark = state.marks.get(key);
  const own = node.weights || node.kind === "input" || node.kind === "output";
  let text = `<h2>${escape(node.op)} ${mark ? `<span class="tag ${mark}">${mark}</span>` : ""}</h2>`;
  text += facts([
    ["value", own && !node.results.length ? "" : node.results.map(([name, type]) => `<code>%${escape(name)}</code>: ${escape(type)}`).join("<br>")],
    ["module", node.path.length ? link("group", node.group, node.path.join(".")) + (data.classes[node.path.join(".")] ? ` (${escape(data.classes[node.path.join(".")])})` : "") : ""],
    ["from", node.line ? `${escape(node.line)}<br><code>${escape(data.lines[node.line] || "")}</code>` : ""],
    ...(node.attrs || []).map(([name, value]) => [name, `<code>${escape(value)}</code>`]),
    ["passes", lifeText(key)],
  ]);
  const inputs = [...node.reads.map(r => nodeLink(r.from, r.type)), ...node.attached.map(w => nodeLink(w, w.type)), ...node.literals.map(l => `<span><code>${escape(l)}</code></span>`)];
  if (inputs.length) text += `<h3>Reads</h3><div class="links">${inputs.join("")}</div>`;
  const readers = [...new Set(node.readers)];
  if (readers.length) text += `<h3>Read by</h3><div class="links">${readers.map(r => nodeLink(r, "")).join("")}</div>`;
  return text + kernelLinks(key, node);
}
function nodeLink(node, type) {
  return `<span>${link("node", node.key, node.weights && node.kind !== "constant" ? node.op : `${node.op} %${node.key}`)} <span class="type">${escape(type)}</span></span>`;
}
function kernelLinks(key, node) {
  const found = [...new Set([...(kernelsOf.get(key) || []), ...(node ? node.timed : [])])];
  if (!found.length) return "";
  return `<h3>Computed in</h3><div class="rows">${found.map(k => kernelRow(k, greatest)).join("")}</div>` +
    (found.length === 1 ? nestText(found[0]) : "");
}

// From the first pass behind which a node is there to the last.
function lifeText(key) {
  const there = data.passes.map((_, i) => graphAt(i).all.has(key));
  const first = there.indexOf(true), last = there.lastIndexOf(true), name = i => link("pass", i, data.passes[i].name);
  if (first < 0) return "in no graph";
  const made = first ? `made by ${name(first)}` : "there from the start";
  return last < there.length - 1 ? `${made}, gone after ${name(last + 1)}` : `${made}, there at the end`;
}

function groupDetails(graph, key) {
  const nodes = graph.nodes.filter(n => n.group === key || n.group.startsWith(`${key}/`));
  const own = kernelsInside.get(key) || [], total = spent(own), name = key.replace(/\//g, ".");
  const counts = countMarks(key, state.marks);
  let text = `<h2>${escape(name)}</h2>` + facts([
    ["class", escape(data.classes[name] || "")],
    ["nodes", `${nodes.length} in this graph`],
    ["this pass", state.marks.size ? countsText(counts) : ""],
    ["time", total ? escape(total.text) : ""],
  ]);
  const some = timed ? [...own].sort((a, b) => b.seconds - a.seconds) : own;
  if (some.length) text += `<h3>Kernels</h3><div class="rows">${some.map(k => kernelRow(k, greatest)).join("")}</div>`;
  return text;
}

function kernelDetails(k) {
  const final = graphAt(data.passes.length - 1);
  const rates = k.seconds && k.resolved ? [
    ["rate", `${(k.flops / k.seconds / 1e9).toPrecision(3)} GFLOP/s, ${percent(k.peak)} of peak; ${(k.bytes / k.seconds / 1e9).toPrecision(3)} GB/s, ${percent(k.copy)} of a copy`],
    ["spread", `best ${timeText(k.best)}, quarters ${timeText(k.low)} to ${timeText(k.high)}`]] : [];
  let text = `<h2>Kernel #${k.number} ${escape(k.name)}</h2>` + facts([
    ["time", timed ? `<b>${kernelTime(k)}</b>, ${k.resolved ? "" : "about "}${shareText(k.share)} of all kernels` : ""],
    ...rates,
    ["kind", escape(k.kind)],
    ["ops", escape(rawOps(k))],
    ["module", k.module ? link("group", k.module.replace(/\./g, "/"), k.module) : ""],
    ["schedule", escape(k.schedule)],
    ["repeated", k.runs.length ? `${k.runs.join(" × ")} times` : ""],
    ["work", `${number(k.flops)}FLOP, ${number(k.bytes)}B`],
    ["reads", k.reads.map(escape).join("<br>")],
    ["writes", k.writes.map(escape).join("<br>")],
  ]);
  const nodes = k.nodes.map(key => final.all.get(key)).filter(Boolean);
  if (nodes.length) text += `<h3>Nodes</h3><div class="links">${nodes.map(n => nodeLink(n, n.type)).join("")}</div>`;
  return text + nestText(k);
}
function nestText(k) { return `<h3>Loop nest of ${escape(k.name)}</h3><pre>${escape(data.texts[k.name] || "")}</pre>`; }

function countsText(counts, short) {
  const parts = [["plus", "+", "added"], ["minus", "−", "removed"], ["tilde", "~", "changed"]].filter(([, , what]) => counts[what])
    .map(([cls, sign, what]) => `<span class="${cls}">${sign}${counts[what]}${short ? "" : ` ${what}`}</span>`);
  return parts.join(short ? " " : ", ") || "no node differs";
}

function showChanges() {
  const pass = data.passes[state.pass], found = changesOf(state.pass);
  let text = `<h2>${state.pass}. ${escape(pass.name)}</h2>`;
  text += `<p class="note">${state.pass === 0 ? "The graph as it was traced." : state.pass === 1 ? "Weights that the graph only reads have become constants." : `${pass.changed} changes by its own count.`} ${state.pass ? countsText(found) : ""}</p>`;
  text += pass.reasons.map(r => `<p>${escape(r)}</p>`).join("");
  if (state.pass) {
    const before = graphAt(state.pass - 1), after = graphAt(state.pass);
    for (const what of ["added", "removed", "changed"]) {
      const keys = [...found.marks].filter(([, w]) => w === what).map(([key]) => (what === "removed" ? before : after).all.get(key));
      if (!keys.length) continue;
      const shown = keys.slice(0, 300);
      text += `<h3>${what} (${keys.length})</h3><div class="links">${shown.map(n => `<span>${link(what === "removed" ? "gone" : "node", n.key, `${n.op} %${n.key}`)} <span class="type">${escape(n.path.join("."))}</span></span>`).join("")}` +
        `${keys.length > shown.length ? `<span>and ${keys.length - shown.length} more</span>` : ""}</div>`;
    }
  }
  text += `<h3>All passes</h3><div class="links">${data.passes.map((p, i) => `<span>${i}. ${i === state.pass ? `<b>${escape(p.name)}</b>` : link("pass", i, p.name)} <span class="type">${i && changesOf(i).marks.size ? countsText(changesOf(i)) : ""}</span></span>`).join("")}</div>`;
  at("changes").innerHTML = text;
}
