// The graphs of the data, and what is visible of one: boxes for nodes and closed groups, and the open groups around.

const data = JSON.parse(document.getElementById("data").textContent);
const kernels = data.kernels;
const kernelsOf = new Map();  // by the key of a node
for (const kernel of kernels) for (const key of kernel.nodes) push(kernelsOf, key, kernel);
const homes = new Map();  // kernels by the node that shows their time
for (const kernel of kernels) if (kernel.home) push(homes, kernel.home, kernel);
const timed = data.profile !== null;
const graphs = data.graphs.map(() => null);

function push(map, key, value) {
  const found = map.get(key);
  if (found) found.push(value); else map.set(key, [value]);
}

// A graph with its edges; weights are no nodes here but part of those that read them.
function graphAt(pass) {
  const number = data.passes[pass].graph;
  if (graphs[number]) return graphs[number];
  const graph = { nodes: [], byKey: new Map(), weights: new Map(), all: new Map() };
  const makers = new Map();
  for (const index of data.graphs[number]) {
    const record = data.records[index];
    const node = { ...record, type: record.results.length ? record.results[0][1] : "", reads: [], readers: [],
                   attached: [], literals: [], group: record.path.join("/"), modules: record.path.length - (record.called || 0) };
    graph.all.set(node.key, node);
    if (record.weights) graph.weights.set(node.key, node);
    else { node.order = graph.nodes.length; graph.nodes.push(node); graph.byKey.set(node.key, node); }
    for (const [name, type] of record.results) makers.set(name, { node, type });
  }
  for (const node of graph.nodes) for (const name of node.operands) {
    const made = makers.get(name);
    if (!made) node.literals.push(name);
    else if (made.node.weights) node.attached.push(made.node);
    else { node.reads.push({ from: made.node, value: name, type: made.type }); made.node.readers.push(node); }
  }
  findTimes(graph);
  return graphs[number] = graph;
}

// Each kernel's time stands at one node: its home, or before passes have made that, one of the same module and op.
function findTimes(graph) {
  const places = new Map();
  for (const node of graph.nodes) { node.timed = []; push(places, node.group, node); }
  for (const [key, found] of homes) {
    const own = graph.byKey.get(key), home = finalRecords.get(key);
    if (!home) continue;
    // A value may have kept its name where another op makes it now.
    const group = home.path.join("/"), near = places.get(group) || [];
    const fitting = own && own.op === home.op && own.group === group ? [own] : [];
    const choices = [fitting, near.filter(n => n.op === home.op), near.filter(n => n.kind === home.kind), own ? [own] : []];
    const place = choices.find(nodes => nodes.length === 1);
    if (place) place[0].timed.push(...found);
  }
}
const finalRecords = new Map();
for (const index of data.graphs[data.passes[data.passes.length - 1].graph])
  finalRecords.set(data.records[index].key, data.records[index]);
const homePath = kernel => (finalRecords.get(kernel.home) || { path: kernel.module ? kernel.module.split(".") : [] }).path;

// Kernels whose time counts for a group, wherever its nodes have gone.
const kernelsInside = new Map();
for (const kernel of kernels) {
  const path = homePath(kernel);
  for (let depth = 1; depth <= path.length; depth++) push(kernelsInside, path.slice(0, depth).join("/"), kernel);
}

// What a pass changed: by key "added", "removed" or "changed".
const changes = new Map();
function changesOf(pass) {
  if (changes.has(pass)) return changes.get(pass);
  const found = { marks: new Map(), added: 0, removed: 0, changed: 0 };
  if (pass > 0 && data.passes[pass].graph !== data.passes[pass - 1].graph) {
    const before = graphAt(pass - 1).all, after = graphAt(pass).all;
    const mark = (key, what) => { found.marks.set(key, what); found[what]++; };
    for (const [key, node] of after) {
      const old = before.get(key);
      if (!old) mark(key, "added"); else if (meaning(old) !== meaning(node)) mark(key, "changed");
    }
    for (const key of before.keys()) if (!after.has(key)) mark(key, "removed");
  }
  changes.set(pass, found);
  return found;
}
function meaning(node) {
  return node.meaning || (node.meaning = JSON.stringify([node.op, node.attrs || null, node.results, node.literals,
                                                         node.operands.length, node.weights || false]));
}

