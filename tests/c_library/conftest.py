"""Libraries of all nets, built once, and the processes that call them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc
from graphc.c_library.build import Library, build_library
from tests.c_library.nets import NETS, Net

STRICT = ("-Wall", "-Wextra", "-pedantic", "-Werror", "-O1")
ALL = ("so", "h", "c", "py")
Built = Callable[..., Library]

_CALLS = """
import importlib.util, sys
sys.path[:0] = [{packages!r}]
import numpy as np
spec = importlib.util.spec_from_file_location("loader", {loader!r})
loader = importlib.util.module_from_spec(spec)
spec.loader.exec_module(loader)
model = loader.Model()
calls = np.load({inputs!r})
results = {{}}
for call in range({count}):
    given = [calls[f"{{call}}.{{i}}"] for i in range({arity})]
    found = model.run(*given)
    for i, array in enumerate(found if isinstance(found, tuple) else (found,)):
        results[f"{{call}}.{{i}}"] = array
np.savez({outputs!r}, **results)
print(*sorted({{name.partition(".")[0] for name in sys.modules}}))
"""


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Builds the library of a net in a folder of its own, once for equal arguments."""
    known: dict[Any, Library] = {}

    def build(name: str, emit: Sequence[str] = ALL, **options: Any) -> Library:
        key = (name, tuple(emit), tuple(sorted(options.items())))
        if key not in known:
            net = NETS[name]
            path = tmp_path_factory.mktemp(name) / f"{name}.so"
            known[key] = build_library(net.model(), *net.calls[0], path=path, emit=emit, dims=net.dims, **options)
        return known[key]

    return build


def expected(net: Net, folder: Path, target: str = "host") -> list[list[np.ndarray]]:
    """Return the results of a net's calls in Python, in order."""
    graphc.export(net.model(), *net.calls[0], path=folder / "net.gcm", dims=net.dims)
    model = graphc.load(folder / "net.gcm", target=target)
    return [[np.array(a) for a in model.run(call)] for call in net.calls]


def call_alone(library: Library, calls: Sequence[Sequence[np.ndarray]], folder: Path) -> list[list[np.ndarray]]:
    """Return the results of calls through the loader, in a process that has numpy only."""
    inputs, outputs = folder / "inputs.npz", folder / "outputs.npz"
    np.savez(inputs, **{f"{c}.{i}": a for c, call in enumerate(calls) for i, a in enumerate(call)})
    text = _CALLS.format(
        packages=str(Path(np.__file__).parents[1]),
        loader=str(library.files["py"]),
        inputs=str(inputs),
        outputs=str(outputs),
        count=len(calls),
        arity=len(calls[0]),
    )
    run = subprocess.run([sys.executable, "-S", "-c", text], capture_output=True, text=True, cwd=folder)
    assert run.returncode == 0, run.stderr
    assert not {"graphc", "llvmlite", "networkx"} & set(run.stdout.split())
    with np.load(outputs) as found:
        counts = [sum(name.startswith(f"{c}.") for name in found.files) for c in range(len(calls))]
        return [[found[f"{c}.{i}"] for i in range(count)] for c, count in enumerate(counts)]


def tool_or_skip(*names: str) -> str:
    """Return the first installed program of these, or skip the test."""
    found = next((path for path in map(shutil.which, names) if path), None)
    if found is None:
        pytest.skip(f"{' or '.join(names)} is not installed")
    return found


def run_tool(*arguments: Any, **options: Any) -> str:
    """Return the output of a program, which must succeed."""
    done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build_demo(library: Library, *flags: str, compiler: str = "cc", standard: str = "c99") -> Path:
    """The demo of a library, built by a C compiler that forgives nothing."""
    demo, shared = library.files["c"], library.files["so"]
    program = demo.with_suffix(f".{standard.replace('+', 'p')}.{os.path.basename(compiler)}")
    language = ("-x", "c++") if "++" in standard else ("-x", "c")
    run_tool(
        *(compiler, f"-std={standard}", *STRICT, *flags, *language, demo, "-x", "none", shared),
        *(f"-Wl,-rpath,{shared.parent}", "-o", program),
    )
    return program


def demo_inputs(library: Library, net: Net, seed: int = 1) -> list[np.ndarray]:
    """Return the demo's inputs for a net."""
    state, found = seed, []
    for array in net.calls[0]:
        values = []
        for _ in range(array.size):
            state = (state * 1664525 + 1013904223) % 2**32
            number = state >> 8
            values.append(number / 8388608 - 1 if array.dtype.kind == "f" else number >> 23)
        found.append(np.array(values, array.dtype).reshape(array.shape))
    return found


def printed(text: str) -> Mapping[str, list[float]]:
    """Return the numbers printed by a demo, by output."""
    lines = (line.partition(":") for line in text.splitlines())
    return {name: [float(word) for word in rest.split()] for name, _, rest in lines}


def same(actual: list[list[np.ndarray]], expected: list[list[np.ndarray]]) -> bool:
    pairs = [(a, b) for x, y in zip(actual, expected, strict=True) for a, b in zip(x, y, strict=True)]
    return all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in pairs)
