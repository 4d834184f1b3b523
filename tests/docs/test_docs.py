"""The programs on the pages run as they stand there, in order, and print what the pages say."""

from __future__ import annotations

import contextlib
import doctest
import inspect
import io
import linecache
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import zip_longest
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
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
    "docs/realtime.md",
    "docs/realtime_audio.md",
    "docs/policy_on_a_robot.md",
    "docs/embedding.md",
]

EXCEPTIONS = {
    ("docs/c_library.md", "cc"): "compiles for macOS",
    ("docs/cache.md", "graphc tune"): "searches for five minutes",
    ("docs/explain.md", "graphc explain TARGET|FILE"): "describes the arguments",
    ("docs/language_models.md", "graphc"): "needs a model of 90 MB from the network",
    ("docs/language_models.md", "cc"): "needs that model",
    ("docs/language_models.md", "./generate"): "needs that model",
    ("docs/runners.md", "graphc bench"): "requires a time",
    ("docs/webassembly.md", "python -m http.server"): "serves until somebody stops it",
}
"""Commands that are not run, by page and first words, each with the reason."""

_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"(?:#|//) (\w+\.(?:py|c|rs|go|html))\n")
_NATIVE = ("cc", "rustc", "go")
_CHECKOUT = re.compile(r"python (-m (benchmarks|tools|tests)\b|examples/)")
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
    """Yield the ``python`` and ``sh`` blocks of a page, and those of other languages that name a file."""
    fences = list(_FENCE.finditer(page))
    for fence, after in zip_longest(fences, fences[1:]):
        if fence[1] in ("python", "sh") or (fence[1] in ("c", "rust", "go") and _FILE.match(fence[2])):
            follows = after is not None and after[1] == "text" and not page[fence.end() : after.start()].strip()
            line = page.count("\n", 0, fence.start(2)) + 1
            yield Block(fence[1], fence[2], line, after[2] if after is not None and follows else None)


def exception_for(page: str, line: str) -> str | None:
    """Return why a command of a page is not run, or None if it is."""
    if _CHECKOUT.match(line):
        return "belongs to a checkout"
    reasons = [why for (name, start), why in EXCEPTIONS.items() if name == page and line.startswith(start)]
    return reasons[0] if reasons else None


def run_commands(page: str, text: str) -> None:
    """Run lines that call ``graphc``, ``python``, a compiler or its result; others may install something."""
    for line in text.splitlines():
        program, *arguments = shlex.split(line, comments=True) or [""]
        if exception_for(page, line):
            continue
        if program == "graphc":
            assert main(arguments) == 0, line
        elif program == "python":
            print(run_program([sys.executable, *arguments]), end="")
        elif program in _NATIVE or program.startswith("./"):
            print(run_program([program, *arguments]), end="")


def missing_tools(page: str, text: str) -> list[str]:
    """Return the compilers that a block calls and this machine lacks."""
    programs = [line.split()[0] for line in text.splitlines() if line.strip() and not exception_for(page, line)]
    return [program for program in programs if program in _NATIVE and shutil.which(program) is None]


def run_program(command: list[str]) -> str:
    """Run a program in the present folder, where Python finds this checkout, and return what it prints."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Page:
    """A page while its blocks run, in one namespace and the present folder."""

    def __init__(self, name: str):
        self.name = name
        self.text = (ROOT / name).read_text(encoding="utf-8")
        self.namespace: dict[str, Any] = {"__name__": "page"}

    def run(self) -> int:
        """Run all blocks, programs and commands, and return how many. Forget the modules that its blocks write."""
        count, files = 0, set[str]()
        linecache.clearcache()  # Files of other tests may have the same names.
        try:
            for block in blocks_of(self.text):
                self._run_block(block)
                count += 1
                files |= {match[1] for match in [_FILE.match(block.text)] if match}
        finally:
            for name in files:
                sys.modules.pop(name.removesuffix(".py"), None)
        return count

    def _run_block(self, block: Block) -> None:
        output = io.StringIO()
        if block.language == "sh" and missing_tools(self.name, block.text):
            return
        with contextlib.redirect_stdout(output):
            if block.language == "sh":
                run_commands(self.name, block.text)
            elif found := _FILE.match(block.text):
                Path(found[1]).write_text(block.text, encoding="utf-8")
                sys.modules.pop(Path(found[1]).stem, None)  # Another test may have left one of this name.
            else:
                # As many empty lines before it as there are on the page, so that tracebacks tell its lines.
                code = "\n" * (block.line - 1) + block.text
                exec(compile(code, str(ROOT / self.name), "exec", dont_inherit=True), self.namespace)
        said, printed = block.printed, output.getvalue()
        if said is not None and not doctest.OutputChecker().check_output(said, printed, _COMPARE):
            pytest.fail(f"{self.name}:{block.line} prints\n{printed}\nthe page says\n{said}", pytrace=False)


COMMANDS_ALONE = [
    "docs/runners.md",
    "docs/security.md",
    "docs/vector_math.md",
    *(f"docs/inside/{name}.md" for name in ("gpu", "libraries", "machine", "model_files", "passes", "schedule")),
]
"""Pages whose commands are about any model: the test writes ``net.py``, its files and its inputs."""
NET = """
from graphc import nn


class Net(nn.Module):
    def forward(self, x):
        return x.exp().tanh()
"""


@pytest.mark.parametrize("name", COMMANDS_ALONE)
def test_commands_about_any_model_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    x = np.linspace(-1, 1, 16, dtype=np.float32).reshape(2, 8)
    np.save("x.npy", x)
    np.save("batch.npy", x)
    np.save("y.npy", np.tanh(np.exp(x)))
    Path("net.py").write_text(NET)
    Path("models").mkdir()
    for path in ("net.gcm", "models/net.gcm"):
        assert main(["compile", "net.py:Net", "--input", "x:f32[2,8]", "-o", path]) == 0
    if name == "docs/runners.md":
        pytest.importorskip("onnx", reason="the page runs an ONNX file")
        assert main(["compile", "net.py:Net", "--input", "x:f32[2,8]", "-o", "net.onnx"]) == 0
    blocks = [block for block in blocks_of((ROOT / name).read_text()) if block.language == "sh"]
    for block in blocks:
        run_commands(name, block.text)
    assert blocks


@pytest.mark.parametrize("name", PAGES)
def test_programs_run_and_print_what_the_page_says(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert Page(name).run() >= 1


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


def test_every_exception_is_on_its_page():
    for page, start in EXCEPTIONS:
        texts = [block.text for block in blocks_of((ROOT / page).read_text()) if block.language == "sh"]
        assert any(line.startswith(start) for text in texts for line in text.splitlines()), (page, start)


def test_blocks_know_their_line_and_what_they_print():
    page = "# A\n\n```python\nprint(1)\n```\n\n```text\n1\n```\n\n```sh\nls\n```\n\nwords\n\n```text\n2\n```\n"
    assert list(blocks_of(page)) == [Block("python", "print(1)\n", 4, "1\n"), Block("sh", "ls\n", 12, None)]


def test_a_command_that_fails_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "wrong.md"
    path.write_text('```sh\npython -c "import nothing_of_this_name"\n```\n')
    with pytest.raises(AssertionError, match="nothing_of_this_name"):
        Page(str(path)).run()


def test_a_page_that_says_something_wrong_is_noticed(tmp_path: Path):
    path = tmp_path / "wrong.md"
    path.write_text("```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n")
    with pytest.raises(pytest.fail.Exception, match=r"wrong\.md:2 prints\n2\n"):
        Page(str(path)).run()
