// Layered layout of nested groups, as layout.py computes it: groups are laid out inside out, and then count as one wide
// item; lines cross the border of a group at ports, which lines from one box share.

const GAP = 20, PADDING = 16, HEADER = 30, FOOTER = 14, RANK = 26, LABEL = 19, SWEEPS = 8;

function arrange(diagram) {
  const edges = edgesByGroup(diagram);
  for (const group of [...diagram.groups].reverse()) layLevel(group, edges.get(group));
}

function chain(group) {
  const found = [];
  for (; group; group = group.parent) found.push(group);
  return found;
}

// For every group the edges between its members and ports, each with the box that the line comes from.
function edgesByGroup(diagram) {
  const edges = new Map(diagram.groups.map(g => [g, new Map()]));
  const add = (group, start, end, source) => edges.get(group).set(`${start.key} > ${end.key} ${source.id}`, { start, end, source });
  const member = m => ({ key: m.isGroup ? `g${m.key}#${m.piece}` : `b${m.id}`, member: m });
  const port = (side, source) => ({ key: `${side}${source.id}`, side, source });
  for (const [a, b] of diagram.lines) {
    const ups = chain(a.home), downs = chain(b.home), shared = ups.find(g => downs.includes(g));
    let start = member(a), end = member(b);
    for (const group of ups.slice(0, ups.indexOf(shared))) { add(group, start, port("exit", a), a); start = member(group); }
    for (const group of downs.slice(0, downs.indexOf(shared))) { add(group, port("entry", a), end, a); end = member(group); }
    add(shared, start, end, a);
  }
  return edges;
}

function layLevel(group, edgeMap) {
  const edges = [...edgeMap.values()];
  const level = group.level = { elements: [], ranks: [], segments: [], entries: new Map(), exits: new Map(), width: 0 };
  const ranks = rank(group, edges), place = new Map();
  const most = Math.max(0, ...[...ranks.values()].map(r => r.rank));
  level.ranks = Array.from({ length: most + 1 }, () => []);
  const addElement = (rank, width, item) => {
    level.elements.push({ rank, width, item, x: 0 });
    level.ranks[rank].push(level.elements.length - 1);
    return level.elements.length - 1;
  };
  for (const [key, { rank, end }] of ranks)
    place.set(key, addElement(rank, end.member ? widthOf(end.member) : 4, end.member || null));
  for (const [key, { end }] of ranks) if (end.side)
    (end.side === "entry" ? level.entries : level.exits).set(end.source.id, place.get(key));
  connect(level, edges, place, addElement);
  const near = neighbours(level);
  orderRanks(level, near);
  spread(level, near);
  const left = Math.min(0, ...level.elements.map(e => e.x - e.width / 2)) === 0 && !level.elements.length ? 0
    : Math.min(...level.elements.map(e => e.x - e.width / 2)) - PADDING;
  for (const e of level.elements) e.x -= left;
  const right = Math.max(0, ...level.elements.map(e => e.x + e.width / 2)) + PADDING;
  level.width = Math.max(right, group.parent ? headerWidth(group) : 0);
  const shift = (level.width - right) / 2;
  for (const e of level.elements) e.x += shift;
  levelHeights(group);
}

function widthOf(member) { return member.isGroup ? member.level.width : Math.max(member.width, member.labelWidth); }
function heightOf(member) { return member.isGroup ? member.height : member.height + (member.label ? LABEL : 0); }

// Longest paths from above; what nothing leads to stands right above the first that reads it.
function rank(group, edges) {
  const found = new Map(), after = new Map(), before = new Map();
  const note = end => { if (!found.has(end.key)) { found.set(end.key, { rank: 1, end }); after.set(end.key, []); before.set(end.key, 0); } };
  for (const m of group.members) note({ key: m.isGroup ? `g${m.key}#${m.piece}` : `b${m.id}`, member: m });
  const ports = new Map(), entered = new Set(), left = new Set();
  for (const { start, end } of edges) {
    if (start.side) { ports.set(start.key, start); entered.add(end.key); }
    if (end.side) { ports.set(end.key, end); left.add(start.key); }
    if (start.side || end.side) continue;
    after.get(start.key).push(end.key);
    before.set(end.key, before.get(end.key) + 1);
  }
  const waiting = new Map(before), ready = [...found.keys()].filter(k => !waiting.get(k));
  for (const key of ready) for (const reader of after.get(key)) {
    found.get(reader).rank = Math.max(found.get(reader).rank, found.get(key).rank + 1);
    waiting.set(reader, waiting.get(reader) - 1);
    if (!waiting.get(reader)) ready.push(reader);
  }
  const last = Math.max(0, ...[...found.values()].map(f => f.rank)) + 1;
  for (const key of [...ready].reverse())
    if (!before.get(key) && !entered.has(key) && (after.get(key).length || left.has(key)))
      found.get(key).rank = Math.max(1, Math.min(last, ...after.get(key).map(r => found.get(r).rank)) - 1);
  for (const [key, end] of ports) found.set(key, { rank: end.side === "entry" ? 0 : last, end });
  return found;
}

