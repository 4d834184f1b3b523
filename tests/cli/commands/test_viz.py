"""``graphc viz``: pictures of targets, model files and graph texts."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphc.cli import console
from tests.cli.conftest import Graphc


def test_targets_and_files(models: Path, net: Path, tmp_path: Path, graphc: Graphc):
    text = graphc("ir", net, "--stage", "traced").out
    (tmp_path / "net.gc").write_text(text)
    for target in ([f"{models}:Net", "--input", "x:f32[2,6]"], [net], [tmp_path / "net.gc"]):
        done = graphc("viz", *target, "-o", tmp_path / "a.svg")
        assert done.code == 0
        assert "nodes, " in done.out
        assert ">weight  " in (tmp_path / "a.svg").read_text()
        assert ">matmul<" not in (tmp_path / "a.svg").read_text()
        assert graphc("viz", *target, "--detail", "-o", tmp_path / "b.svg").code == 0
        assert ">matmul<" in (tmp_path / "b.svg").read_text()


def test_pages_depth_and_autograd(models: Path, tmp_path: Path, graphc: Graphc):
    target = [f"{models}:Net", "--input", "x:f32[2,6]"]
    assert graphc("viz", *target, "-o", tmp_path / "a.html").code == 0
    assert "<script>" in (tmp_path / "a.html").read_text()
    assert graphc("viz", *target, "--depth", 1, "-o", tmp_path / "b.svg").code == 0
    assert ">matmul<" not in (tmp_path / "b.svg").read_text()
    assert graphc("viz", *target, "--autograd", "--detail", "-o", tmp_path / "c.svg").code == 0
    assert ">Matmul<" in (tmp_path / "c.svg").read_text()
    assert ">weight  " in (tmp_path / "c.svg").read_text()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["net.gcm", "-o", "a.pdf"], console.USAGE),
        (["net.gcm", "-o", "none/a.svg"], console.USAGE),
        (["net.gcm", "-o", "a.svg", "--depth", "0"], console.USAGE),
        (["net.gcm", "-o", "a.svg", "--autograd"], console.USAGE),
        (["missing.gcm", "-o", "a.svg"], console.USAGE),
        (["net.txt", "-o", "a.svg"], console.USAGE),
        (["bad.gcm", "-o", "a.svg"], console.DAMAGED),
        (["bad.gc", "-o", "a.svg"], console.COMPILE),
        (["models.py:Branching", "--input", "x:f32[2]", "-o", "a.svg"], console.COMPILE),
        (["models.py:number", "-o", "a.svg"], console.USAGE),
    ],
)
def test_errors(net: Path, monkeypatch: pytest.MonkeyPatch, graphc: Graphc, arguments: list[str], code: int):
    monkeypatch.chdir(net.parent)
    Path("bad.gcm").write_bytes(b"bad")
    Path("bad.gc").write_text("bad")
    assert graphc("viz", *arguments).code == code
    assert not Path("a.svg").exists()
