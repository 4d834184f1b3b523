"""Settings of the documentation site: ``sphinx-build -W --keep-going -b html docs build/docs``.

Imports nothing of Sphinx, so that ``tests/docs/test_site.py`` reads it where Sphinx is not installed.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from graphc.base.version import VERSION  # noqa: E402

NAMES = re.findall(r"^   (graphc[\w.]*)$", (ROOT / "docs" / "api.md").read_text(encoding="utf-8"), re.MULTILINE)
"""Names with a page in the reference, in order."""
OWN_PAGE = frozenset(name.rpartition(".")[2] for name in NAMES if name.rpartition(".")[2][:1].isupper())
"""Classes with a page for themselves."""
PAGES = tuple(name for name in NAMES if name.rpartition(".")[2] not in OWN_PAGE)
"""Modules with a page in the reference, in order."""
_BUILTIN = type(len)


class Assignment(NamedTuple):
    """The statement that binds a name of a module to a builtin method, such as ``get = variable.get``."""

    module: str
    docstring: str
    """The string under the statement."""


def assignment_of(attribute: str, value: object) -> Assignment:
    """Return the assignment that binds ``attribute`` to ``value`` in a loaded module of graphc.

    A builtin method does not know its module, and packages import it under the same name. The module that defines it is
    the one whose source assigns it. Raises LookupError where none does with a docstring.
    """
    for name, module in sorted(sys.modules.items()):
        # Import paths of PyTorch may be modules without a file (``known_as`` in graphc/base/lazy.py).
        if name.partition(".")[0] == "graphc" and (file := getattr(module, "__file__", None)):
            docstring = _docstring_under(file, attribute) if vars(module).get(attribute) is value else None
            if docstring is not None:
                return Assignment(name, docstring)
    raise LookupError(f"no module of graphc assigns {attribute} with a docstring under the assignment")


def _docstring_under(file: str, attribute: str) -> str | None:
    """Return the string under the assignment to ``attribute`` in a source file, None where there is none."""
    body = ast.parse(Path(file).read_text(encoding="utf-8")).body
    for statement, after in pairwise(body):
        targets = getattr(statement, "targets", [getattr(statement, "target", None)])
        named = any(isinstance(target, ast.Name) and target.id == attribute for target in targets)
        if named and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            return inspect.cleandoc(str(after.value.value))
    return None


def public_names(module: Any) -> list[str]:
    """Return the names on the page of a module: its ``__all__``, else what it defines without an underscore."""
    if (names := getattr(module, "__all__", None)) is not None:
        return sorted(names)
    own = (name for name, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__)
    return sorted(name for name in own if not name.startswith("_"))


def _home(name: str, value: Any, page: str) -> str:
    """Return the module that defines a function on ``page``."""
    if isinstance(value, _BUILTIN):
        return assignment_of(name, value).module
    return getattr(inspect.unwrap(value), "__module__", None) or page


def _subjects(pages: tuple[str, ...]) -> dict[str, dict[str, list[str]]]:
    """Return the functions on each page by the last name of the module that defines them, which names their subject."""
    result: dict[str, dict[str, list[str]]] = {}
    for page in pages:
        subjects = result[page] = {}
        module = import_module(page)
        for name in public_names(module):
            if inspect.isroutine(value := getattr(module, name)):
                subject = _home(name, value, page).rpartition(".")[2].replace("_", " ").capitalize()
                subjects.setdefault(subject, []).append(name)
    return result


def _repeated(pages: tuple[str, ...]) -> dict[str, dict[str, str]]:
    """Return the classes on each page that an earlier page documents by the same name, and their full names there.

    Only the first is the target of links.
    """
    first: dict[tuple[str, int], str] = {}
    result: dict[str, dict[str, str]] = {}
    for page in pages:
        module = import_module(page)
        members = {name: getattr(module, name) for name in public_names(module)}
        classes = {(name, id(value)): f"{page}.{name}" for name, value in members.items() if isinstance(value, type)}
        result[page] = {key[0]: first[key] for key in classes if key in first}
        first = classes | first
    return result


project = "graphc"
release = VERSION
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon"]
templates_path = ["_templates"]
html_theme = "furo"
html_title = f"graphc {VERSION}"
html_copy_source = False
# A little smaller than furo's, so that "graphc.nn.utils.parametrizations" fits on one line of the sidebar.
html_theme_options = {"light_css_variables": {"sidebar-item-font-size": "80%"}}
# Pages that an earlier build generated for modules which docs/api.md no longer lists.
exclude_patterns = [
    f"generated/{path.name}" for path in (ROOT / "docs" / "generated").glob("*.rst") if path.stem not in NAMES
]

myst_heading_anchors = 3

# The members of a package are those of its __all__, wherever they are defined.
autosummary_generate = True
autosummary_ignore_module_all = False
autosummary_context = {"repeated": _repeated(PAGES), "with_bases": ["Tensor", "Module"]}
autosummary_context |= {"subjects": _subjects(PAGES), "own_page": OWN_PAGE}
autodoc_member_order = "alphabetical"
autodoc_typehints = "signature"
# Args, Returns and Raises of docstrings are lists in Google's style.
napoleon_numpy_docstring = False
napoleon_use_rtype = False
add_module_names = False
# Tables at the top of each page link to the objects; entries for hundreds of them would be copied into every sidebar.
toc_object_entries = False
python_maximum_signature_line_length = 100

_CODE = re.compile(r"(``.+?``|`[^`\n]+?`_?)", re.DOTALL)
_MARKUP = re.compile(r"[*|\\]|_(?=\W|$)")
_SECTION = re.compile(r"(Args|Returns|Raises|Example):$")
"""Titles that Google's style of docstrings has."""
_ITEM = re.compile(r"    ([*\w]+(?:, [*\w]+)*): (.*)")
_FIELDS = {"Args": "param", "Raises": "raises"}
"""Fields of Sphinx for the items of a section."""


