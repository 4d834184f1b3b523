"""The programs on the pages run as they stand there, in order, and print what the pages say."""

from __future__ import annotations

import contextlib
import doctest
import inspect
import io
import linecache
import re
import shlex
import sys
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import graphc
from graphc.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    "README.md",
    "docs/index.md",
    "docs/architecture.md",
    "docs/tutorial.md",
    "docs/faq.md",
    "docs/derivatives.md",
    "docs/extending.md",
    "docs/coming_from_pytorch.md",
    "docs/data.md",
    "docs/distributed.md",
    "docs/deploy.md",
    "docs/array_api.md",
    "docs/cache.md",
    "docs/grammar.md",
    "docs/explain.md",
    "docs/profiling.md",
    "docs/view.md",
    "docs/precision.md",
    "docs/cli.md",
    "docs/c_library.md",
    "docs/webassembly.md",
    "docs/training.md",
    "docs/early_stopping.md",
    "docs/debugging.md",
    "docs/hooks.md",
    "docs/memory.md",
    "docs/control_flow.md",
    "docs/variable_lengths.md",
    "docs/monitor.md",
    "docs/calls.md",
    "docs/artifact.md",
    "docs/linalg.md",
    "docs/complex.md",
    "docs/solvers.md",
    "docs/distributions.md",
    "docs/reliability.md",
]

_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# (\w+\.py)\n")
_COMPARE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Block(NamedTuple):
    """A fenced block of a page."""

    language: str
    text: str
    line: int
    """Number of its first line on the page."""
    printed: str | None
    """The ``text`` block right after it, which says what it prints; ``...`` stands for anything."""


def blocks_of(page: str) -> Iterator[Block]:
    """The ``python`` and ``sh`` blocks of a page."""
    fences = list(_FENCE.finditer(page))
    for fence, after in zip(fences, [*fences[1:], None], strict=True):
        if fence[1] in ("python", "sh"):
            follows = after is not None and after[1] == "text" and not page[fence.end() : after.start()].strip()
            line = page.count("\n", 0, fence.start(2)) + 1
            yield Block(fence[1], fence[2], line, after[2] if after is not None and follows else None)


def run_commands(text: str) -> None:
    """Runs the lines that call ``graphc``; others install something or belong to a checkout."""
    for line in text.splitlines():
        program, *arguments = shlex.split(line, comments=True) or [""]
        if program == "graphc":
            assert main(arguments) == 0, line


class Page:
    """A page while its blocks run, in one namespace and the present folder."""

    def __init__(self, name: str):
        self.name = name
        self.text = (ROOT / name).read_text(encoding="utf-8")
        self.namespace: dict[str, Any] = {"__name__": "page"}

    def run(self) -> int:
        """Runs all blocks, and commands where the page says what they print; returns how many."""
        count = 0
        for block in blocks_of(self.text):
            if block.language == "python" or block.printed is not None:
                self._run_block(block)
                count += 1
        return count

    def _run_block(self, block: Block) -> None:
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            if block.language == "sh":
                run_commands(block.text)
            elif found := _FILE.match(block.text):
                Path(found[1]).write_text(block.text, encoding="utf-8")
            else:
                # As many empty lines before it as there are on the page, so that tracebacks tell its lines.
                code = "\n" * (block.line - 1) + block.text
                exec(compile(code, str(ROOT / self.name), "exec", dont_inherit=True), self.namespace)
        said, printed = block.printed, output.getvalue()
        if said is not None and not doctest.OutputChecker().check_output(said, printed, _COMPARE):
            pytest.fail(f"{self.name}:{block.line} prints\n{printed}\nthe page says\n{said}", pytrace=False)


@pytest.mark.parametrize("name", PAGES)
def test_programs_run_and_print_what_the_page_says(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    linecache.clearcache()  # Files of other tests may have the same names.
    try:
        assert Page(name).run() >= 1
    finally:
        for path in tmp_path.glob("*.py"):
            if path.stem not in before:
                sys.modules.pop(path.stem, None)


def test_what_the_page_for_users_of_pytorch_calls_missing_is_missing():
    text = (ROOT / "docs" / "coming_from_pytorch.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (?!\|)(.+) \|$", text.partition("## Not there")[2], re.MULTILINE)
    assert len(rows) == text.partition("## Not there")[2].count("\n|") - 2, "each line below the head is a row"
    for row in rows:
        names, calls = re.findall(r"`([\w.]+)`", row), re.findall(r"`([\w.]+)\(((?:\w+=(?:, )?)+)\)`", row)
        assert names or calls, f"nothing that can be looked for: {row}"
        found = [name for name in names if _resolves(name)]
        for name, arguments in calls:
            known = inspect.signature(attrgetter(name)(graphc)).parameters
            found += [f"{name}({a}=)" for a in re.findall(r"\w+", arguments) if a in known]
        assert not found, f"exists: {', '.join(found)}; the last table of docs/coming_from_pytorch.md says it does not"


def _resolves(name: str) -> bool:
    try:
        attrgetter(name)(graphc)
    except AttributeError:
        return False
    return True


def test_blocks_know_their_line_and_what_they_print():
    page = "# A\n\n```python\nprint(1)\n```\n\n```text\n1\n```\n\n```sh\nls\n```\n\nwords\n\n```text\n2\n```\n"
    assert list(blocks_of(page)) == [Block("python", "print(1)\n", 4, "1\n"), Block("sh", "ls\n", 12, None)]


def test_a_page_that_says_something_wrong_is_noticed(tmp_path: Path):
    path = tmp_path / "wrong.md"
    path.write_text("```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n")
    with pytest.raises(pytest.fail.Exception, match=r"wrong\.md:2 prints\n2\n"):
        Page(str(path)).run()
