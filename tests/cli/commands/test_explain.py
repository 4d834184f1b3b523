"""graphc explain: what is printed for targets and files."""

from __future__ import annotations

import json
from pathlib import Path

from graphc.cli import console
from tests.cli.conftest import Graphc


def test_text(models: Path, graphc: Graphc):
    done = graphc("explain", f"{models}:Net", "--input", "x:f32[2,6]")
    assert done.code == console.OK
    lines = done.out.splitlines()
    assert lines[0].startswith("Net: ") and lines[1].startswith("memory: arena ")
    assert any(line.startswith("0. k0 contraction: matmul") for line in lines)
    assert any("from      fc" in line for line in lines)


def test_json_of_a_model_file_is_that_of_its_target(models: Path, net: Path, graphc: Graphc):
    results = [
        json.loads(graphc("explain", *a, "--json").out) for a in ([net], [f"{models}:Net", "--input", "x:f32[2,6]"])
    ]
    kinds = [[c["kind"] for c in facts["calls"]] for facts in results]
    assert kinds[0] == kinds[1] and "contraction" in kinds[0]
    assert results[0]["memory"] == results[1]["memory"]


def test_other_targets(net: Path, graphc: Graphc):
    lanes = {}
    for name in ("sse2", "avx512"):
        facts = json.loads(graphc("explain", net, "--target", name, "--json").out)
        lanes[name] = max(c["lanes"] for c in facts["calls"])
    assert lanes["sse2"] == 4


def test_errors(tmp_path: Path, models: Path, graphc: Graphc):
    assert graphc("explain", tmp_path / "missing.gcm").code == console.USAGE
    assert graphc("explain", f"{models}:Branching", "--input", "x:f32[2]").code == console.COMPILE


def test_a_precision_says_what_each_large_weight_is_stored_as(tmp_path: Path, graphc: Graphc):
    place = tmp_path / "wide.py"
    place.write_text("from graphc import nn\n\n\ndef Wide():\n    return nn.Linear(64, 96).eval()\n")
    given = ("explain", f"{place}:Wide", "--input", "input:f32[2,64]", "--precision", "int4")
    done = graphc(*given)
    assert done.code == console.OK and "f32[96,64] is stored as int4" in done.out
    (line,) = json.loads(graphc(*given, "--json").out)["weights"]
    assert f"weight {line}" in done.out.splitlines()


def test_functions_of_python_are_counted_and_drawn(tmp_path: Path, graphc: Graphc):
    place = tmp_path / "opaque.py"
    place.write_text(
        "import numpy as np\nimport graphc as gc\n\n\n@gc.opaque\ndef rounded(x):\n    return np.rint(x.numpy())\n\n\n"
        "def model(x):\n    return rounded(x * 2) + 1\n"
    )
    given = (f"{place}:model", "--input", "x:f32[3]")
    done = graphc("explain", *given)
    assert done.code == console.OK and "host calls: 1, in which native code waits for Python" in done.out
    assert "calls Python: rounded" in done.out
    assert graphc("viz", *given, "-o", tmp_path / "a.svg").code == console.OK
    assert "host_call" in (tmp_path / "a.svg").read_text()
    done = graphc("compile", *given, "-o", tmp_path / "a.gcm")
    assert done.code == console.COMPILE and "rounded runs in Python" in done.err
