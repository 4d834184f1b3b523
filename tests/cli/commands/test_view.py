"""graphc view: pages of targets and files, and what is refused."""

from __future__ import annotations

import json
import webbrowser
from pathlib import Path

import pytest

from graphc.cli import console
from graphc.cli.commands.view import JSON
from tests.cli.conftest import Graphc
from tests.cli.field_check import mismatches


def data_of(page: Path) -> dict:
    text = page.read_text()
    return json.loads(text.partition('id="data">')[2].partition("</script>")[0])


def test_pages_of_targets_and_files(models: Path, net: Path, tmp_path: Path, graphc: Graphc):
    (tmp_path / "net.gc").write_text(graphc("ir", net, "--stage", "traced").out)
    place = tmp_path / "net.html"
    for target in ([f"{models}:Net", "--input", "x:f32[2,6]"], [net], [tmp_path / "net.gc"]):
        done = graphc("view", *target, "-o", place, "--seconds", "0.01")
        assert done.code == 0 and "kernel calls" in done.out
        data = data_of(place)
        assert data["name"] == "Net" and data["profile"]["seconds"] > 0
        assert data["classes"].get("fc") == (None if place.with_name("net.gc") in target else "Linear")
    assert graphc("view", f"{models}:Net", "--input", "x:f32[2,6]", "-o", place, "--no-times").code == 0
    assert data_of(place)["classes"] == {"fc": "Linear", "drop": "Dropout"} and data_of(place)["profile"] is None


def test_equal_bytes_without_times(net: Path, tmp_path: Path, graphc: Graphc):
    first, second = tmp_path / "a.html", tmp_path / "b.html"
    for place in (first, second):
        assert graphc("view", net, "-o", place, "--no-times").code == 0
    assert first.read_bytes() == second.read_bytes()


def test_json_and_entries(net: Path, tmp_path: Path, graphc: Graphc):
    for times in (["--no-times"], ["--seconds", "0.01"]):
        done = graphc("view", net, "-o", tmp_path / "a.html", "--json", "--entry", "forward", *times)
        assert mismatches(json.loads(done.out), JSON) == []
    assert graphc("view", net, "-o", tmp_path / "a.html", "--entry", "none").code == console.USAGE


def test_a_page_is_opened(net: Path, tmp_path: Path, graphc: Graphc, monkeypatch: pytest.MonkeyPatch):
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    assert graphc("view", net, "-o", tmp_path / "a.html", "--no-times", "--open").code == 0
    assert opened == [(tmp_path / "a.html").as_uri()]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["net.gcm", "-o", "a.svg"], console.USAGE),
        (["net.gcm", "-o", "none/a.html"], console.USAGE),
        (["net.gck", "-o", "a.html"], console.USAGE),
        (["missing.gcm", "-o", "a.html"], console.USAGE),
        (["models.py:Net", "--input", "x:f32[2,6]", "--entry", "forward", "-o", "a.html"], console.USAGE),
        (["bad.gcm", "-o", "a.html"], console.DAMAGED),
        (["models.py:Branching", "--input", "x:f32[2]", "-o", "a.html"], console.COMPILE),
    ],
)
def test_errors(net: Path, monkeypatch: pytest.MonkeyPatch, graphc: Graphc, arguments: list[str], code: int):
    monkeypatch.chdir(net.parent)
    Path("net.gck").write_text(graphc("ir", net, "--stage", "lowered").out)
    Path("bad.gcm").write_bytes(b"bad")
    assert graphc("view", *arguments).code == code
    assert not Path("a.html").exists()
