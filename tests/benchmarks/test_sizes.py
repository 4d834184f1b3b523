"""Streams of mixed sizes: contenders agree, and the table prints the measurements."""

from __future__ import annotations

import json
from typing import Any

import pytest

from benchmarks import sizes
from benchmarks.harness.timing import find_library
from benchmarks.sizes import CASES, Case


def build(nn: Any) -> Any:
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))


SMALL = Case("small", build, ("batch", 8), {"batch": (1, 20, 1)})


def test_sizes_lie_in_their_ranges_and_are_multiples():
    case = CASES["unet"]
    drawn = case.limits(6)
    assert drawn[0] == {"high": 32, "wide": 32} and drawn[1] == {"high": 256, "wide": 256} and len(drawn) == 6
    assert all(32 <= n <= 256 and n % 16 == 0 for d in drawn for n in d.values())
    assert case.input(drawn[2]).shape == (1, 3, drawn[2]["high"], drawn[2]["wide"])


def test_a_stream_is_measured_and_printed():
    result = sizes.run_stream(SMALL, (), 5)
    assert set(result) == {"graphc"} and len(result["graphc"]["rounds_s"]) == 3
    assert result["graphc"]["first_stream_s"] >= result["graphc"]["first_call_s"] > 0
    assert "| small | graphc |" in sizes.format_streams({"small": result}, ())


def test_peers_agree():
    pytest.importorskip("torch")
    peers = [peer for peer in sizes.PEERS[1:] if find_library(peer)]
    result = sizes.run_stream(SMALL, peers, 3)
    assert all("problem" not in row and row["error"] < 1e-5 for row in result.values()), result


def test_one_program_is_compared_with_that_of_each_size():
    rows = sizes.run_fixed(SMALL, SMALL.limits(3), 2, 0.001)
    assert [row["sizes"]["batch"] for row in rows][:2] == [1, 20] and len(rows) == 3
    assert all(row["error"] < 1e-5 and row["ratio"] > 0 for row in rows)
    text = sizes.format_fixed({"small": rows})
    assert text.count("| small |") == 5 and "| small | code, bytes (0 kernels in versions) |" in text


def test_the_first_call_is_that_of_the_expected_sizes():
    (row, *_) = sizes.run_fixed(SMALL, [{"batch": 7}], 1, 0.001)
    assert sizes.Setting(CASES["unet"]).expected == {"high": 256, "wide": 256}
    assert sizes.Setting(SMALL).expected == {"batch": 20}
    assert min(row[name] for name in ("compile_s", "fixed_compile_s", "code", "fixed_code")) > 0


def test_calls_of_the_same_size_and_of_others_are_measured():
    figures = sizes.run_calls(1)
    assert len(figures) == 3 and all(us > 0 for row in figures.values() for us in row.values())
    text = sizes.format_calls({"compiled": {"same_us": 1.0, "other_us": 2.0}})
    assert "| compiled | 1.00 | 2.00 |" in text


def test_what_cannot_be_run_is_told():
    assert "ValueError: no" in sizes.format_streams({"small": {"graphc": {"problem": "ValueError: no"}}}, ())


def test_the_command_prints_json(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sizes.CASES, "small", SMALL)
    monkeypatch.setattr("benchmarks.sizes.pin", lambda cores: None)
    assert sizes.main(["--only", "small", "--count", "3", "--peers", "", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["small"]["graphc"]["steady_s"] > 0


def test_the_sizes_of_a_comparison_are_named(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sizes, "CASES", {"small": SMALL, "small_too": SMALL})
    monkeypatch.setattr("benchmarks.sizes.pin", lambda cores: None)
    options = ["--only", "small", "--fixed", "--sizes", "7", "3", "--rounds", "1", "--seconds", "0.001", "--json"]
    assert sizes.main(options) == 0
    report = json.loads(capsys.readouterr().out)
    assert [row["sizes"] for row in report.pop("small")] == [{"batch": 7}, {"batch": 3}] and not report
    assert CASES["unet"].read("64x176") == {"high": 64, "wide": 176}


@pytest.mark.parametrize("text", ["0", "21", "3x3", "many"])
def test_sizes_that_a_case_has_not_are_refused(
    text: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sizes, "CASES", {"small": SMALL})
    monkeypatch.setattr("benchmarks.sizes.pin", lambda cores: None)
    with pytest.raises(SystemExit) as stopped:
        sizes.main(["--fixed", "--sizes", text])
    assert stopped.value.code == 2 and "--sizes: " in capsys.readouterr().err
    with pytest.raises(SystemExit):
        sizes.main(["--sizes", "3"])
