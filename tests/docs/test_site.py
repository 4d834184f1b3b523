"""The documentation site, without Sphinx: what its settings look up exists, and its pages show all of their text."""

from __future__ import annotations

import inspect
import re
import runpy
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import graphc

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(ROOT.glob("docs/**/*.md"))

_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def settings() -> Iterator[dict[str, Any]]:
    """Run ``docs/conf.py`` where Sphinx cannot be imported, and return its names."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [*sys.path])
        patch.setitem(sys.modules, "sphinx", None)
        yield runpy.run_path(str(ROOT / "docs" / "conf.py"))


def public_modules(module: ModuleType) -> Iterator[ModuleType]:
    """Yield the modules of graphc that ``module`` has among its public names, and theirs."""
    for name in getattr(module, "__all__", ()):
        value = getattr(module, name)
        if isinstance(value, ModuleType) and value.__name__.startswith(f"{module.__name__}."):
            yield value
            yield from public_modules(value)


def members(settings: dict[str, Any], module: Any) -> dict[str, Any]:
    """Return the functions and classes among the public names of ``module``."""
    values = {name: getattr(module, name) for name in settings["public_names"](module)}
    return {name: value for name, value in values.items() if inspect.isroutine(value) or isinstance(value, type)}


def test_every_public_function_and_class_is_in_the_reference(settings: dict[str, Any]):
    pages = [sys.modules[page] for page in settings["PAGES"]]
    documented = {id(value) for page in pages for value in members(settings, page).values()}
    missing = [
        f"{module.__name__}.{name}"
        for module in public_modules(graphc)
        for name, value in members(settings, module).items()
        if id(value) not in documented
    ]
    assert missing == [], "list their modules in docs/api.md"


def test_a_builtin_method_is_described_where_it_is_assigned(settings: dict[str, Any]):
    # graphc, graphc.autograd and modules without a file have the name as well.
    assignment = settings["assignment_of"]("is_grad_enabled", graphc.is_grad_enabled)
    assert assignment.module == "graphc.tape.grad_mode"
    assert assignment.docstring.startswith("Return whether operations")
    with pytest.raises(LookupError, match="no module of graphc assigns is_grad_enabled"):
        settings["assignment_of"]("is_grad_enabled", len)


def test_docstrings_are_plain_text_with_code(settings: dict[str, Any]):
    lines = ["x_ * 2 in ``low``..``high``, or ``a``", "    y_ * 2"]
    settings["_escape"](None, "class", "graphc.A", object, None, lines)
    assert lines == [r"x\_ \* 2 in ``low``\ ..\ ``high``\ , or ``a``", "    y_ * 2"]


def test_titles_of_pages_differ():
    titles = Counter(page.read_text(encoding="utf-8").partition("\n")[0] for page in PAGES)
    assert [title for title, count in titles.items() if count > 1] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_no_line_is_hidden_as_a_comment(page: Path):
    text = _FENCED.sub("", page.read_text(encoding="utf-8"))
    assert [line for line in text.splitlines() if line.startswith("%")] == [], "MyST reads % as a comment"