function connect(level, edges, place, addElement) {
  const bends = new Map(), done = new Set();
  const segment = (start, end, source) => {
    const key = `${start} ${end} ${source.id}`;
    if (done.has(key)) return;
    done.add(key);
    level.segments.push({ start, end, source, out: portOf(level, start, source, "exits"), into: portOf(level, end, source, "entries") });
  };
  for (const { start, end, source } of edges) {
    let present = place.get(start.key);
    const target = place.get(end.key);
    for (let r = level.elements[present].rank + 1; r < level.elements[target].rank; r++) {
      const key = `${start.key} ${source.id} ${r}`;
      if (!bends.has(key)) bends.set(key, addElement(r, 4, null));
      segment(present, bends.get(key), source);
      present = bends.get(key);
    }
    segment(present, target, source);
  }
}
function portOf(level, number, source, side) {
  const item = level.elements[number].item;
  if (!item || !item.isGroup) return 0;
  const inside = item.level;
  return inside.elements[inside[side].get(source.id)].x - inside.width / 2;
}

// Per element those above and below it, with how far from theirs its middle would have to be.
function neighbours(level) {
  const found = level.elements.map(() => [[], []]);
  const isGroup = i => level.elements[i].item && level.elements[i].item.isGroup;
  for (const s of level.segments) {
    found[s.end][0].push([s.start, isGroup(s.end) ? 0 : s.out]);
    found[s.start][1].push([s.end, isGroup(s.start) ? 0 : s.into]);
  }
  return found;
}

function orderRanks(level, near) {
  const places = new Map();
  for (const r of level.ranks) r.forEach((e, i) => places.set(e, i));
  const widest = Math.max(1, ...level.ranks.map(r => r.length));
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const side = sweep % 2, ranks = side ? [...level.ranks].reverse() : level.ranks;
    for (const r of ranks.slice(1)) {
      const mean = new Map(r.map(e => {
        const found = near[e][side];
        return [e, found.length ? found.reduce((sum, [n]) => sum + places.get(n), 0) / found.length : places.get(e)];
      }));
      r.sort((a, b) => mean.get(a) - mean.get(b) || places.get(a) - places.get(b));
      const scale = widest / Math.max(r.length, 1);
      r.forEach((e, i) => places.set(e, (i + 0.5) * scale));
    }
  }
}

function spread(level, near) {
  const elements = level.elements;
  for (const r of level.ranks) {
    let x = 0;
    for (const e of r) { elements[e].x = x + elements[e].width / 2; x += elements[e].width + GAP; }
  }
  for (let sweep = 0; sweep < 2 * SWEEPS; sweep++) {
    const side = sweep % 2;
    for (const r of side ? [...level.ranks].reverse() : level.ranks) {
      const wanted = [], weights = [];
      for (const e of r) {
        const drawn = aligned(level, elements[e], near[e], side);
        wanted.push(drawn.length ? drawn.reduce((sum, [n, shift]) => sum + elements[n].x + shift, 0) / drawn.length : elements[e].x);
        weights.push(elements[e].item === null ? 1 : 8);
      }
      const places = fitPlaces(elements, r, wanted, weights);
      r.forEach((e, i) => { elements[e].x = places[i]; });
    }
  }
}

// Boxes and ports are drawn to boxes, and bends to bends, so that chains of each stay straight.
function aligned(level, element, near, side) {
  const toBoxes = element.item !== null || element.rank === 0 || element.rank === level.ranks.length - 1;
  const sides = [near[side], near[1 - side]];
  const alike = sides.map(some => some.filter(([n]) => (level.elements[n].item !== null) === toBoxes));
  return [...alike, ...sides].find(some => some.length) || [];
}

// The places nearest to the wanted ones (weighted squares) that keep order and distances: pooled violators.
function fitPlaces(elements, r, wanted, weights) {
  const offsets = [], pools = [];
  r.forEach((e, i) => offsets.push(i ? offsets[i - 1] + (elements[r[i - 1]].width + elements[e].width) / 2 + GAP : 0));
  wanted.forEach((want, i) => {
    pools.push([(want - offsets[i]) * weights[i], weights[i], 1]);
    while (pools.length > 1 && pools[pools.length - 2][0] / pools[pools.length - 2][1] > pools[pools.length - 1][0] / pools[pools.length - 1][1]) {
      const [total, mass, count] = pools.pop(), top = pools[pools.length - 1];
      top[0] += total; top[1] += mass; top[2] += count;
    }
  });
  const means = pools.flatMap(([total, mass, count]) => Array(count).fill(total / mass));
  return means.map((mean, i) => mean + offsets[i]);
}

function levelHeights(group) {
  const level = group.level, last = level.ranks.length - 1;
  level.tops = []; level.heights = [];
  let y = 0;
  level.ranks.forEach((r, number) => {
    const height = Math.max(0, ...r.map(e => level.elements[e].item ? heightOf(level.elements[e].item) : 0));
    level.tops.push(y); level.heights.push(height);
    y += height;
    if (number < last) y += number ? RANK : group.parent ? HEADER + 18 : FOOTER;
  });
  group.height = level.exits.size ? y : y + FOOTER;
}
