"""graphc selftest: sample calls by each code, what is wrong, and files without any."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.cli import console
from graphc.cli.commands import selftest
from graphc.files import model_content
from tests.cli.conftest import Graphc
from tests.cli.field_check import mismatches


@pytest.fixture
def file(tmp_path: Path) -> Path:
    gc.export(nn.Linear(3, 2), gc.zeros(4, 3), path=tmp_path / "net.gcm", golden=2, native=True)
    return tmp_path / "net.gcm"


def test_a_file_that_computes_what_it_should(file: Path, graphc: Graphc):
    done = graphc("selftest", file)
    assert done.code == console.OK and done.out.endswith("\ngood\n")
    assert "ok  2 calls" in done.out and "not run: code of the file runs only with trust=True" in done.out
    assert "not run" not in graphc("selftest", file, "--trust").out


def test_the_fields_of_its_json(file: Path, graphc: Graphc):
    found = json.loads(graphc("selftest", file, "--trust", "--json").out)
    assert mismatches(found, selftest.JSON) == []
    assert found["good"] and [case["calls"] for case in found["cases"]] == [2, 2]


def test_another_output_is_wrong(file: Path, graphc: Graphc):
    stored = model_content.load(file)
    sample = stored.first.golden[0]
    wrong = sample._replace(outputs=tuple(np.asarray(a) + 1 for a in sample.outputs))
    entry = replace(stored.first, golden=(wrong,))
    model_content.save(file, replace(stored, entries=(entry,)))
    done = graphc("selftest", file)
    assert done.code == console.WRONG and done.out.endswith("\nBAD\n")
    assert graphc("selftest", file, "--atol", 2).code == console.OK


def test_files_without_sample_calls(tmp_path: Path, graphc: Graphc):
    gc.export(nn.Linear(3, 2), gc.zeros(4, 3), path=tmp_path / "a.gcm")
    done = graphc("selftest", tmp_path / "a.gcm")
    assert done.code == console.USAGE and "golden=True" in done.err
    assert graphc("selftest", tmp_path / "none.gcm").code == console.USAGE
