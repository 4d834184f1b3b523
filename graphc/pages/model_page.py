"""HTML page of a model: data and scripts in one self-contained file."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import Any

STYLE = "page.css"
SCRIPTS = ("graph.js", "layout.js", "draw.js", "panel.js", "page.js")
"""In the order of the page: each script uses the ones before it."""
BODY = "page.html"
_FOLDER = Path(__file__).parent
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
"""Content security policy: the page loads nothing and evaluates no strings."""


def page(data: dict[str, Any]) -> str:
    """Return the HTML page of the data of ``view_data``."""
    # NOTE: "</script>" in the data would end the script element, so "<" is escaped, as JSON permits.
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
