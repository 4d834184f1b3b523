"""Settings of the documentation site: ``python -m sphinx -W -b html docs build/docs``."""

from __future__ import annotations

import inspect
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from sphinx.pycode import ModuleAnalyzer

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from graphc.base.version import VERSION  # noqa: E402

NAMES = re.findall(r"^   (graphc[\w.]*)$", (ROOT / "docs" / "api.md").read_text(), re.MULTILINE)
"""What has a page in the reference, in order."""
OWN_PAGE = frozenset(name.rpartition(".")[2] for name in NAMES if name.rpartition(".")[2][:1].isupper())
"""Classes with a page for themselves."""
PAGES = tuple(name for name in NAMES if name.rpartition(".")[2] not in OWN_PAGE)
"""Modules with a page in the reference, in order."""


def _subjects(pages: tuple[str, ...]) -> dict[str, dict[str, list[str]]]:
    """The functions on each page by the module that defines them, whose name says what they are about."""
    found: dict[str, dict[str, list[str]]] = {}
    for page in pages:
        subjects = found[page] = {}
        module = import_module(page)
        for name in sorted(getattr(module, "__all__", ())):
            if inspect.isroutine(value := getattr(module, name)):
                home = getattr(inspect.unwrap(value), "__module__", None) or page
                subjects.setdefault(home.rpartition(".")[2].replace("_", " ").capitalize(), []).append(name)
    return found


def _repeated(pages: tuple[str, ...]) -> dict[str, list[str]]:
    """The classes on each page that an earlier page has as well; only the first is the target of links."""
    seen: set[int] = set()
    found: dict[str, list[str]] = {}
    for page in pages:
        module = import_module(page)
        classes = {name: getattr(module, name) for name in getattr(module, "__all__", ())}
        found[page] = [name for name, value in classes.items() if isinstance(value, type) and id(value) in seen]
        seen.update(id(value) for value in classes.values())
    return found


project = "graphc"
release = VERSION
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary"]
templates_path = ["_templates"]
html_theme = "furo"
html_title = f"graphc {VERSION}"
html_copy_source = False

myst_heading_anchors = 3

# The members of a package are those of its __all__, wherever they are defined.
autosummary_generate = True
autosummary_ignore_module_all = False
autosummary_context = {"repeated": _repeated(PAGES), "with_bases": ["Tensor", "Module"]}
autosummary_context |= {"subjects": _subjects(PAGES), "own_page": OWN_PAGE}
autodoc_member_order = "alphabetical"
autodoc_typehints = "signature"
add_module_names = False
# Tables at the top of each page link to the objects; entries for hundreds of them would be copied into every sidebar.
toc_object_entries = False
python_maximum_signature_line_length = 100

_BUILTIN = type(len)
_CODE = re.compile(r"(``.+?``|`[^`\n]+?`_?)", re.DOTALL)
_MARKUP = re.compile(r"[*|\\]|_(?=\W|$)")


def _escape(app: Any, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Docstrings are plain text with ``code``: what reStructuredText reads as markup stands for itself."""
    if isinstance(obj, _BUILTIN):
        lines[:] = _attribute_docs(name)
    parts = _CODE.split("\n".join(lines))
    # Indented blocks stay as they are: they are code.
    parts[::2] = ["\n".join(_escaped(line) for line in part.split("\n")) for part in parts[::2]]
    lines[:] = "".join(parts).split("\n")


def _attribute_docs(name: str) -> list[str]:
    """The text under the assignment that binds a method of a builtin object to ``name``, in the module it came from."""
    module, _, attribute = name.rpartition(".")
    for source in (module, *(m for m in sorted(sys.modules) if m.startswith("graphc.autograd."))):
        docs = ModuleAnalyzer.for_module(source).find_attr_docs()
        if found := docs.get(("", attribute)):
            return list(found)
    return []


def _escaped(line: str) -> str:
    return line if line.startswith("    ") else _MARKUP.sub(lambda found: "\\" + found.group(), line)


def setup(app: Any) -> None:
    """Called by sphinx."""
    app.connect("autodoc-process-docstring", _escape)