// The members of a group: nodes, and groups inside. Groups that depend on each other in a circle are cut into pieces
// of nodes that follow each other.
function membersOf(nodes, depth) {
  const names = nodes.map(n => n.path.length > depth ? n.path.slice(0, depth + 1).join("/") : null);
  let itemOf = new Map(nodes.map((n, i) => [n, names[i] === null ? n : names[i]]));
  const circular = inCircles(nodes, itemOf);
  let last = null, piece = null, count = new Map();
  const members = [], made = new Map();
  nodes.forEach((node, i) => {
    const name = names[i];
    if (name === null) { members.push(node); last = null; return; }
    if (circular.has(name)) {
      if (last !== name) {
        count.set(name, (count.get(name) || 0) + 1);
        piece = group(name, depth + 1, count.get(name));
        members.push(piece);
      }
      piece.nodes.push(node);
    } else {
      if (!made.has(name)) { made.set(name, group(name, depth + 1, 1)); members.push(made.get(name)); }
      made.get(name).nodes.push(node);
    }
    last = name;
  });
  return members;
}
function group(key, depth, piece) {
  const parts = key.split("/");
  let first = parts.length - 1;  // a number says something behind a name only
  while (first > 0 && /^\d+$/.test(parts[first])) first--;
  const title = parts.slice(first).join(".");
  return { isGroup: true, key, label: title, depth, piece, nodes: [], kind: data.classes[parts.join(".")] || "" };
}
function inCircles(nodes, itemOf) {
  const after = new Map(), before = new Map();
  for (const item of itemOf.values()) { after.set(item, new Set()); before.set(item, new Set()); }
  for (const node of nodes) for (const { from } of node.reads) {
    const a = itemOf.get(from), b = itemOf.get(node);
    if (a !== undefined && a !== b) { after.get(a).add(b); before.get(b).add(a); }
  }
  const left = new Set(after.keys());
  for (const [outs, ins] of [[after, before], [before, after]]) {
    const ready = [...left].filter(item => ![...ins.get(item)].some(i => left.has(i)));
    while (ready.length) {
      const item = ready.pop();
      if (!left.delete(item)) continue;
      for (const next of outs.get(item)) if (left.has(next) && ![...ins.get(next)].some(i => left.has(i))) ready.push(next);
    }
  }
  return left;
}

// What is visible of a graph when these groups are open: a tree of open groups over boxes, and lines between boxes.
function diagramOf(graph, open) {
  const boxes = [], root = { isGroup: true, key: "", label: "", depth: 0, parent: null, nodes: graph.nodes, members: [] };
  const boxOf = new Map();
  const pending = [root];
  for (const present of pending) {
    present.members = membersOf(present.nodes, present.depth).map(member => {
      if (member.isGroup && open.has(member.key)) { member.parent = present; pending.push(member); return member; }
      const box = { id: boxes.length, item: member, home: present, outs: new Map() };
      boxes.push(box);
      for (const node of member.isGroup ? member.nodes : [member]) boxOf.set(node, box);
      return box;
    });
  }
  const lines = new Map();
  for (const node of graph.nodes) for (const { from, value, type } of node.reads) {
    const a = boxOf.get(from), b = boxOf.get(node);
    if (a === b) continue;
    lines.set(`${a.id} ${b.id}`, [a, b]);
    a.outs.set(value, type);
  }
  return { boxes, root, groups: pending, lines: [...lines.values()], boxOf };
}

function allGroups(graph) {
  const found = new Set();
  for (const node of graph.nodes) for (let d = 1; d <= node.path.length; d++) found.add(node.path.slice(0, d).join("/"));
  return found;
}
