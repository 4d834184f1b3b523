"""graphc targets: the machines, and where their code runs."""

from __future__ import annotations

import json
import shutil
import sys

import pytest

from graphc.cli import console
from graphc.cli.commands import targets
from graphc.codegen.machine.target import host_target, named_targets
from tests.cli.conftest import Graphc
from tests.native import why_not_here


def test_all_targets_are_listed_with_what_runs_here(graphc: Graphc):
    done = graphc("targets", "--json")
    rows = {row["name"]: row for row in json.loads(done.out)["targets"]}
    assert done.code == console.OK and list(rows) == ["host", *named_targets()]
    assert rows["host"]["runs"] and not rows["host"]["reason"] and rows["host"]["cpu"] == host_target().cpu
    for name, target in named_targets().items():
        if target.gpu is None:
            assert rows[name]["reason"] == why_not_here(target)
            assert rows[name]["vector"] == target.vector_bytes
        assert rows[name]["runs"] == (not rows[name]["reason"])
        assert not (rows[name]["runs"] and rows[name]["emulator"])


@pytest.mark.parametrize("found", [True, False])
def test_an_emulator_is_named_where_it_is_installed(graphc: Graphc, monkeypatch: pytest.MonkeyPatch, found: bool):
    monkeypatch.setattr(targets, "runs_here", lambda spec: "it needs avx9")
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}" if found and name == "qemu-riscv64" else None)
    lines = {line.split()[0]: line for line in graphc("targets").out.splitlines()}
    assert lines["rv64gc"].endswith("by qemu-riscv64" if found else "elsewhere")
    assert lines["neon"].endswith("elsewhere") and lines["sm_90"].endswith("on a GPU")


@pytest.mark.parametrize(("name", "machine"), [("cortex-m55", "arm"), ("rv32imc", "riscv32")])
def test_code_for_microcontrollers_runs_on_an_emulated_system(
    graphc: Graphc, monkeypatch: pytest.MonkeyPatch, name: str, machine: str
):
    monkeypatch.setattr(
        shutil, "which", lambda program: f"/bin/{program}" if program.startswith("qemu-system") else None
    )
    lines = {line.split()[0]: line for line in graphc("targets").out.splitlines()}
    assert lines[name].endswith(f"by qemu-system-{machine}")


@pytest.mark.parametrize(("program", "state"), [("wine64", "by wine64"), ("wine", "by wine"), ("", "elsewhere")])
def test_code_for_windows_runs_under_wine(graphc: Graphc, monkeypatch: pytest.MonkeyPatch, program: str, state: str):
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}" if name == program else None)
    lines = {line.split()[0]: line for line in graphc("targets").out.splitlines()}
    assert lines["windows-avx2"].endswith(state)


def test_no_program_runs_code_for_macos(graphc: Graphc, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    lines = {line.split()[0]: line for line in graphc("targets").out.splitlines()}
    assert lines["macos-neon"].endswith("elsewhere") and lines["macos-avx2"].endswith("elsewhere")


def test_the_table_is_as_wide_as_a_terminal_shows(graphc: Graphc):
    lines = graphc("targets").out.splitlines()
    assert len(lines) == 2 + len(named_targets()) and max(map(len, lines)) < 140
    assert lines[1].endswith("here") or sys.platform != "linux"
