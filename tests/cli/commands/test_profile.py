"""graphc profile: the table of kernels of targets and files."""

from __future__ import annotations

import json
from pathlib import Path

from graphc.cli import console
from graphc.cli.commands.profile import TRACED_CALLS
from tests.cli.conftest import Graphc

SHORT = ["--rounds", "3", "--seconds", "0.01"]


def test_table(net: Path, graphc: Graphc):
    done = graphc("profile", net, *SHORT)
    assert done.code == console.OK
    lines = done.out.splitlines()
    assert lines[0].startswith("Net: ") and lines[1].startswith("kernels: ") and " in all (" in lines[1]
    assert lines[2].startswith("clock: ") and lines[3].startswith("machine: peak ")
    head = lines[lines.index("") + 1]  # A busy machine gets a note before it.
    assert head.split()[:6] == ["call", "kernel", "kind", "time", "spread", "share"]
    assert any("contraction" in line and "fc" in line for line in lines)
    assert lines[-2].split()[0] in ("module", "fc", "(no")


def test_json_of_a_training_graph(models: Path, graphc: Graphc):
    done = graphc("profile", f"{models}:Net", "--input", "x:f32[2,6]", "--train", *SHORT, "--json")
    facts = json.loads(done.out)
    assert facts["machine"]["flops"] > 0 and facts["rounds"] == 3
    assert abs(sum(c["share"] for c in facts["calls"]) - 1) < 1e-9
    assert facts["kernels"] == sum(c["seconds"] for c in facts["calls"]) and facts["resolution"] > 0


def test_a_program_without_weights(net: Path, graphc: Graphc, tmp_path: Path):
    path = tmp_path / "net.gck"
    path.write_text(graphc("ir", net, "--stage", "lowered").out)
    assert graphc("profile", path, *SHORT).code == console.OK


def test_errors(tmp_path: Path, net: Path, graphc: Graphc):
    assert graphc("profile", tmp_path / "missing.gcm").code == console.USAGE
    assert graphc("profile", net, "--rounds", "0").code == console.USAGE


def test_trace(net: Path, graphc: Graphc, tmp_path: Path):
    path = tmp_path / "trace.json"
    done = graphc("profile", net, *SHORT, "--trace", path, "--json")
    assert done.code == console.OK
    events = [e for e in json.loads(path.read_text())["traceEvents"] if e["ph"] == "X"]
    calls, kernels = ([e for e in events if e["cat"] == kind] for kind in ("compiled", "kernel"))
    names = [call["report"]["kernel"] for call in json.loads(done.out)["calls"]]
    assert len(calls) == TRACED_CALLS and [k["name"] for k in kernels] == names * TRACED_CALLS
    end = {id(e): e["ts"] + e["dur"] for e in events}
    for number, call in enumerate(calls):
        inside = kernels[number * len(names) : (number + 1) * len(names)]
        assert all(call["ts"] <= k["ts"] and end[id(k)] <= end[id(call)] + 0.002 for k in inside)
    assert {"optimized", "scheduled", "llvm", "object"} <= {e["name"] for e in events if e["cat"] == "compile"}
    done = graphc("profile", net, *SHORT, "--trace", tmp_path / "none" / "trace.json")
    assert done.code != console.OK and "no folder" in done.err
