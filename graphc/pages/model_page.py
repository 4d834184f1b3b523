"""The page itself: the data of a model and the program that shows them, in one file that needs nothing else."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import Any

STYLE = "page.css"
SCRIPTS = ("graph.js", "layout.js", "draw.js", "panel.js", "page.js")
"""In the order in which they stand in the page: each uses what stands before it."""
BODY = "page.html"
_FOLDER = Path(__file__).parent
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
"""What the browser lets the page do: it loads nothing, and evaluates no text."""


def page(data: dict[str, Any]) -> str:
    """The page of what ``view_data`` gives, as HTML."""
    # NOTE: in a script only "<" could end it, and JSON may write that in this way.
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    script = "\n".join(map(_read, SCRIPTS))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(data['name'])}</title>\n<style>\n{_read(STYLE)}</style></head>\n"
        f'<body>\n{_read(BODY)}<script type="application/json" id="data">{text}</script>\n'
        f'<script>\n"use strict";\n(() => {{\n{script}}})();\n</script>\n</body></html>\n'
    )


def _read(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")
