"""Pictures of a history: SVG of graphc, other formats by matplotlib, and texts that do not overlap in a browser."""

from __future__ import annotations

import importlib
import importlib.util
import shutil
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from graphc.errors import ArgumentError
from graphc.training import picture
from graphc.training.history import History

HAS_MATPLOTLIB = importlib.util.find_spec("matplotlib") is not None
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
ROWS = [
    {"epoch": i + 1, "loss": 2.0 / (i + 1), "valid.loss": None if i == 2 else 1.5, "valid.f<1": 1e-4 * i, "seconds": i}
    for i in range(6)
]
OVERLAPS = """<script>
const boxes = [...document.querySelectorAll("text")].map(e => [e.textContent, e.getBoundingClientRect()]);
const beside = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 2 && b.top < a.bottom - 2;
document.title = JSON.stringify(boxes.flatMap(([t, a], i) =>
  boxes.slice(i + 1).filter(([, b]) => beside(a, b)).map(([u]) => [t, u])));
</script>"""


def test_an_svg_has_a_chart_for_each_measure(tmp_path: Path):
    assert History(ROWS).plot(tmp_path / "h.svg") is None
    root = ET.parse(tmp_path / "h.svg").getroot()
    texts = [e.text for e in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"loss", "f<1", "train", "valid", "best epoch, 1"} <= set(texts)
    assert root.get("width") == str(2 * picture.WIDTH)
    lines = [e.get("d") for e in root.iter("{http://www.w3.org/2000/svg}path") if e.get("class") == "line"]
    curves = [d for d in lines if d is not None and "H" not in d]
    assert len(curves) == 4, "the training loss, the validation loss before and after a gap, and f<1"


def test_one_epoch_is_a_dot(tmp_path: Path):
    History(ROWS[:1]).plot(tmp_path / "h.svg")
    assert (tmp_path / "h.svg").read_text().count("<circle") == 3


@pytest.mark.parametrize("rows", [ROWS, ROWS[:1], [{**row, "loss": -1e6 * row["epoch"]} for row in ROWS]])
@pytest.mark.skipif(BROWSER is None, reason="there is no chromium to measure texts")
def test_texts_do_not_overlap(tmp_path: Path, rows: list[dict[str, float]]):
    History(rows).plot(tmp_path / "h.svg")
    (tmp_path / "h.html").write_text(f"<body>{(tmp_path / 'h.svg').read_text()}{OVERLAPS}</body>")
    words = [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'user'}"]
    page = subprocess.run(
        [*words, "--dump-dom", f"file://{tmp_path / 'h.html'}"], capture_output=True, text=True, timeout=120
    )
    assert "<title>[]</title>" in page.stdout


def test_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(picture, "_pyplot", lambda: None)
    shown = History(ROWS).plot()
    assert shown._repr_svg_().startswith("<svg")
    with pytest.raises(ArgumentError, match=r"needs matplotlib(?s:.*)name a \.svg file"):
        History(ROWS).plot(tmp_path / "h.png")
    with pytest.raises(ArgumentError, match="is in no existing folder"):
        History(ROWS).plot(tmp_path / "none" / "h.svg")


@pytest.mark.skipif(not HAS_MATPLOTLIB, reason="matplotlib is not installed")
def test_with_matplotlib(tmp_path: Path):
    importlib.import_module("matplotlib").use("Agg")
    History(ROWS).plot(tmp_path / "h.png")
    assert (tmp_path / "h.png").read_bytes().startswith(b"\x89PNG")
    figure = History(ROWS).plot()
    assert [axis.get_title("left") for axis in figure.axes] == ["loss", "f<1"]
