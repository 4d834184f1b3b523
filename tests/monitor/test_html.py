"""The page: complete without network, renewed while it runs, texts escaped."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from graphc.errors import ArgumentError
from graphc.monitor import HtmlWriter
from graphc.monitor.writer import make_histogram


def fill(writer: HtmlWriter, steps: int = 3) -> None:
    for step in range(steps):
        writer.scalar("fc/mean", 1.0 / (step + 1), step)
        writer.scalar("loss <&>", float(step), step)
        writer.histogram("fc/values", make_histogram(np.arange(5.0)), step)
    writer.image("digit", np.zeros((2, 2, 3), np.uint8), steps)


def data_of(page: str) -> list[dict]:
    return json.loads(page.partition('id="data">')[2].partition("</script>")[0])


def test_everything_is_on_the_page(tmp_path: Path):
    writer = HtmlWriter(tmp_path / "a.html", title="a & b")
    fill(writer)
    writer.close()
    text = (tmp_path / "a.html").read_text()
    assert (
        text.count("data-name=") == 2
        and text.count('<svg viewBox="0 0 420 180" role="img" aria-label="fc/values"') == 1
    )
    assert text.count("data:image/png;base64,") == 1
    assert "loss &lt;&amp;&gt;" in text
    assert "<title>a &amp; b</title>" in text
    (run,) = data_of(text)
    assert run["title"] == "a & b" and run["scalars"]["loss <&>"] == [[0, 0.0], [1, 1.0], [2, 2.0]]
    assert not re.findall(r"https?://|@import|<script src|<link", text)
    assert "http-equiv" not in text
    assert os.listdir(tmp_path) == ["a.html"]


def test_values_that_are_no_numbers_and_texts_that_end_scripts(tmp_path: Path):
    writer = HtmlWriter(tmp_path / "a.html")
    for step, value in enumerate([1.0, float("nan"), float("inf")]):
        writer.scalar("</script>", value, step)
    assert data_of(writer.page())[0]["scalars"] == {"</script>": [[0, 1.0], [1, None], [2, None]]}


def test_another_run_beside(tmp_path: Path):
    first = HtmlWriter(tmp_path / "a.html", title="first")
    fill(first, 5)
    first.close()
    second = HtmlWriter(tmp_path / "b.html", title="second", beside=tmp_path / "a.html")
    fill(second)
    runs = data_of(second.page())
    assert [run["title"] for run in runs] == ["second", "first"]
    assert [len(run["scalars"]["fc/mean"]) for run in runs] == [3, 5]
    (tmp_path / "c.html").write_text("<p>")
    with pytest.raises(ArgumentError, match="not a page of an HtmlWriter"):
        HtmlWriter(tmp_path / "d.html", beside=tmp_path / "c.html")


BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
REPORT = """<script>
addEventListener("error", e => { document.title = "error " + e.message; });
addEventListener("load", () => {
  const chart = [...document.querySelectorAll(".chart")].find(c => c.dataset.name === "loss");
  const box = chart.getBoundingClientRect();
  const texts = [...chart.querySelectorAll("text")].map(e => [e.textContent, e.getBoundingClientRect()]);
  const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 2 && b.top < a.bottom - 2;
  const overlaps = texts.filter(([, a], i) => texts.slice(i + 1).some(([, b]) => meet(a, b))).map(([t]) => t);
  const note = chart.parentNode.querySelector("span"), before = note.textContent;
  const place = { clientX: box.left + box.width * 58 / 420, clientY: box.top + 40 };
  chart.dispatchEvent(new PointerEvent("pointermove", place));
  document.title = "found " + JSON.stringify({
    texts: texts.map(([t]) => t), overlaps, before, hovered: note.textContent,
    lines: chart.querySelectorAll("path.line").length, faint: chart.querySelectorAll(".faint").length,
    right: Math.max(...[...document.querySelectorAll(".card")].map(c => c.getBoundingClientRect().right)),
    runs: [...document.querySelectorAll("#runs i")].map(e => e.textContent) });
});
</script>"""


def shown(page: Path, address: str = "", width: int = 1400) -> dict:
    """Return the contents of the chart "loss" that a browser shows at an address."""
    text = page.read_text()
    page.write_text(text.replace("</body>", f"{REPORT}</body>"))
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={page.parent / 'profile'}"]
    command += ["--virtual-time-budget=2000", f"--window-size={width},900", "--dump-dom", f"{page.as_uri()}#{address}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    page.write_text(text)
    result = re.search(r"<title>found (.*?)</title>", done.stdout, re.DOTALL)
    assert result, done.stdout[:300]
    return json.loads(result[1])


@pytest.mark.skipif(BROWSER is None, reason="there is no chromium to open the page")
def test_charts_in_a_browser(tmp_path: Path):
    for name, beside in (("first", None), ("second", tmp_path / "first.html")):
        with_title = HtmlWriter(tmp_path / f"{name}.html", title=name, beside=beside)
        for step in range(4):
            with_title.scalar("loss", 10.0 ** (-step) * (2 if beside else 1), step)
        with_title.close()
    alone = shown(tmp_path / "first.html")
    assert alone["texts"][-4:] == ["0", "1", "2", "3"] and alone["lines"] == 1 and not alone["overlaps"]
    assert (alone["before"], alone["hovered"], alone["runs"]) == ("0.001 at step 3", "1 at step 0", [])
    both = shown(tmp_path / "second.html", "smooth=0.5&log=1", width=600)
    assert both["texts"][:4] == ["0.001", "0.01", "0.1", "1"] and not both["overlaps"]
    assert (both["lines"], both["faint"], both["runs"]) == (4, 2, ["second", "first"])
    assert both["hovered"] == "second: 2 at step 0 · first: 1 at step 0" and both["right"] <= 600


def test_renewed_while_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    writer = HtmlWriter(tmp_path / "a.html", seconds=5)
    writer.scalar("loss", 1.0, 0)
    writer.flush()
    assert '<meta http-equiv="refresh" content="5">' in (tmp_path / "a.html").read_text()
    writer.scalar("loss", 2.0, 1)
    now[0] += 4
    writer.flush()
    assert len(data_of((tmp_path / "a.html").read_text())[0]["scalars"]["loss"]) == 1
    now[0] += 2
    writer.flush()
    assert len(data_of((tmp_path / "a.html").read_text())[0]["scalars"]["loss"]) == 2


def test_long_runs_keep_pages_small(tmp_path: Path):
    writer = HtmlWriter(tmp_path / "a.html")
    for step in range(3000):
        writer.scalar("loss", float(step), step)
        writer.histogram("w", make_histogram(np.arange(3.0)), step)
    assert len(writer._tables["w"][0]) <= 240
    assert len(writer.page()) < 1_000_000


def test_nothing_taken_and_wrong_arguments(tmp_path: Path):
    HtmlWriter(tmp_path / "a.html").close()
    assert "<body>" in (tmp_path / "a.html").read_text()
    with pytest.raises(ArgumentError):
        HtmlWriter(tmp_path / "a.html", seconds=-1)
