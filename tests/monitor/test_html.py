"""The page: complete without network, renewed while it runs, texts escaped."""

from __future__ import annotations

import os
import re
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
        writer.histogram("fc", make_histogram(np.arange(5.0)), step)
    writer.image("digit", np.zeros((2, 2, 3), np.uint8), steps)


def test_everything_is_on_the_page(tmp_path: Path):
    writer = HtmlWriter(tmp_path / "a.html", title="a & b")
    fill(writer)
    writer.close()
    text = (tmp_path / "a.html").read_text()
    assert text.count("<svg") == 3
    assert text.count("data:image/png;base64,") == 1
    assert "loss &lt;&amp;&gt;" in text
    assert "<title>a &amp; b</title>" in text
    assert "0.33333 at step 2" in text
    assert not re.findall(r"https?://|@import|<script|<link", text)
    assert "http-equiv" not in text
    assert os.listdir(tmp_path) == ["a.html"]


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
    assert "at step 0" in (tmp_path / "a.html").read_text()
    now[0] += 2
    writer.flush()
    assert "at step 1" in (tmp_path / "a.html").read_text()


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
