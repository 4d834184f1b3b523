"""The programs in JavaScript on the page about WebAssembly, with the module that the page builds."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.c_library.node import run_script
from tests.docs.test_docs import Page

STUB = """
const pre = {}, slider = {};
globalThis.document = { querySelector: (name) => (name === "pre" ? pre : slider) };
"""


def built(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    page = Page("docs/webassembly.md")
    model, build = re.findall(r"^```python\n(.*?)^```$", page.text, re.MULTILINE | re.DOTALL)[:2]
    (folder / "policy.py").write_text(model)
    monkeypatch.delitem(sys.modules, "policy", raising=False)
    exec(build, page.namespace)
    sys.modules.pop("policy", None)
    return page.text


def test_the_program_for_node_prints_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    text = built(tmp_path, monkeypatch)
    program, printed = re.findall(r"^```js\n(.*?)^```\n\n```text\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[0]
    assert run_script(program, tmp_path) == printed


def test_the_script_of_the_page_shows_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    text = built(tmp_path, monkeypatch)
    page = re.findall(r"^```html\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[0]
    script = re.findall(r"<script[^>]*>(.*?)</script>", page, re.DOTALL)[0]
    end = '\nslider.oninput({ target: { value: "0.5" } });\nconsole.log(pre.textContent);\n'
    numbers = run_script(STUB + script + end, tmp_path).split()
    assert len([float(number) for number in numbers]) == 6