def _escape(app: Any, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Escape the markup of reStructuredText: docstrings are plain text with ``code``."""
    if what == "function" and isinstance(obj, _BUILTIN):
        lines[:] = [*assignment_of(name.rpartition(".")[2], obj).docstring.splitlines(), ""]
    lines[:] = _with_fields(lines)
    parts = _CODE.split("\n".join(lines))
    # Indented blocks stay as they are: they are code.
    parts[::2] = ["\n".join(_escaped(line) for line in part.split("\n")) for part in parts[::2]]
    lines[:] = _joined(parts).split("\n")


def _with_fields(lines: list[str]) -> list[str]:
    """Return a docstring with the items under ``Args:``, ``Returns:`` and ``Raises:`` as fields of Sphinx."""
    result: list[str] = []
    title = ""
    for line in lines:
        if section := _SECTION.match(line):
            title = section[1]
            result += {"Returns": [":returns:"], "Example": [line]}.get(title, [])
        elif line and not line.startswith(" "):
            title = ""
            result.append(line)
        elif title in _FIELDS and (item := _ITEM.match(line)):
            # Sphinx takes a word before a space for the type of the next one.
            result.append(f":{_FIELDS[title]} {item[1].replace(', ', ',')}: {item[2]}")
        elif title in _FIELDS or title == "Returns":
            # Two spaces: text that continues a field, and no code that stays unescaped.
            result.append(f"  {line.strip()}" if line else "")
        else:
            result.append(line)
    return result


def _escaped(line: str) -> str:
    return line if line.startswith("    ") else _MARKUP.sub(lambda found: "\\" + found.group(), line)


def _joined(parts: list[str]) -> str:
    """Return text and code, which alternate, as one string in which ``a``..``b`` is code twice."""
    for i in range(1, len(parts), 2):
        # reStructuredText sees the ends of code only beside a space or certain signs; "\\ " is a space of no width.
        before = "\\ " if parts[i - 1][-1:].strip() else ""
        after = "\\ " if parts[i + 1][:1].strip() else ""
        parts[i] = f"{before}{parts[i]}{after}"
    return "".join(parts)


def setup(app: Any) -> None:
    """Connect the events; Sphinx calls it."""
    # Before napoleon, whose priority is 500, writes markup of its own.
    app.connect("autodoc-process-docstring", _escape, priority=400)
