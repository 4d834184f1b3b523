"""The page: one well-formed file that loads nothing, and a program that runs in a browser without an error."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.base.module_path import class_names
from graphc.codegen.machine.target import host_target
from graphc.compiler.profile import profile
from graphc.models.model_trace import snapshot
from graphc.nn import functional as F
from graphc.pages.model_data import view_data
from graphc.pages.model_page import page

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
VOID = {"meta", "input", "br", "link"}
in_browser = pytest.mark.skipif(BROWSER is None, reason="there is no chromium to open the page")

# Stands before the program of the page: writes down errors, and at the end what two texts overlap.
WATCH = """<script>
const errors = [];
addEventListener("error", e => errors.push(e.message));
addEventListener("securitypolicyviolation", e => errors.push(`policy: ${e.violatedDirective}`));
addEventListener("load", () => setTimeout(() => {
  const boxes = [...document.querySelectorAll("#world text")].map(e => [e.textContent, e.getBoundingClientRect()]);
  const beside = (a, b) => a.left < b.right - 1 && b.left < a.right - 1;
  const meet = (a, b) => beside(a, b) && a.top < b.bottom - 2 && b.top < a.bottom - 2;
  const after = (a, i) => boxes.slice(i + 1).filter(([, b]) => meet(a, b));
  const overlaps = boxes.flatMap(([text, a], i) => after(a, i).map(([other]) => [text, other]));
  const seen = name => [...document.querySelectorAll(name)].map(e => e.textContent);
  const marked = ["added", "removed", "changed", "inside"].flatMap(name => seen(`#world .${name}`)).length;
  document.title = "found " + JSON.stringify({
    errors, overlaps, marked, boxes: seen("#world .box .title"), open: seen("#world .header .name"),
    tab: seen("section.on").join(""), rows: seen("section.on .ops"),
    pass: seen("#pass-name").join(""), picked: seen("#world .picked .title"),
    theme: document.documentElement.dataset.theme,
  });
}, 50));
</script>"""


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(*[nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6)) for _ in range(3)])
        self.rnn = nn.LSTM(6, 4)

    def forward(self, x):
        return self.rnn(self.blocks(x).reshape(2, 1, 6).softmax(2))[0]


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    gc.manual_seed(0)
    net = Net().eval()
    traced = snapshot(net, [gc.zeros(2, 6)])
    return view_data(traced.graph, traced.state(), host_target(), classes=class_names(net))


class Tree(HTMLParser):
    """Raises where tags do not close in order; keeps what a page could load."""

    def __init__(self):
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.open += [] if tag in VOID else [tag]
        self.loads += [value for name, value in attrs if name in ("src", "href", "action")]
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_well_formed_and_loads_nothing(data: dict[str, Any]):
    text, tree = page(data), Tree()
    tree.feed(text)
    tree.close()
    assert tree.open == [] and tree.loads == [] and len(set(tree.ids)) == len(tree.ids)
    assert "default-src 'none'" in text
    assert not re.search(r"\b(eval|Function|fetch|XMLHttpRequest|import)\s*\(", text.partition('id="data"')[2])
    assert not re.search(r"https?://", text)


def test_the_data_come_back_from_the_page(data: dict[str, Any]):
    data = {**data, "name": "</script><b>"}
    text = page(data)
    result = re.search(r'id="data">(.*?)</script>', text, re.DOTALL)
    assert result and json.loads(result[1]) == data
    assert "<title>&lt;/script&gt;&lt;b&gt;</title>" in text


def test_equal_data_make_equal_pages(data: dict[str, Any]):
    assert page(data) == page(json.loads(json.dumps(data)))


def opened(data: dict[str, Any], folder: Path, address: str = "", width: int = 1400) -> dict[str, Any]:
    """Return the contents that a browser shows for the page at an address."""
    path = folder / "net.html"
    path.write_text(page(data).replace("<body>", f"<body>{WATCH}", 1))
    assert BROWSER is not None
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    command += ["--virtual-time-budget=4000", f"--window-size={width},900", "--dump-dom", f"{path.as_uri()}#{address}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    result = re.search(r"<title>found (.*?)</title>", done.stdout, re.DOTALL)
    assert result, done.stderr[-2000:]
    return json.loads(result[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))


@in_browser
def test_modules_are_closed_at_first(data: dict[str, Any], tmp_path: Path):
    result = opened(data, tmp_path)
    assert result["errors"] == [] and result["overlaps"] == []
    assert {"blocks: Sequential", "rnn: LSTM"} <= {*result["open"], *result["boxes"]}
    assert "blocks.0: Sequential" in result["open"] and "blocks.0.1: BatchNorm1d" in result["boxes"]
    assert "matmul" not in result["boxes"]
    assert "rematerialize" in result["pass"] and f"{len(data['kernels'])} kernel calls" in result["tab"]


@in_browser
@pytest.mark.parametrize("number", [0, 1, 10, 28])
def test_all_can_be_opened_behind_every_pass(data: dict[str, Any], tmp_path: Path, number: int):
    number = min(number, len(data["passes"]) - 1)
    result = opened(data, tmp_path, f"open=all&pass={number}&theme=dark")
    assert result["errors"] == [] and result["overlaps"] == [] and result["theme"] == "dark"
    assert data["passes"][number]["name"] in result["pass"]
    records = [data["records"][i] for i in data["graphs"][data["passes"][number]["graph"]]]
    nodes = [r for r in records if not r.get("weights")]
    assert len(result["boxes"]) == len(nodes)
    assert {"body", "scan %" + next(r["key"] for r in nodes if r["op"] == "scan")} <= set(result["open"])


@in_browser
def test_an_address_names_a_state(data: dict[str, Any], tmp_path: Path):
    product = next(k for k in data["kernels"] if "matmul" in k["ops"])
    result = opened(data, tmp_path, f"node={product['home']}")
    assert result["errors"] == [] and result["picked"] == ["matmul"]
    assert f"#{product['number']}" in result["tab"] and "Loop nest" in result["tab"]
    kernel = opened(data, tmp_path, f"kernel={product['number']}")
    assert kernel["errors"] == [] and f"kernel @{product['name']}" in kernel["tab"]
    wrong = opened(data, tmp_path, "node=none&kernel=999&pass=-1&open=nothing")
    assert wrong["errors"] == [] and "not in this graph" in wrong["tab"]


@in_browser
def test_changes_of_a_pass_are_marked(data: dict[str, Any], tmp_path: Path):
    number = next(i for i, p in enumerate(data["passes"]) if p["name"] == "fold-batch-norm")
    after = opened(data, tmp_path, f"pass={number}&tab=changes&open=all")
    before = opened(data, tmp_path, f"pass={number}&before=1&open=all")
    assert after["errors"] == before["errors"] == []
    assert after["marked"] > 0 and before["marked"] > 0 and "added" in after["tab"]


class Activations(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 8)
        self.act = nn.ReLU()
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        x = self.act(self.fc(x))
        return F.log_softmax(self.head(x), 1)


@pytest.fixture(scope="module")
def timed() -> dict[str, Any]:
    net = Activations().eval()
    traced = snapshot(net, [gc.zeros(2, 6)])
    inputs = [np.ones((2, 6), np.float32)]
    measure = lambda stages: profile(stages, inputs, {}, 0.01, 3)  # noqa: E731
    return view_data(traced.graph, traced.state(), host_target(), measure=measure)


@in_browser
@pytest.mark.parametrize("width", [400, 600, 1000, 1600])
def test_times_of_modules_are_shown_at_first(timed: dict[str, Any], tmp_path: Path, width: int):
    result = opened(timed, tmp_path, width=width)
    assert result["errors"] == [] and result["overlaps"] == []
    assert [row.split()[1] for row in result["rows"]] == ["Linear", "Linear"]
    assert "%" in result["tab"]
    assert {"fc: Linear", "act: ReLU", "head: Linear", "log_softmax"} <= set(result["boxes"])


@in_browser
def test_kernels_are_called_after_functions_and_layers(timed: dict[str, Any], tmp_path: Path):
    rows = opened(timed, tmp_path, "tab=kernels")["rows"]
    names = {name for row in rows for name in row.split(", ")}
    assert {"ReLU", "log_softmax"} <= names and not {"le", "where", "exp"} & names


@in_browser
def test_pages_of_one_graph_have_no_passes(tmp_path: Path):
    gc.picture(gc.trace(Activations(), gc.zeros(2, 6)), tmp_path / "picture.html")
    text = (tmp_path / "picture.html").read_text()
    result = opened(json.loads(text.partition('id="data">')[2].partition("</script>")[0]), tmp_path)
    assert result["errors"] == [] and result["overlaps"] == []
    assert result["boxes"] == ["x", "fc: Linear", "act: ReLU", "head: Linear", "log_softmax", "output"]
