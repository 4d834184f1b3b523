// The state of the page, which its address holds too, and what keys, clicks and the slider do to it.

const TABS = ["modules", "kernels", "details", "changes"];
const last = data.passes.length - 1;
const state = { pass: 0, before: false, open: null, node: null, kernel: null, group: null, tab: "kernels", theme: "",
                graph: null, beforeGraph: null, afterGraph: null, marks: new Map(), diagram: null };
const view = { x: 0, y: 0, scale: 1 };
const canvas = at("canvas"), world = at("world");

// ---- the address: #pass=5&open=blocks,blocks/1&node=conv2d.3&kernel=2&tab=details&before=1&theme=dark

function readAddress() {
  const given = new Map(location.hash.slice(1).split("&").filter(Boolean).map(part => {
    const [name, ...value] = part.split("=");
    return [name, decodeURIComponent(value.join("="))];
  }));
  const whole = (name, most, other) => { const n = Number(given.get(name)); return given.has(name) && Number.isInteger(n) && n >= 0 && n <= most ? n : other; };
  const named = data.passes.findLastIndex(p => p.name === given.get("pass"));
  state.pass = named >= 0 ? named : whole("pass", last, last);
  state.before = given.get("before") === "1" && state.pass > 0;
  state.kernel = whole("kernel", kernels.length - 1, null);
  state.node = given.get("node") || null;
  state.group = given.get("group") || null;
  state.tab = TABS.includes(given.get("tab")) ? given.get("tab") : state.node || state.group || state.kernel !== null || !last ? "details" : timed ? "modules" : "kernels";
  state.theme = given.get("theme") || "";
  const open = given.get("open");
  state.open = open === undefined ? null : open === "all" ? "all" : new Set(open.split(",").filter(Boolean));
}
function writeAddress() {
  const parts = [`pass=${state.pass}`];
  if (state.before) parts.push("before=1");
  parts.push(`open=${[...state.open].map(key => encodeURIComponent(key).replace(/%2F/g, "/")).join(",")}`);
  for (const name of ["node", "group"]) if (state[name] !== null) parts.push(`${name}=${encodeURIComponent(state[name])}`);
  if (state.kernel !== null) parts.push(`kernel=${state.kernel}`);
  parts.push(`tab=${state.tab}`);
  if (state.theme) parts.push(`theme=${state.theme}`);
  history.replaceState(null, "", `#${parts.join("&")}`);
}

// ---- drawing

function takeGraphs() {
  state.beforeGraph = graphAt(Math.max(0, state.pass - 1));
  state.afterGraph = graphAt(state.pass);
  state.graph = state.before ? state.beforeGraph : state.afterGraph;
  const found = changesOf(state.pass);
  state.marks = new Map([...found.marks].filter(([, what]) => what !== (state.before ? "added" : "removed")));
}

function draw() {
  takeGraphs();
  if (state.open === null) state.open = new Set(data.open);
  if (state.open === "all") state.open = allGroups(state.graph);
  const allMarks = changesOf(state.pass).marks;
  state.diagram = diagramOf(state.graph, state.open);
  for (const box of state.diagram.boxes) fillBox(box, box.item.isGroup ? allMarks : state.marks);
  arrange(state.diagram);
  world.innerHTML = drawDiagram(state.diagram);
  mark();
}

function mark() {
  for (const element of world.querySelectorAll(".picked, .member, .near")) element.classList.remove("picked", "member", "near");
  const keys = new Set(state.kernel !== null ? kernels[state.kernel].nodes : []);
  const picked = state.kernel === null ? state.node : null;
  let own = null;
  for (const box of state.diagram.boxes) {
    const element = elementOf(box);
    if (!element) continue;
    if (box.item.isGroup) {
      if (state.group === box.item.key && state.node === null && state.kernel === null) element.classList.add("picked");
      if (picked !== null && box.item.nodes.some(n => n.key === picked)) { element.classList.add("picked"); own = box; }
      if (box.item.nodes.some(n => keys.has(n.key))) element.classList.add("member");
    } else {
      if (box.item.key === picked) { element.classList.add("picked"); own = box; }
      if (keys.has(box.item.key)) element.classList.add("member");
    }
  }
  if (own) for (const line of world.querySelectorAll(`.line[data-source="${own.id}"]`)) line.classList.add("near");
}
function elementOf(box) {
  const name = box.item.isGroup ? "group" : "node";
  return world.querySelector(`.box[data-${name}="${CSS.escape(box.item.key)}"]`);
}

