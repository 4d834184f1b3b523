"""Facts of this machine: the record has what LLVM tells, doubt leads to LLVM, and LLVM is not imported in vain."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from llvmlite import binding

from graphc.compiler.cache import Cache
from graphc.files.container import write_sections
from graphc.files.manifest import to_json
from graphc.runtime.code import host_facts as module
from graphc.runtime.code.code_memory import can_link
from graphc.runtime.code.host_facts import HostFacts, host_facts, record_name
from tests.architecture.scan import ROOT

recorded = pytest.mark.skipif(not can_link(), reason="this machine has no records")
PROGRAM = (
    "import sys; from graphc.runtime.loader import host; from graphc.compiler.cache import versions;"
    "print(host(), sorted(versions().items())); print('llvmlite' in sys.modules)"
)


def facts_of(folder: Path | str, **environment: str) -> tuple[str, bool]:
    """Return the facts that a process finds, and whether it imports LLVM."""
    options = {"GRAPHC_CACHE": "on", "GRAPHC_CACHE_DIR": str(folder), **environment}
    command = [sys.executable, "-W", "error", "-c", PROGRAM]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **options}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    facts, imported = done.stdout.splitlines()
    return facts, imported == "True"


def records(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.suffix == ".host"]


def test_they_are_what_llvm_tells():
    facts = host_facts()
    assert (facts.triple, facts.cpu) == (binding.get_process_triple(), binding.get_host_cpu_name())
    assert {*facts.features} == {name for name, is_on in binding.get_host_cpu_features().items() if is_on}
    assert facts.llvm == ".".join(map(str, binding.llvm_version_info))


@recorded
def test_the_next_process_takes_the_record(tmp_path: Path):
    folder = tmp_path / "cache"
    first, imported = facts_of(folder)
    assert imported and [path.name for path in records(folder)] == [record_name()]
    assert facts_of(folder) == (first, False)
    assert facts_of(f"{tmp_path}/own:{folder}") == (first, False), "a shared folder serves as well"
    assert facts_of(folder, GRAPHC_CACHE="off") == (first, True)
    Cache(folder, 1 << 20).clear()
    assert not records(folder)


@recorded
def test_options_still_hide_features(tmp_path: Path):
    first, _ = facts_of(tmp_path, GRAPHC_MAX_ISA="sse2")
    assert "avx" not in first
    assert facts_of(tmp_path, GRAPHC_MAX_ISA="sse2") == (first, False)


def damaged(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)


def renamed(path: Path) -> None:
    other = replace(host_facts(), features=(*host_facts().features, "zz-tensor-cores"))
    write_sections(path, {"name": [b"0" * 64 + b".host"], "facts": [to_json(other)]})


def of_another_shape(path: Path) -> None:
    write_sections(path, {"name": [path.name.encode()], "facts": [b'{"triple": 5}']})


def empty(path: Path) -> None:
    path.write_bytes(b"")


def open_to_all(path: Path) -> None:
    path.chmod(0o666)


@recorded
@pytest.mark.parametrize("change", [damaged, renamed, of_another_shape, empty, open_to_all])
def test_a_record_that_cannot_be_trusted_is_replaced(change: Callable[[Path], None], tmp_path: Path):
    folder = tmp_path / "cache"
    first, _ = facts_of(folder)
    change(records(folder)[0])
    assert facts_of(folder) == (first, True)
    if change is not open_to_all:
        assert facts_of(folder) == (first, False)


@recorded
def test_a_folder_that_others_can_write_to_has_no_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = tmp_path / "cache"
    facts_of(folder)
    monkeypatch.setattr(module, "is_llvm_loaded", lambda: False)
    for is_open in (False, True):
        monkeypatch.setattr(module, "_known", [])
        folder.chmod(0o777 if is_open else 0o700)
        assert module.are_known([folder]) != is_open


@recorded
def test_another_processor_or_another_llvm_has_another_record(monkeypatch: pytest.MonkeyPatch):
    name = record_name.__wrapped__
    own = name()
    assert own == record_name()
    monkeypatch.setattr(module, "processor_identity", lambda: b"another one")
    other = name()
    monkeypatch.setattr(module, "_FILES", module._FILES[:1])
    assert len({own, other, name()}) == 3
    monkeypatch.setattr(module, "_FILES", ("missing.so",))
    assert name() == ""


def test_what_cannot_be_identified_is_asked_of_llvm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    facts = host_facts()
    monkeypatch.setattr(module, "_known", [])
    monkeypatch.setattr(module, "record_name", lambda: "")
    monkeypatch.setenv("GRAPHC_CACHE", "on")
    monkeypatch.setenv("GRAPHC_CACHE_DIR", str(tmp_path / "cache"))
    assert host_facts() == facts and isinstance(facts, HostFacts)
    assert not (tmp_path / "cache").exists() or not records(tmp_path / "cache")
