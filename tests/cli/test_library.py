"""graphc compile to C libraries: files, what it says of them, and arguments that do not go together."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphc.c_library import systems, wasm
from graphc.cli import console, library
from tests.cli.conftest import Graphc


def test_its_kinds_are_those_of_build_library():
    assert library.KINDS == systems.KINDS and library.WASM_KINDS == wasm.WASM_KINDS


def test_a_library_is_written_with_what_emit_names(models: Path, tmp_path: Path, graphc: Graphc):
    path = tmp_path / "net.so"
    arguments = ["compile", f"{models}:Net", "--input", "x:f32[2,6]", "-o", path]
    done = graphc(*arguments, "--emit", "so,a,o,h,c,py")
    assert done.code == console.OK
    assert {p.name for p in tmp_path.glob("net*")} >= {"net.so", "net.a", "net.o", "net.h", "net.c", "net_loader.py"}
    assert f"{path}: " in done.out and "net_run: arena " in done.out and "code " in done.err
    facts = json.loads(graphc(*arguments, "--json", "--realtime", "--strict-order", "--name", "other").out)
    assert set(facts["files"]) == {"so", "h"} and facts["entries"]["run"]["function"] == "other_run"
    assert facts["realtime"]["run"]["stack_bytes"] > 0


def test_bindings_are_files_and_folders_with_their_sizes(models: Path, tmp_path: Path, graphc: Graphc):
    path = tmp_path / "net.so"
    arguments = ["compile", f"{models}:Net", "--input", "x:f32[2,6]", "-o", path, "--emit", "so,hpp,rs,go", "--json"]
    files = json.loads(graphc(*arguments).out)["files"]
    assert [Path(f["path"]).name for f in files.values()] == ["net.so", "net.hpp", "net-rs", "net-go"]
    assert files["rs"]["bytes"] > (tmp_path / "net-rs" / "libnet.a").stat().st_size


def test_a_library_is_made_of_a_model_file(models: Path, net: Path, tmp_path: Path, graphc: Graphc):
    assert graphc("compile", f"{models}:Net", "--input", "x:f32[2,6]", "-o", net).code == console.OK
    path = tmp_path / "made.so"
    assert graphc("compile", net, "-o", path, "--weights-beside").code == console.OK
    assert path.exists() and path.with_suffix(".weights").exists()
    done = graphc("compile", net, "-o", path, "--input", "x:f32[2,6]")
    assert done.code == console.USAGE and "--input applies only to Python models" in done.err


@pytest.mark.parametrize(
    ("output", "arguments", "message"),
    [
        ("net.so", ["--native"], "--native does not apply to C libraries"),
        ("net.so", ["--opset", "20"], "--opset does not apply to C libraries"),
        ("net.gcm", ["--threads"], "--threads applies only to C libraries"),
        ("net.gcm", ["--entry", "a"], "--entry applies only to C libraries"),
        ("net.so", ["--emit", "so,exe"], "unknown kind of file 'exe'"),
        ("net.wasm", ["--native"], "--native does not apply to C libraries"),
    ],
)
def test_arguments_of_other_files_are_refused(
    output: str, arguments: list[str], message: str, models: Path, tmp_path: Path, graphc: Graphc
):
    done = graphc("compile", f"{models}:Net", "--input", "x:f32[2,6]", "-o", tmp_path / output, *arguments)
    assert done.code == console.USAGE and message in done.err


def test_webassembly_is_written_for_its_target(models: Path, tmp_path: Path, graphc: Graphc):
    arguments = ["compile", f"{models}:Net", "--input", "x:f32[2,6]", "-o", tmp_path / "net.wasm"]
    done = graphc(*arguments)
    assert done.code == console.USAGE and "--target wasm" in done.err
    done = graphc(*arguments, "--target", "wasm")
    assert done.code == console.OK
    assert {p.name for p in tmp_path.glob("net*")} == {"net.wasm", "net.js", "net.d.ts", "net.html"}
    done = graphc(*arguments, "--target", "wasm", "--strict-order", "--emit", "wasm", "--name", "other")
    assert done.code == console.OK and "other_run: arena " in done.out
    done = graphc(*arguments[:-1], tmp_path / "net.gcm", "--native", "--target", "wasm")
    assert done.code != console.OK and "as a module of a library only" in done.err


def test_a_library_for_macos_is_written_here(models: Path, tmp_path: Path, graphc: Graphc):
    output = tmp_path / "net.dylib"
    arguments = ["compile", f"{models}:Net", "--input", "x:f32[2,6]", "--target", "macos-neon"]
    done = graphc(*arguments, "--emit", "dylib,a,h", "-o", output)
    assert done.code == console.OK and "net.dylib" in done.out
    assert output.read_bytes().startswith(b"\xcf\xfa\xed\xfe")
    assert (tmp_path / "net.a").read_bytes().startswith(b"!<arch>\n#1/")
    refused = graphc(*arguments, "-o", tmp_path / "net.gcm", "--native")
    assert refused.code == console.COMPILE and "code for macOS exists in a library only" in refused.err


def test_a_library_for_windows_is_written_here(models: Path, tmp_path: Path, graphc: Graphc):
    output = tmp_path / "net.dll"
    arguments = ["--input", "x:f32[2,6]", "--target", "windows-sse2", "--emit", "dll,lib,h", "-o", output]
    done = graphc("compile", f"{models}:Net", *arguments)
    assert done.code == console.OK and "net.lib" in done.out
    assert output.read_bytes().startswith(b"MZ") and (tmp_path / "net.lib").read_bytes().startswith(b"!<arch>\n")
    refused = graphc("compile", f"{models}:Net", "--input", "x:f32[2,6]", "--target", "sse2", "-o", output)
    assert refused.code == console.USAGE and "pass --target windows-avx2" in refused.err
