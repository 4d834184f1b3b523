"""LLVM text to object code and assembly, and the refusal of text that is wrong."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from graphc.codegen.llvm import build
from graphc.codegen.llvm.build import build_object, emit_assembly
from graphc.codegen.machine.target import Target, host_target, named_targets, target_named
from graphc.errors import CompileError
from tests.base.test_locks import holding, in_child

TEXT = "define i64 @twice(i64 %x) {\n  %y = add i64 %x, %x\n  ret i64 %y\n}\n"


@pytest.mark.parametrize("name", [name for name, target in named_targets().items() if target.gpu is None])
def test_objects_and_assembly_of_every_target(name: str):
    target = target_named(name)
    magic = b"\0asm" if target.is_wasm else b"\x64\x86" if target.is_windows else b"\x7fELF"
    magic = b"\xcf\xfa\xed\xfe" if target.is_macos else magic
    assert build_object(TEXT, target).startswith(magic)
    assert "twice:" in emit_assembly(TEXT, target)


def test_equal_text_gives_equal_bytes():
    assert build_object(TEXT, host_target()) == build_object(TEXT, host_target())


@pytest.mark.parametrize("text", ["define i64 @f( {", "define i64 @f(i64 %x) {\n  ret i32 0\n}\n"])
def test_wrong_text(text: str):
    with pytest.raises(CompileError, match="LLVM refused the emitted text"):
        build_object(text, host_target())


def test_several_threads_build_at_once():
    with ThreadPoolExecutor(4) as pool:
        found = set(pool.map(lambda _: build_object(TEXT, host_target()), range(16)))
    assert len(found) == 1


NAMES = ["avx2", "neon", "sse2", "rv64gc"]


@pytest.fixture
def switches(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """LLVM's switches that skip a pass now."""
    on: set[str] = set()
    set_option = build.binding.set_option

    def record(program: str, option: str) -> None:
        name, value = option.split("=")
        skips = value == ("true" if name.startswith("-disable-") else "false")
        (on.add if skips else on.discard)(name)
        set_option(program, option)

    monkeypatch.setattr(build.binding, "set_option", record)
    return on


def test_passes_are_skipped_where_they_were_measured(monkeypatch: pytest.MonkeyPatch, switches: set[str]):
    """The switches are those of the process, so builds for x86-64 and for others take turns."""
    original, seen = build._build, list[tuple[Target, set[str]]]()

    def watched(text: str, target: Target, quick: bool) -> bytes:
        seen.append((target, {*switches}))
        code = original(text, target, quick)
        seen.append((target, {*switches}))
        return code

    monkeypatch.setattr(build, "_build", watched)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: build_object(TEXT, target_named(NAMES[i % 4])), range(64)))
    assert len(seen) == 128 and not switches
    assert all(on == {*target.llvm_switches} for target, on in seen)
    assert [bool(target_named(name).llvm_switches) for name in NAMES] == [True, False, True, False]


def test_a_child_builds_for_another_architecture_than_threads_of_the_parent(switches: set[str]):
    thread, leave = holding(lambda: build._switches.of(target_named("avx2")))
    try:
        assert switches and in_child(lambda: not switches)
        assert in_child(lambda: build_object(TEXT, target_named("neon")).startswith(b"\x7fELF"))
    finally:
        leave.set()
        thread.join()
