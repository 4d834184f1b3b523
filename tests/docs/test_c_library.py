"""The C program on the page about libraries, with the library that the page builds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.c_library.conftest import run_tool, tool_or_skip
from tests.docs.test_docs import Page


def test_the_program_in_c_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    compiler = tool_or_skip("cc")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    page = Page("docs/c_library.md")
    program = re.findall(r"^```c\n(.*?)^```$", page.text, re.MULTILINE | re.DOTALL)
    build = re.findall(r"^```python\n(.*?)^```$", page.text, re.MULTILINE | re.DOTALL)[0]
    exec(build, page.namespace)
    (tmp_path / "main.c").write_text(program[0])
    run_tool(compiler, "-Wall", "-Wextra", "-Werror", "main.c", "policy.so", "-Wl,-rpath,.", "-o", "main")
    wanted = page.namespace["policy"](page.namespace["gc"].zeros(1, 17)).detach().numpy()[0, 0]
    assert float(run_tool(tmp_path / "main")) == pytest.approx(wanted, abs=1e-4)
