// Draws a laid-out diagram as SVG: boxes, groups with their headers, lines, and the types of what flows along them.

const FONT = "system-ui, 'Segoe UI', Roboto, Ubuntu, Cantarell, 'Noto Sans', sans-serif";
const pen = document.createElement("canvas").getContext("2d");
const widths = new Map();
function textWidth(text, size, bold) {
  const key = `${size}${bold ? "b" : ""} ${text}`;
  if (!widths.has(key)) { pen.font = `${bold ? "600 " : ""}${size}px ${FONT}`; widths.set(key, pen.measureText(text).width); }
  return widths.get(key);
}
const escape = text => String(text).replace(/[&<>"]/g, c => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
const clip = (text, most) => text.length <= most ? text : `${text.slice(0, most - 1)}…`;

// "f32[1,64,56,56]" as "1×64×56×56"; other element types stand before it.
function shapeText(type) {
  const found = /^(\w+)\[(.*)\]$/.exec(type);
  if (!found) return type;
  const shape = found[2].replace(/,/g, "×") || "scalar";
  return found[1] === "f32" ? shape : `${found[1]} ${shape}`;
}
const literalText = text => (/^\w+\((.*)\)$/.exec(text) || [text, text])[1];

function timeText(seconds) {
  for (const [unit, scale] of [["s", 1], ["ms", 1e3], ["µs", 1e6], ["ns", 1e9]])
    if (seconds * scale >= 1 || unit === "ns") return `${Number((seconds * scale).toPrecision(3))} ${unit}`;
}
const shareText = share => share >= 0.0995 ? `${(100 * share).toFixed(0)}%` : share >= 0.0005 ? `${(100 * share).toFixed(1)}%` : share > 0 ? "<0.1%" : "0%";
const kernelTime = k => k.resolved ? timeText(k.seconds) : `< ${timeText(data.profile.resolution)}`;

// Time and share of some kernels together, null without times.
function spent(some) {
  if (!timed || !some.length) return null;
  const seconds = some.reduce((sum, k) => sum + k.seconds, 0), share = some.reduce((sum, k) => sum + k.share, 0);
  const told = some.some(k => k.resolved) || seconds > data.profile.resolution;
  return { seconds, share, text: `${told ? timeText(seconds) : `< ${timeText(data.profile.resolution)}`} · ${shareText(share)}` };
}
const greatest = timed ? Math.max(...kernels.map(k => k.share), 1e-9) : 1;

// What stands in a box: a title, lines below, a time; and its size.
function fillBox(box, marks) {
  const item = box.item;
  if (item.isGroup) fillGroup(box, item, marks); else fillNode(box, item, marks);
  const types = [...new Set([...box.outs.values()].filter(Boolean).map(shapeText))];
  box.label = types.length > 2 ? `${types[0]}, +${types.length - 1}` : types.join(", ");
  box.labelWidth = box.label ? textWidth(box.label, 11) + 10 : 0;
  const sub = Math.max(0, ...box.lines.map(line => textWidth(line, 11)));
  const time = box.time ? textWidth(box.time.text, 11, true) + 10 : 0;
  box.width = Math.max(textWidth(box.title, 13, true) + (item.isGroup ? 22 + (box.badge ? textWidth(box.badge, 11) + 12 : 0) : 0), sub, time, 44) + 24;
  box.height = 28 + 15 * box.lines.length + (box.time ? 17 : 0);
}
function fillNode(box, node, marks) {
  const numbers = node.literals.map(literalText).filter(text => text.length < 12);
  box.title = clip([node.op, ...numbers].join(" "), 40);
  box.lines = weightLines(node.attached);
  if (node.kind === "input" && node.type) box.lines.push(clip(node.type, 34));
  box.time = spent(node.timed);
  box.mark = marks.get(node.key) || "";
  box.key = node.key;
}
function weightLines(weights) {
  const lines = weights.slice(0, 2).map(w => `${clip(weightName(w), 22)}  ${shapeText(w.type)}`);
  return weights.length > 2 ? [...lines, `+${weights.length - 2} more`] : lines;
}
// Constants that passes have made are called after the op that made them, which says nothing.
const weightName = w => w.kind !== "constant" ? lastPart(w.op) : (graphAt(0).weights.has(w.key) ? lastPart(w.key) : "constant");
const lastPart = name => name.split(".").filter(p => p && !/^\d+$/.test(p)).pop() || name;

const rankOfWeight = w => (w.kind === "param" ? 0 : 2) + (weightName(w).startsWith("weight") ? 0 : 1);

// The box of a closed group has the groups inside of it, or else its weights; ops if its class is unknown.
function fillGroup(box, group, marks) {
  box.title = group.kind ? `${group.label}: ${group.kind}` : group.label;
  const inner = group.nodes.filter(n => n.modules > group.depth).map(n => n.path[group.depth]);
  const weights = new Map(group.nodes.flatMap(n => n.attached.filter(w => w.kind !== "constant").map(w => [w.key, w])));
  if (inner.length || !(weights.size || group.kind || group.nodes[0].modules < group.depth)) {
    const counts = new Map();
    for (const name of inner.length ? new Set(inner) : group.nodes.map(n => n.op)) counts.set(name, (counts.get(name) || 0) + 1);
    const text = [...counts].map(([name, count]) => count > 1 ? `${name} ×${count}` : name).join(", ");
    box.lines = [text.length < 34 ? text : `${group.nodes.length} nodes`];
  } else box.lines = weightLines([...weights.values()].sort((a, b) => rankOfWeight(a) - rankOfWeight(b)));
  box.time = group.piece > 1 ? null : spent(kernelsInside.get(group.key) || []);
  const counts = countMarks(group.key, marks);
  box.badge = [["+", "added"], ["−", "removed"], ["~", "changed"]].filter(([, w]) => counts[w]).map(([s, w]) => s + counts[w]).join(" ");
  box.mark = group.piece > 1 ? "" : ["added", "removed", "changed"].filter(w => counts[w]).length ? "inside" : "";
  box.key = group.key;
}
function countMarks(key, marks) {
  const counts = { added: 0, removed: 0, changed: 0 };
  for (const [name, what] of marks) {
    const node = what === "removed" ? state.beforeGraph.all.get(name) : state.afterGraph.all.get(name);
    const path = node ? node.path.join("/") : "";
    if (path === key || path.startsWith(`${key}/`)) counts[what]++;
  }
  return counts;
}
function headerWidth(group) {
  const title = group.kind ? `${group.label}: ${group.kind}` : group.label;
  const time = spent(kernelsInside.get(group.key) || []);
  return textWidth(title, 13, true) + (time ? textWidth(time.text, 11, true) + 24 : 0) + 50;
}

function drawDiagram(diagram) {
  const parts = [];
  diagram.places = new Map();
  drawGroup(diagram.root, 0, 0, parts, diagram);
  return parts.join("");
}

function drawGroup(group, left, top, parts, diagram) {
  const { level } = group, lines = [], above = [];
  level.segments.forEach(s => lines.push(drawLine(level, s, left, top, group.parent)));
  parts.push(...lines);
  level.elements.forEach((e, i) => {
    if (!e.item) return;
    const y = top + topOf(level, e), x = left + e.x;
    if (e.item.isGroup) drawOpen(e.item, x - e.width / 2, y, parts, diagram);
    else { drawBox(e.item, x - e.item.width / 2, y, parts); diagram.places.set(e.item, { x: x - e.item.width / 2, y, width: e.item.width, height: e.item.height }); }
    if (!e.item.isGroup && e.item.label) above.push(`<text class="label" x="${x.toFixed(1)}" y="${(y + e.item.height + 14).toFixed(1)}">${escape(e.item.label)}</text>`);
  });
  parts.push(...above);
}
function topOf(level, e) {
  if (!e.item) return level.tops[e.rank];
  return level.tops[e.rank] + (level.heights[e.rank] - heightOf(e.item)) / 2;
}
function drawLine(level, s, left, top, inside) {
  const a = level.elements[s.start], b = level.elements[s.end];
  const x1 = left + a.x + s.out, x2 = left + b.x + s.into;
  const low = top + level.tops[a.rank] + level.heights[a.rank] + (a.rank || !inside ? 0 : HEADER - 4), high = top + level.tops[b.rank] - 7, middle = (low + high) / 2;
  // A line begins below the label of a box, and inside of a group below the title.
  const y1 = a.item ? top + topOf(level, a) + heightOf(a.item) : a.rank || !inside ? top + topOf(level, a) : low, y2 = top + topOf(level, b);
  const f = n => n.toFixed(1), arrow = b.item && !b.item.isGroup ? ' marker-end="url(#arrow)"' : "";
  return `<path class="line" data-source="${s.source.id}"${arrow} d="M${f(x1)} ${f(y1)}L${f(x1)} ${f(low)}C${f(x1)} ${f(middle)} ${f(x2)} ${f(middle)} ${f(x2)} ${f(high)}L${f(x2)} ${f(y2)}"/>`;
}

function drawBox(box, x, y, parts) {
  const { item, width, height } = box, kind = item.isGroup ? "module" : item.kind;
  const middle = width / 2;
  let inner = `<rect class="body" rx="6" width="${width.toFixed(1)}" height="${height}"/>`;
  if (!item.isGroup) inner += `<rect class="stripe" x="0" y="0" rx="2" width="4" height="${height}"/>`;
  else inner += `<path class="chevron" d="M12 10l5 4.5l-5 4.5"/>`;
  const lift = item.isGroup ? 7 : 0, badge = box.badge ? textWidth(box.badge, 11) + 8 : 0;
  inner += `<text class="title" x="${(middle + lift - badge / 2).toFixed(1)}" y="19">${escape(box.title)}</text>`;
  if (box.badge) inner += `<text class="badge" x="${(width - 8).toFixed(1)}" y="18">${escape(box.badge)}</text>`;
  box.lines.forEach((line, i) => { inner += `<text class="sub" x="${middle.toFixed(1)}" y="${33 + 15 * i}">${escape(line)}</text>`; });
  if (box.time) {
    const bar = item.isGroup ? box.time.share : box.time.share / greatest;
    inner += `<text class="time" x="${middle.toFixed(1)}" y="${height - 9}">${escape(box.time.text)}</text>` +
      `<rect class="track" x="8" y="${height - 5}" rx="1.5" width="${(width - 16).toFixed(1)}" height="3"/>` +
      `<rect class="heat" x="8" y="${height - 5}" rx="1.5" width="${Math.max(1, (width - 16) * Math.min(1, bar)).toFixed(1)}" height="3"/>`;
  }
  const what = item.isGroup ? `data-group="${escape(item.key)}"` : `data-node="${escape(item.key)}"`;
  parts.push(`<g class="box kind-${kind} ${box.mark}" ${what} tabindex="0" transform="translate(${x.toFixed(1)} ${y.toFixed(1)})">${inner}</g>`);
}
function drawOpen(group, x, y, parts, diagram) {
  const { width } = group.level, title = group.kind ? `${group.label}: ${group.kind}` : group.label;
  const time = group.piece > 1 ? null : spent(kernelsInside.get(group.key) || []);
  parts.push(`<g class="open depth-${group.depth % 2}" transform="translate(${x.toFixed(1)} ${y.toFixed(1)})">` +
    `<rect class="frame" rx="9" width="${width.toFixed(1)}" height="${group.height.toFixed(1)}"/></g>`);
  diagram.places.set(group, { x, y, width, height: group.height });
  drawGroup(group, x, y, parts, diagram);
  parts.push(`<g class="header" data-group="${escape(group.key)}" tabindex="0" transform="translate(${x.toFixed(1)} ${y.toFixed(1)})">` +
    `<rect class="bar" rx="8" x="1" y="1" width="${(width - 2).toFixed(1)}" height="24"/><path class="chevron" d="M9 10l4.5 5l4.5 -5"/>` +
    `<text class="name" x="24" y="17">${escape(title)}</text>` +
    (time ? `<text class="spent" x="${(width - 10).toFixed(1)}" y="17">${escape(time.text)}</text>` : "") + "</g>");
}
