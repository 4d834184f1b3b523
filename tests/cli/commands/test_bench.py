"""graphc bench: figures of the call and of each stage."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphc.cli import console
from graphc.cli.commands.bench import measure
from graphc.cli.latency import Pace
from tests.cli.conftest import Graphc

SHORT = ["--rounds", "3", "--seconds", "0.01"]


def test_figures(net: Path, graphc: Graphc):
    done = graphc("bench", net, *SHORT)
    assert done.code == console.OK
    lines = done.out.splitlines()
    assert lines[0] == "Net(x: f32[2,6]) -> (output: f32[2,4])"
    assert lines[1].split() == ["p50", "p90", "p99", "p99.9", "min", "max", "mean", "calls/s", "calls"]
    first = [line.split()[0] for line in lines[2:]]
    assert first == ["graphc", "load", "optimized", "lowered", "scheduled", "llvm", "object"]


def test_json(net: Path, graphc: Graphc):
    facts = json.loads(graphc("bench", net, *SHORT, "--json").out)
    call = facts["call"]
    assert 0 < call["min"] <= call["p10"] <= call["p50"] <= call["p90"] <= call["p99"] <= call["p99.9"] <= call["max"]
    assert call["median"] == call["p50"] and call["calls"] >= 3 and call["throughput"] > 0
    assert (facts["rounds"], facts["model"], facts["streams"], facts["rate"]) == (3, "Net", 1, None)
    assert 0 < sum(facts["stages"].values()) < facts["load"]


def test_code_from_the_file_has_no_stages(models: Path, tmp_path: Path, graphc: Graphc):
    path = tmp_path / "n.gcm"
    graphc("compile", f"{models}:double", "--input", "x:f32[2]", "-o", path, "--native")
    assert json.loads(graphc("bench", path, *SHORT, "--trust", "--json").out)["stages"] == {}


def test_given_inputs(two: Path, graphc: Graphc):
    assert graphc("bench", two, *SHORT, "--input", "a=ones", "--input", "b=zeros").code == console.OK
    assert graphc("bench", two, *SHORT, "--input", "a=ones").code == console.MISMATCH


@pytest.mark.parametrize("arguments", [["--rounds", "0"], ["--rounds", "x"], ["--seconds", "0"], ["--seconds", "nan"]])
def test_wrong_numbers(net: Path, graphc: Graphc, arguments: list[str]):
    assert graphc("bench", net, *arguments).code == console.USAGE


def test_missing_and_damaged_files(tmp_path: Path, graphc: Graphc):
    assert graphc("bench", tmp_path / "missing.gcm").code == console.USAGE
    (tmp_path / "bad.gcm").write_bytes(b"bad")
    assert graphc("bench", tmp_path / "bad.gcm").code == console.DAMAGED


def test_subjects_take_turns():
    order: list[str] = []
    subjects = [[lambda name=name: order.append(name)] for name in "ab"]
    found = measure(subjects, 3, 1e-9, 0.0, Pace())
    assert "".join(order) == "aabb" + "ab" * 3
    assert [len(samples.medians) for samples in found] == [3, 3]


def test_bounds_that_do_not_hold_end_with_code_6(net: Path, graphc: Graphc):
    good = graphc("bench", net, *SHORT, "--assert", "p50<1s", "--assert", "throughput>0.1")
    assert good.code == console.OK and good.out.count(", holds") == 2
    bad = graphc("bench", net, *SHORT, "--assert", "p50<1s", "--assert", "max<=0ns", "--json")
    facts = json.loads(bad.out)
    assert bad.code == console.WRONG and [a["holds"] for a in facts["asserts"]] == [True, False]
    assert facts["asserts"][1] == {"text": "max<=0ns", "value": facts["call"]["max"], "holds": False}
    assert graphc("bench", net, "--assert", "p50<1").code == console.USAGE


@pytest.mark.parametrize("more", [["--rate", "5"], ["--streams", "2"], ["--assert", "p50<1s"], ["--compare", "a.gcm"]])
def test_what_is_said_of_calls_does_not_go_with_steps(net: Path, graphc: Graphc, more: list[str]):
    done = graphc("bench", net, "--breakdown", *more)
    assert done.code == console.USAGE and "--breakdown measures steps, not calls" in done.err


def test_calls_at_a_rate(net: Path, graphc: Graphc):
    facts = json.loads(graphc("bench", net, "--rate", "1000", "--seconds", "0.1", "--streams", "2", "--json").out)
    assert facts["call"]["calls"] == 100 and facts["streams"] == 2 and facts["rate"] == 1000
    told = graphc("bench", net, "--rate", "1e9", "--seconds", "0.001", "--warmup", "0")
    assert told.code == console.OK and "calls were due and never made" in told.out


def test_another_file_and_earlier_figures_beside_it(net: Path, graphc: Graphc):
    before = net.with_name("before.json")
    before.write_text(graphc("bench", net, *SHORT, "--json").out)
    done = graphc("bench", net, *SHORT, "--compare", net, "--compare", before)
    assert done.code == console.OK
    assert "p50 / graphc's" in done.out and "measured before" in done.out
    facts = json.loads(graphc("bench", net, *SHORT, "--compare", net, "--compare", before, "--json").out)
    first, second = facts["compare"]
    assert first["difference"] == 0 and first["ratio"]["low"] <= first["ratio"]["median"] <= first["ratio"]["high"]
    assert second["ratio"]["low"] is None and second["name"] == str(before)


def test_the_only_entry_has_a_name(net: Path, graphc: Graphc):
    assert graphc("bench", net, *SHORT, "--entry", "forward").code == console.OK
    done = graphc("bench", net, *SHORT, "--entry", "decode")
    assert done.code == console.USAGE and "--entry forward" in done.err


def test_named_dimensions_through_the_commands(models: Path, tmp_path: Path, graphc: Graphc):
    path = tmp_path / "any.gcm"
    made = graphc("compile", f"{models}:Net", "--input", "x:f32[batch=1..64,6]", "-o", path)
    assert made.code == console.OK and "Net(x: f32[batch,6]) -> (output: f32[batch,4])" in made.out
    shown = graphc("inspect", path).out
    assert "dimension  batch: 1 to 64, expected 32" in shown
    assert json.loads(graphc("inspect", path, "--json").out)["dims"] == [
        {"name": "batch", "min": 1, "max": 64, "hint": 32}
    ]
    assert "output: f32[3,4]" in graphc("run", path, "--input", "x=ones", "--shape", "batch=3").out
    assert "output: f32[2,4]" in graphc("run", path, "--input", f"x={[[1.0] * 6] * 2}").out
    assert graphc("run", path, "--input", "x=ones", "--shape", "batch=65").code == 2
    assert graphc("run", path, "--input", "x=ones", "--shape", "batch=1,2").code == 2
    for command in (["run", path, "--input", "x=ones"], ["bench", path, *SHORT]):
        twice = graphc(*command, "--shape", "batch=3", "--shape", "batch=4")
        assert twice.code == 2 and "--shape batch=... is given twice" in twice.err
    timed = json.loads(graphc("bench", path, *SHORT, "--shape", "batch=1,8,32", "--json").out)
    assert [call["sizes"] for call in timed["calls"]] == [{"batch": 1}, {"batch": 8}, {"batch": 32}]
    assert "graphc batch=8" in graphc("bench", path, *SHORT, "--shape", "batch=1,8").out
    assert "graphc batch=32" in graphc("bench", path, *SHORT).out
    assert json.loads(graphc("bench", path, *SHORT, "--json").out)["sizes"] == {"batch": 32}
    given = graphc("bench", path, *SHORT, "--input", "x=[[1,2,3,4,5,6]]", "--json").out
    assert json.loads(given)["sizes"] == {"batch": 1}
    assert graphc("bench", path, *SHORT, "--breakdown").out.startswith("at batch=32")
    assert graphc("profile", path, "--seconds", "0.01").out.startswith("Net batch=32: ")
    filled = graphc("run", path, "--fill", "ones", "--json")
    assert json.loads(filled.out)["sizes"] == {"batch": 32} and "batch=32; --shape" in filled.err
    assert "note" not in graphc("run", path, "--fill", "ones", "--shape", "batch=2").err
    assert "dim batch = 1..64 hint 32" in graphc("ir", path, "--stage", "traced").out