function showPass() {
  const pass = data.passes[state.pass], found = changesOf(state.pass);
  at("pass").value = state.pass;
  at("pass-name").innerHTML = `${state.pass}/${last} <b>${escape(pass.name)}</b> ${state.pass ? found.marks.size || state.pass < last ? countsText(found, true) : "the graph that is compiled" : `${state.graph.nodes.length} nodes`}`;
  at("before").classList.toggle("on", state.before);
  at("after").classList.toggle("on", !state.before);
  at("before").disabled = state.pass === 0;
}
function showTabs() {
  for (const button of document.querySelectorAll(".tabs button")) button.classList.toggle("on", button.dataset.tab === state.tab);
  for (const section of document.querySelectorAll("section")) section.classList.toggle("on", section.id === state.tab);
  ({ modules: showModules, kernels: showKernels, details: showDetails, changes: showChanges })[state.tab]();
}
function show(redraw) {
  if (redraw) draw(); else mark();
  showPass();
  showTabs();
  writeAddress();
}

// ---- the part of the drawing that is seen

function place() { world.setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.scale})`); }
function fit(first) {
  const { width } = state.diagram.root.level, { height } = state.diagram.root, box = canvas.getBoundingClientRect();
  const whole = Math.min((box.width - 20) / width, (box.height - 20) / height, 1.25);
  const readable = Math.min(1, Math.max(0.4, (box.width - 30) / width));
  view.scale = first && whole < 0.75 ? Math.max(whole, readable) : whole;
  view.x = (box.width - width * view.scale) / 2;
  view.y = Math.max(6, (box.height - height * view.scale) / 2);
  if (view.scale * width > box.width) centreOn(first && topBox() || { x: width / 2, y: 0, width: 0, height: 0 }, true);
  place();
}
const topBox = () => [...state.diagram.places.values()].reduce((a, b) => !a || b.y < a.y ? b : a, null);
function centreOn(spot, top) {
  const box = canvas.getBoundingClientRect();
  view.x = box.width / 2 - (spot.x + spot.width / 2) * view.scale;
  view.y = top ? 6 : box.height / 2 - (spot.y + spot.height / 2) * view.scale;
  place();
}
function zoom(factor, x, y) {
  const scale = Math.min(4, Math.max(0.03, view.scale * factor)), ratio = scale / view.scale;
  view.x = x - (x - view.x) * ratio; view.y = y - (y - view.y) * ratio; view.scale = scale;
  place();
}
function zoomMiddle(factor) { const box = canvas.getBoundingClientRect(); zoom(factor, box.width / 2, box.height / 2); }

function spotOf(key) {
  const { places, boxOf } = state.diagram, node = state.graph.byKey.get(key);
  return node ? places.get(boxOf.get(node)) : undefined;
}
function spotOfGroup(key) {
  for (const [item, spot] of state.diagram.places) if ((item.isGroup ? item.key : item.item.isGroup ? item.item.key : null) === key) return spot;
}

// ---- what is done

function toggle(key) {
  const before = spotOfGroup(key);
  if (!state.open.delete(key)) state.open.add(key);
  pickGroup(key, true);
  const after = spotOfGroup(key);
  if (!before || !after) return;
  // What was clicked stays under the pointer; an open group grows to both sides.
  view.x += (before.x + before.width / 2 - after.x - after.width / 2) * view.scale;
  view.y += (before.y - after.y) * view.scale;
  place();
}
function pickGroup(key, redraw) {
  Object.assign(state, { group: key, node: null, kernel: null, tab: redraw && (state.tab === "kernels" || state.tab === "modules") ? state.tab : "details" });
  show(redraw);
}
function reveal(path) {
  let opened = false;
  for (let depth = 1; depth <= path.length; depth++) {
    const key = path.slice(0, depth).join("/");
    if (!state.open.has(key)) { state.open.add(key); opened = true; }
  }
  return opened;
}
function pickNode(key, go) {
  Object.assign(state, { node: key, kernel: null, group: null, tab: "details" });
  const node = state.graph.byKey.get(key), opened = go && node ? reveal(node.path) : false;
  show(opened);
  const spot = go && spotOf(key);
  if (spot) { view.scale = Math.max(view.scale, 0.7); centreOn(spot); }
}
function pickKernel(number, go) {
  const kernel = kernels[number];
  Object.assign(state, { kernel: number, node: null, group: null, tab: "details" });
  const shown = [kernel.home, ...kernel.nodes].find(key => state.graph.byKey.has(key));
  const near = shown ? state.graph.byKey.get(shown) : state.graph.nodes.find(n => n.timed.includes(kernel));
  const opened = go && near ? reveal(near.path) : false;
  show(opened);
  const spot = go && near && spotOf(near.key);
  if (spot) { view.scale = Math.max(view.scale, 0.7); centreOn(spot); }
}
function goToPass(pass, before) {
  const middle = canvas.getBoundingClientRect(), old = state.diagram;
  // The place that is looked at is kept by the box that is nearest to the middle.
  const x = (middle.width / 2 - view.x) / view.scale, y = (middle.height / 2 - view.y) / view.scale;
  let best = null;
  for (const [item, spot] of old.places) {
    const d = Math.abs(spot.x + spot.width / 2 - x) + Math.abs(spot.y + spot.height / 2 - y);
    if (!best || d < best.d) best = { d, item, spot };
  }
  state.pass = Math.min(last, Math.max(0, pass));
  state.before = Boolean(before) && state.pass > 0;
  show(true);
  if (!best) return;
  const item = best.item.isGroup ? best.item : best.item.item;
  const now = item.isGroup ? spotOfGroup(item.key) : spotOf(item.key);
  if (now) {
    view.x += (best.spot.x + best.spot.width / 2 - now.x - now.width / 2) * view.scale;
    view.y += (best.spot.y - now.y) * view.scale;
    place();
  } else fit(true);
}
function nextChange(step) {
  let pass = state.pass + step;
  while (pass > 0 && pass < last && !changesOf(pass).marks.size) pass += step;
  goToPass(pass, false);
}

// ---- search

let hits = [], hit = 0;
function search(text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean), list = at("found");
  for (const element of world.querySelectorAll(".found")) element.classList.remove("found");
  hits = []; hit = 0;
  if (words.length) {
    const fits = line => words.every(word => line.toLowerCase().includes(word));
    for (const key of allGroups(state.graph)) if (fits(`${key.replace(/\//g, ".")} ${data.classes[key.replace(/\//g, ".")] || ""}`))
      hits.push({ group: key, text: key.replace(/\//g, "."), note: data.classes[key.replace(/\//g, ".")] || "module" });
    for (const node of state.graph.nodes) if (fits(`${node.op} %${node.key} ${node.path.join(".")} ${node.type} ${node.attached.map(w => w.op).join(" ")}`))
      hits.push({ node: node.key, text: `${node.op} %${node.key}`, note: node.path.join(".") });
    for (const kernel of kernels) if (fits(`#${kernel.number} ${kernel.name} ${opsText(kernel)} ${kernel.ops.join(" ")} ${homePath(kernel).join(".")} kernel`))
      hits.push({ kernel: kernel.number, text: `#${kernel.number} ${opsText(kernel)}`, note: `kernel ${kernel.name}` });
    for (const found of hits.filter(h => h.node)) {
      const box = state.diagram.boxOf.get(state.graph.byKey.get(found.node));
      const element = box && elementOf(box);
      if (element) element.classList.add("found");
    }
  }
  list.hidden = !words.length;
  list.innerHTML = hits.slice(0, 100).map((h, i) => `<li data-hit="${i}"><b>${escape(clip(h.text, 44))}</b><span>${escape(h.note)}</span></li>`).join("") ||
    '<li><span>nothing in this graph</span></li>';
}
function takeHit(found) {
  if (!found) return;
  if (found.group !== undefined) {
    const opened = reveal(found.group.split("/").slice(0, -1));
    pickGroup(found.group, opened);
    state.tab = "details";
    showTabs();
    const spot = spotOfGroup(found.group);
    if (spot) centreOn({ ...spot, height: Math.min(spot.height, 200) });
  } else if (found.node) pickNode(found.node, true); else pickKernel(found.kernel, true);
  at("found").hidden = true;
}

// ---- events

function follow(event) {
  const target = event.target.closest("[data-node],[data-group],[data-kernel],[data-pass],[data-gone]");
  if (!target) return;
  const { node, group: key, kernel, pass, gone } = target.dataset;
  if (pass !== undefined) goToPass(Number(pass), false);
  else if (kernel !== undefined) pickKernel(Number(kernel), true);
  else if (gone !== undefined) { goToPass(state.pass, true); pickNode(gone, true); }
  else if (node !== undefined) pickNode(node, true);
  else takeHit({ group: key });
}
function listen() {
  let grip = null, moved = false;
  canvas.addEventListener("pointerdown", e => { grip = { x: e.clientX - view.x, y: e.clientY - view.y, id: e.pointerId, from: [e.clientX, e.clientY] }; moved = false; });
  canvas.addEventListener("pointermove", e => {
    if (!grip) return;
    if (!moved && Math.hypot(e.clientX - grip.from[0], e.clientY - grip.from[1]) < 4) return;
    if (!moved) { moved = true; canvas.setPointerCapture(grip.id); canvas.classList.add("moving"); }
    view.x = e.clientX - grip.x; view.y = e.clientY - grip.y;
    place();
  });
  const release = () => { grip = null; canvas.classList.remove("moving"); };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("click", e => { if (!moved) clickOn(e.target.closest("[data-node],[data-group]")); });
  canvas.addEventListener("keydown", e => { if (e.key === "Enter") clickOn(e.target.closest("[data-node],[data-group]")); });
  canvas.addEventListener("wheel", e => {
    e.preventDefault();
    const box = canvas.getBoundingClientRect();
    zoom(Math.exp(-e.deltaY * (e.deltaMode ? 0.05 : 0.0015)), e.clientX - box.left, e.clientY - box.top);
  }, { passive: false });
  document.querySelector("aside").addEventListener("click", follow);
  for (const button of document.querySelectorAll(".tabs button")) button.addEventListener("click", () => { state.tab = button.dataset.tab; show(false); });
  const act = (id, does) => at(id).addEventListener("click", does);
  act("open-all", () => { state.open = allGroups(state.graph); show(true); fit(true); });
  act("close-all", () => { state.open = new Set(); show(true); fit(true); });
  act("fit", () => fit(false));
  act("in", () => zoomMiddle(1.25));
  act("out", () => zoomMiddle(0.8));
  act("theme", () => { state.theme = dark() ? "light" : "dark"; paint(); writeAddress(); });
  act("previous", () => nextChange(-1));
  act("next", () => nextChange(1));
  act("before", () => goToPass(state.pass, true));
  act("after", () => goToPass(state.pass, false));
  at("pass").addEventListener("input", () => goToPass(Number(at("pass").value), false));
  at("search").addEventListener("input", () => search(at("search").value));
  at("search").addEventListener("keydown", searchKey);
  at("search").addEventListener("blur", () => setTimeout(() => { at("found").hidden = true; }, 200));
  at("found").addEventListener("mousedown", e => { const li = e.target.closest("[data-hit]"); if (li) takeHit(hits[Number(li.dataset.hit)]); });
  addEventListener("keydown", pressed);
  addEventListener("hashchange", () => { readAddress(); paint(); show(true); goToAddress(); });
}
function clickOn(target) {
  if (!target) { Object.assign(state, { node: null, kernel: null, group: null }); show(false); return; }
  if (target.dataset.node !== undefined) pickNode(target.dataset.node, false); else toggle(target.dataset.group);
}
function searchKey(e) {
  if (e.key === "Enter") takeHit(hits[hit]);
  else if (e.key === "Escape") { at("search").value = ""; search(""); at("search").blur(); }
  else if (e.key === "ArrowDown" || e.key === "ArrowUp") {
    hit = Math.max(0, Math.min(hits.length - 1, hit + (e.key === "ArrowDown" ? 1 : -1)));
    [...at("found").children].forEach((li, i) => { li.classList.toggle("at", i === hit); if (i === hit) li.scrollIntoView({ block: "nearest" }); });
    e.preventDefault();
  }
}
function pressed(e) {
  if (e.target.tagName === "INPUT" || e.ctrlKey || e.metaKey || e.altKey) return;
  const keys = { "/": () => at("search").focus(), "0": () => fit(false), "+": () => zoomMiddle(1.25), "-": () => zoomMiddle(0.8),
                 ArrowLeft: () => nextChange(-1), ArrowRight: () => nextChange(1), b: () => goToPass(state.pass, !state.before) };
  if (keys[e.key]) { keys[e.key](); e.preventDefault(); }
}
const dark = () => document.documentElement.dataset.theme === "dark";
function paint() {
  const wanted = state.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  document.documentElement.dataset.theme = wanted;
}
function goToAddress() {
  if (state.node !== null) pickNode(state.node, true);
  else if (state.kernel !== null) pickKernel(state.kernel, true);
  else if (state.group !== null) takeHit({ group: state.group });
}

readAddress();
paint();
at("name").textContent = data.name;
const count = pass => graphAt(pass).nodes.length;
at("about").textContent = last ? `${count(0)} nodes traced, ${count(last)} optimized, ${kernels.length} kernel calls` +
  (timed ? `, ${timeText(data.profile.seconds)} per call` : "") + ` · ${data.target} · graphc ${data.version}` : `${count(0)} nodes · graphc ${data.version}`;
for (const part of document.querySelectorAll("nav, .tabs")) part.hidden = !last;  // a page of one graph has no passes and kernels
at("pass").max = last;
at("ticks").innerHTML = data.passes.map((p, i) => {
  const size = changesOf(i).marks.size, place = last ? 100 * i / last : 0;
  return `<i class="${size ? "some" : ""}" style="left:${place.toFixed(2)}%;height:${size ? Math.min(9, 3 + 2 * Math.log10(1 + size)).toFixed(1) : 3}px"></i>`;
}).join("");
listen();
show(true);
fit(true);
goToAddress();
