"""HTML page with a diagram whose groups open and close; it needs no network."""

from __future__ import annotations

import json
from html import escape
from typing import Any

from graphc.pages import svg
from graphc.pages.diagram import BoxGroup, Diagram
from graphc.pages.layout import arrange

MOST_BOXES = 60
"""Largest number of boxes that are visible at first, if closing groups can achieve it."""

_STYLE = (
    ".graphc-picture{font:13px system-ui,sans-serif;color:#222}.graphc-picture .view{overflow:auto;border:1px solid "
    "#ccc;background:#fff;max-height:92vh}.graphc-picture button{font:inherit;margin:0 6px 6px 0}"
    ".graphc-picture .h{cursor:pointer}.graphc-picture .h:hover rect{fill:#45618a;fill-opacity:.12}"
)

# The same arithmetic as svg.heights_of and svg._Drawing.path, for groups that were opened or closed.
_SCRIPT = """
(function (box, data) {
  const svg = box.querySelector('svg'), at = id => svg.querySelector('#' + id);
  const isGroup = item => typeof item === 'string';
  let zoom = 1;
  function height(item) {
    return isGroup(item) ? (data.groups[item].closed ? data.closed : data.groups[item].total) : item;
  }
  function top(group, e) {
    const [rank, , item] = group.elements[e];
    return item === null ? group.tops[rank] : group.tops[rank] + (group.ranks[rank] - height(item)) / 2;
  }
  function layout() {
    for (const name of data.order) {
      const group = data.groups[name], count = group.count;
      group.tops = []; group.ranks = [];
      let y = 0;
      for (let r = 0; r < count; r++) {
        let high = 0;
        for (const [rank, , item] of group.elements)
          if (rank === r && item !== null) high = Math.max(high, height(item));
        group.tops.push(y); group.ranks.push(high); y += high;
        if (r < count - 1)
          y += r > 0 ? data.gap : group.root ? data.footer : data.header;
      }
      group.total = group.exits ? y : y + data.footer;
      group.elements.forEach(([, left, item], e) => {
        if (item !== null) at(name + 'e' + e).setAttribute('transform', `translate(${left} ${top(group, e)})`);
      });
      group.segments.forEach(([a, b, x1, x2], s) => {
        const [ra, , ia] = group.elements[a], [rb] = group.elements[b];
        const low = group.tops[ra] + group.ranks[ra], high = group.tops[rb] - data.straight, middle = (low + high) / 2;
        const y1 = top(group, a) + (ia === null ? 0 : height(ia));
        at(name + 's' + s).setAttribute('d', `M${x1} ${y1}L${x1} ${low}C${x1} ${middle} ${x2} ${middle} ${x2} ${high}` +
          `L${x2} ${top(group, b)}`);
      });
      if (!group.root) {
        at(name + 'r').setAttribute('height', group.closed ? data.closed : group.total);
        at(name).setAttribute('display', group.closed ? 'none' : 'inline');
      } else size(group.total);
    }
  }
  function size(total) {
    svg.setAttribute('viewBox', `0 0 ${data.width} ${total}`);
    svg.setAttribute('width', data.width * zoom); svg.setAttribute('height', total * zoom);
  }
  for (const name of data.order) if (!data.groups[name].root)
    at(name + 'h').addEventListener('click', () => { data.groups[name].closed = !data.groups[name].closed; layout(); });
  box.addEventListener('click', event => {
    const act = event.target.getAttribute('data-do');
    if (act === 'open' || act === 'close') {
      for (const name of data.order) data.groups[name].closed = act === 'close' && !data.groups[name].root;
    } else if (act) zoom = act === 'fit' ? box.querySelector('.view').clientWidth / data.width
      : Math.min(4, Math.max(0.1, zoom * (act === 'in' ? 1.25 : 0.8)));
    if (act) layout();
  });
  layout();
})
"""


def fragment(diagram: Diagram, name: str) -> str:
    """Return an HTML fragment: the picture with buttons. ``name`` must be a unique id on the page."""
    closed = first_closed(diagram)
    data = json.dumps(_data(diagram, closed)).replace("</", "<\\/")
    buttons = "".join(
        f'<button type="button" data-do="{act}">{text}</button>'
        for act, text in (
            ("open", "open all"),
            ("close", "close all"),
            ("in", "larger"),
            ("out", "smaller"),
            ("fit", "fit width"),
        )
    )
    return (
        f'<div class="graphc-picture" id="{escape(name)}"><style>{_STYLE}</style><div>{buttons} a click on '
        f'the label of a group opens or closes it</div><div class="view">{svg.draw(diagram, closed)}</div>'
        f"<script>{_SCRIPT.strip()}(document.getElementById({json.dumps(name)}), {data});</script></div>"
    )


def page(diagram: Diagram, title: str) -> str:
    """Return a complete HTML page."""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title></head>'
        f"<body><h1 style='font:600 18px system-ui,sans-serif'>{escape(title)}</h1>{fragment(diagram, 'picture')}"
        "</body></html>\n"
    )


def first_closed(diagram: Diagram) -> set[BoxGroup]:
    """Return the initially closed groups: the deepest ones, until few enough boxes are visible."""
    groups = diagram.groups()
    deepest = max(group.depth for group in groups)
    closed: set[BoxGroup] = set()
    for depth in range(deepest, 0, -1):
        if _visible(diagram, closed) <= MOST_BOXES:
            break
        closed.update(group for group in groups if group.depth == depth)
    return closed


def _visible(diagram: Diagram, closed: set[BoxGroup]) -> int:
    pending, count = [diagram.root], 0
    for group in pending:
        for member in group.members:
            if isinstance(member, BoxGroup) and member not in closed:
                pending.append(member)
            else:
                count += 1
    return count


def _data(diagram: Diagram, closed: set[BoxGroup]) -> dict[str, Any]:
    levels = arrange(diagram)
    names = {group: f"g{i}" for i, group in enumerate(diagram.groups())}
    groups = {}
    for group, name in names.items():
        level = levels[group]
        items = [
            names[e.item]
            if isinstance(e.item, BoxGroup)
            else None
            if e.item is None
            else svg.box_height(diagram.boxes[e.item])
            for e in level.elements
        ]
        groups[name] = {
            "root": group.parent is None,
            "closed": group in closed,
            "exits": bool(level.exits),
            "count": len(level.ranks),
            "elements": [
                [e.rank, round(e.x - e.width / 2, 1), item] for e, item in zip(level.elements, items, strict=True)
            ],
            "segments": [
                [
                    s.start,
                    s.end,
                    round(level.elements[s.start].x + s.out, 1),
                    round(level.elements[s.end].x + s.into, 1),
                ]
                for s in level.segments
            ],
        }
    sizes = {"closed": svg.CLOSED, "header": svg.HEADER, "footer": svg.FOOTER, "gap": svg.GAP, "straight": svg.STRAIGHT}
    return {"order": list(names.values())[::-1], "groups": groups, "width": levels[diagram.root].width, **sizes}
