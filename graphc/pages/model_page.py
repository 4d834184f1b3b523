"""HTML page of a model: data and scripts in one self-contained file."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import Any

from graphc.base.version import VERSION
from graphc.pages.graph_data import Record

STYLES = ("drawing.css", "page.css")
SCRIPTS = ("graph.js", "layout.js", "draw.js", "panel.js", "page.js")
"""In the order of the page: each script uses the ones before it."""
BODY = "page.html"
FORMAT = 2
"""Version of the data."""
_FOLDER = Path(__file__).parent
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
"""Content security policy: the page loads nothing and evaluates no strings."""


def graph_page_data(
    name: str, records: list[Record], lines: dict[str, str], classes: dict[str, str], opened: list[str]
) -> dict[str, Any]:
    """Return the data of the page of one graph, without passes and kernels; ``opened`` are the groups open at first."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": name,
        "target": "",
        "classes": classes,
        "open": opened,
        "passes": [{"name": "traced", "graph": 0, "changed": 0, "reasons": []}],
        "records": records,
        "graphs": [list(range(len(records)))],
        "lines": lines,
        "kernels": [],
        "texts": {},
        "profile": None,
    }


def page(data: dict[str, Any]) -> str:
    """Return the HTML page of the data of ``view_data``."""
    # NOTE: "</script>" in the data would end the script element, so "<" is escaped, as JSON permits.
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    script = "\n".join(map(_read, SCRIPTS))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(data['name'])}</title>\n<style>\n{''.join(map(_read, STYLES))}</style></head>\n"
        f'<body>\n{_read(BODY)}<script type="application/json" id="data">{text}</script>\n'
        f'<script>\n"use strict";\n(() => {{\n{script}}})();\n</script>\n</body></html>\n'
    )


def _read(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")
