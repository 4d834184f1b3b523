"""Files, folders, modules, names, links, commands and options that pages mention exist."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from functools import reduce
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.architecture.rules import OPTIONAL_OWNERS
from tests.architecture.test_tree import FREE_FILES, FREE_FOLDERS

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", "CONTRIBUTING.md", *sorted(p.relative_to(ROOT).as_posix() for p in ROOT.glob("docs/**/*.md"))]
ROOTS = (ROOT, ROOT / "graphc", ROOT / "tests")
"""Folders to which paths are relative: ``graphc/ops/movement/shape.py``, or ``ops/movement/shape.py`` for short."""
OF_CODE = [
    "CONTRIBUTING.md",
    *(f"docs/{name}.md" for name in ("architecture", "glossary", "grammar", "calls", "threads", "artifact")),
    *(page for page in PAGES if page.startswith("docs/inside/")),
]
"""Pages on which ``ops.movement.shape`` is a module of graphc; on others it may be a variable."""

_CODE = re.compile(r"`([^`\n]+)`")
_PATH = re.compile(r"\.?\w+(/[\w.]+)*/?")
_DOTTED = re.compile(r"([a-z]\w*(?:\.\w+)+)(?:\(.*\))?")
_LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
_MODULE = re.compile(r"python3? -m ((?:tools|benchmarks|tests|graphc)[\w.]*)")


def read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def paths_of(text: str) -> list[str]:
    """Paths in backticks: what starts with a folder of the repository, or ends as a file or folder does."""
    spans = [span for span in _CODE.findall(text) if "/" in span and _PATH.fullmatch(span)]
    tops = {path.name for path in ROOT.iterdir() if path.is_dir()}
    return [span for span in spans if span.split("/")[0] in tops or span.endswith((".py", ".md", ".json", "/"))]


def missing_paths(text: str) -> list[str]:
    return [path for path in paths_of(text) if not any((root / path).exists() for root in ROOTS)]


def missing_names(text: str) -> list[str]:
    """Dotted names in backticks that start with a package of graphc and are no module or member of one."""
    packages = {path.name for path in (ROOT / "graphc").iterdir() if path.is_dir()}
    names = [found[1].removeprefix("graphc.") for span in _CODE.findall(text) if (found := _DOTTED.fullmatch(span))]
    return [name for name in names if name.split(".")[0] in packages and not resolves(name)]


def resolves(name: str) -> bool:
    parts = f"graphc.{name}".split(".")
    for length in range(len(parts), 1, -1):
        try:
            module: Any = import_module(".".join(parts[:length]))
        except ModuleNotFoundError as error:
            if str(error.name).partition(".")[0] == "graphc":
                continue
            # An optional library is not here, so that only the file can be looked for.
            place = ROOT.joinpath(*parts[:length])
            return place.is_dir() or place.with_suffix(".py").is_file()
        return reduce(lambda value, part: getattr(value, part, None), parts[length:], module) is not None
    return False


@pytest.mark.parametrize("page", PAGES)
def test_paths_and_links_lead_somewhere(page: str):
    text = read(page)
    assert missing_paths(text) == []
    assert [link for link in _LINK.findall(text) if not (ROOT / page).parent.joinpath(link).exists()] == []
    assert [name for name in _MODULE.findall(text) if find_spec(name) is None] == []


@pytest.mark.parametrize("page", OF_CODE)
def test_modules_and_what_they_hold_are_there(page: str):
    assert missing_names(read(page)) == []


def texts_of(source: str) -> Iterator[str]:
    """Yield the comments and the triple-quoted strings of a Python file."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        is_text = token.type == tokenize.STRING and token.string.startswith(('"""', 'r"""'))
        if is_text or token.type == tokenize.COMMENT:
            yield token.string


def stale_names(source: str) -> list[str]:
    """Dotted names in comments and docstrings that start with a package of graphc and are no module or member of one.
    Packages of which examples have variables of the same name are left out, and ``func`` of StableHLO."""
    packages = {path.parent.name for path in (ROOT / "graphc").glob("*/__init__.py")} - {"data", "nn", "signal"}
    names = re.compile(rf"(?<![\w./\"'])(?:{'|'.join(sorted(packages))})(?:\.\w+)+(?![\w(]| @)")
    return [name for text in texts_of(source) for name in names.findall(text) if not resolves(name)]


@pytest.mark.parametrize("folder", ["graphc", "tools", "benchmarks"])
def test_comments_and_docstrings_name_what_is_there(folder: str):
    paths = sorted((ROOT / folder).rglob("*.py"))
    stale = {path.relative_to(ROOT).as_posix(): stale_names(path.read_text(encoding="utf-8")) for path in paths}
    assert {path: names for path, names in stale.items() if names} == {}


def test_stale_names_in_comments_and_docstrings_are_found():
    assert stale_names('"""See ops.loop and ``calls.function.compile``."""\nx = 1  # as guards.Key\n') == [
        "ops.loop",
        "guards.Key",
    ]


def test_what_is_not_there_is_noticed():
    assert missing_paths("`graphc/ops/movement/shape.py` `ops/movement/shape.py` `a/b` `ops/` `net.py`") == []
    assert missing_paths("`graphc/ops/shapes.py` `ops/shapes.py` `graphc/opus` `opus/`") == [
        "graphc/ops/shapes.py",
        "ops/shapes.py",
        "graphc/opus",
        "opus/",
    ]
    assert missing_names("`ops.movement.shape` `graphc.ops.movement.shape.pad` `ops.movement.shape.pad(x)` `a.b`") == []
    assert missing_names("`ops.shapes` `ops.shape.pads`") == ["ops.shapes", "ops.shape.pads"]
    assert missing_names("`ops.shapes` `ops.movement.shape.pads`") == ["ops.shapes", "ops.movement.shape.pads"]


def test_rules_name_what_is_there():
    owners = [path for owner in OPTIONAL_OWNERS.values() for path in ((owner,) if isinstance(owner, str) else owner)]
    named = [*owners, *(f"tests/{name}" for name in (*FREE_FOLDERS, *FREE_FILES))]
    assert [path for path in named if not (ROOT / path).exists()] == []


def links_of(*pages: str) -> set[str]:
    return {link for page in pages for link in _LINK.findall(read(f"docs/{page}.md"))}


def test_every_page_is_linked_from_the_first_one():
    pages = {page.removeprefix("docs/") for page in PAGES if page.startswith("docs/")}
    inside = {page for page in pages if page.startswith("inside/")}
    assert pages - inside - links_of("index", "cli") == {"index.md"}
    assert inside - links_of("architecture") == set()
