"""Runs of WASI commands: in Node, and by the package wasmtime where it is installed."""

from __future__ import annotations

import io
import subprocess
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from tests.c_library.conftest import tool_or_skip

_SCRIPT = """
import { WASI } from "node:wasi";
import { readFileSync } from "node:fs";
const [file, ...args] = process.argv.slice(2);
const wasi = new WASI({ version: "preview1", args: [file, ...args], returnOnExit: true });
const module = await WebAssembly.compile(readFileSync(file));
process.exitCode = wasi.start(await WebAssembly.instantiate(module, wasi.getImportObject()));
"""


class Done(NamedTuple):
    """Result of a command: exit status, the arrays on stdout, and stderr."""

    code: int
    arrays: list[np.ndarray]
    message: str


Command = Callable[..., Done]


def npy(*arrays: np.ndarray) -> bytes:
    """Return the .npy files of arrays, one after the other."""
    file = io.BytesIO()
    for array in arrays:
        np.save(file, array)
    return file.getvalue()


def _arrays(data: bytes) -> list[np.ndarray]:
    file, arrays = io.BytesIO(data), []
    while file.tell() < len(data):
        start = file.tell()
        arrays.append(np.load(file))
        assert (file.tell() - arrays[-1].nbytes - start) % 64 == 0, "numpy's headers have multiples of 64 bytes"
    return arrays


def in_node(path: Path, data: bytes, arguments: Sequence[str] = ()) -> Done:
    """Run a command in Node with these bytes as stdin; skip without Node."""
    node = tool_or_skip("node", "nodejs")
    script = path.with_suffix(".mjs")
    script.write_text(_SCRIPT)
    command = [node, "--no-warnings", script, path, *arguments]
    done = subprocess.run(command, input=data, capture_output=True, timeout=300)
    return Done(done.returncode, _arrays(done.stdout), done.stderr.decode())


def by_wasmtime(path: Path, data: bytes, arguments: Sequence[str] = ()) -> Done:
    """Run a command by the package wasmtime with these bytes as stdin; skip without it."""
    try:
        wasmtime = import_module("wasmtime")
    except ImportError:
        pytest.skip("the package wasmtime is not installed")
    files = [path.with_suffix(f".{name}") for name in ("stdin", "stdout", "stderr")]
    files[0].write_bytes(data)
    config, engine = wasmtime.WasiConfig(), wasmtime.Engine()
    config.argv = [path.name, *arguments]
    config.stdin_file, config.stdout_file, config.stderr_file = map(str, files)
    store, linker = wasmtime.Store(engine), wasmtime.Linker(engine)
    store.set_wasi(config)
    linker.define_wasi()
    instance = linker.instantiate(store, wasmtime.Module.from_file(engine, str(path)))
    code = 0
    try:
        instance.exports(store)["_start"](store)
    except wasmtime.ExitTrap as trap:
        code = trap.code
    return Done(code, _arrays(files[1].read_bytes()), files[2].read_text())
