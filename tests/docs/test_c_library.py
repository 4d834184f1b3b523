"""The programs in other languages on the page about libraries, with the library that the page builds."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.c_library.conftest import run_tool, tool_or_skip
from tests.docs.test_docs import Page


class Example:
    """The page's program in a language, and the first number that it must print."""

    def __init__(self, language: str, folder: Path):
        self.page = Page("docs/c_library.md")
        (self.program,) = self.blocks(language)
        builds = self.blocks("python")
        (folder / "policy.py").write_text(builds[0])
        sys.modules.pop("policy", None)
        exec(builds[1], self.page.namespace)
        if language != "c":
            exec(next(text for text in builds if '"hpp", "rs", "go"' in text), self.page.namespace)
        self.folder = folder

    def blocks(self, language: str) -> list[str]:
        """Return the texts of all blocks in a language."""
        return re.findall(rf"^```{language}\n(.*?)^```$", self.page.text, re.MULTILINE | re.DOTALL)

    def write(self, name: str, text: str) -> None:
        """Write a file beside the library."""
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(text)

    def check(self, printed: str) -> None:
        """Check the number that the program printed."""
        names = self.page.namespace
        wanted = names["policy"](names["gc"].zeros(1, 17)).detach().numpy()[0, 0]
        assert float(printed.split()[0]) == pytest.approx(wanted, abs=1e-4)


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Example]:
    """Build the library of the page in an empty folder, and return the program in a language."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return lambda language: Example(language, tmp_path)


def test_the_program_in_c_runs(example: Callable[[str], Example], tmp_path: Path):
    compiler, c = tool_or_skip("cc"), example("c")
    c.write("main.c", c.program)
    run_tool(compiler, "-Wall", "-Wextra", "-Werror", "main.c", "policy.so", "-Wl,-rpath,.", "-o", "main")
    c.check(run_tool(tmp_path / "main"))


def test_the_program_in_cpp_runs(example: Callable[[str], Example], tmp_path: Path):
    compiler, cpp = tool_or_skip("g++"), example("cpp")
    cpp.write("main.cpp", cpp.program)
    (command,) = [line for line in "".join(cpp.blocks("sh")).splitlines() if line.startswith("g++")]
    run_tool(compiler, "-Wall", "-Wextra", "-Werror", *command.split()[1:])
    cpp.check(run_tool(tmp_path / "main"))


def test_the_program_in_rust_runs(example: Callable[[str], Example], tmp_path: Path):
    compiler, rust = tool_or_skip("cargo"), example("rust")
    head = '[package]\nname = "main"\nversion = "0.1.0"\nedition = "2021"\n\n'
    rust.write("Cargo.toml", head + rust.blocks("toml")[0])
    rust.write("src/main.rs", rust.program)
    environment = {**os.environ, "RUSTFLAGS": "-D warnings", "CARGO_NET_OFFLINE": "true"}
    rust.check(run_tool(compiler, "run", "--quiet", "--target-dir", tmp_path / "target", env=environment))


def test_the_program_in_go_runs(example: Callable[[str], Example], tmp_path: Path):
    compiler, go = tool_or_skip("go"), example("go")
    tool_or_skip("gcc", "clang")
    (module,) = [text for text in go.blocks("text") if text.startswith("require")]
    go.write("go.mod", f"module main\n\ngo 1.18\n\n{module}")
    go.write("main.go", go.program)
    (tmp_path / "policy.c").unlink()  # go would compile the demo, which is another main
    environment = {**os.environ, "GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOCACHE": str(tmp_path / "cache")}
    go.check(run_tool(compiler, "run", ".", env=environment))
