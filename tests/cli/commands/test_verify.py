"""graphc verify: one line for each file, folders, and the exit code."""

from __future__ import annotations

import json
from pathlib import Path

import graphc as gc
from graphc import nn
from graphc.cli import console
from graphc.cli.commands import verify
from tests.cli.conftest import Graphc
from tests.cli.field_check import mismatches


def make(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        gc.export(nn.Linear(3, 2), gc.zeros(4, 3), path=folder / name)


def test_whole_files_are_good(tmp_path: Path, graphc: Graphc):
    make(tmp_path, "a.gcm")
    done = graphc("verify", tmp_path / "a.gcm")
    assert done.code == console.OK
    assert done.out.startswith(f"{tmp_path}/a.gcm: good: entry forward; 2 weights, 32 B\n  warning: ")


def test_a_damaged_file_among_others(tmp_path: Path, graphc: Graphc):
    make(tmp_path, "b.gcm", "a.gcm", "sub/c.gcm")
    (tmp_path / "b.gcm").write_bytes((tmp_path / "b.gcm").read_bytes()[:-1])
    (tmp_path / "notes.txt").write_text("no model")
    done = graphc("verify", tmp_path)
    assert done.code == console.DAMAGED
    assert [line.split(": ")[1] for line in done.out.splitlines() if line[0] != " "] == ["good", "BAD", "good"]
    assert "truncated" in done.out


def test_the_fields_of_its_json(tmp_path: Path, graphc: Graphc):
    make(tmp_path, "a.gcm")
    gc.export(nn.Linear(3, 2), gc.zeros(4, 3), path=tmp_path / "n.gcm", native=True)
    done = graphc("verify", tmp_path, "--json")
    found = json.loads(done.out)
    assert mismatches(found, verify.JSON) == []
    assert [f["good"] for f in found["files"]] == [True, True]
    assert "native codes, of which 1 can run here" in graphc("verify", tmp_path / "n.gcm").out


def test_what_is_not_there_is_a_usage_error(tmp_path: Path, graphc: Graphc):
    assert graphc("verify", tmp_path / "none.gcm").code == console.USAGE
    done = graphc("verify", tmp_path)
    assert done.code == console.USAGE and "no model file" in done.err
