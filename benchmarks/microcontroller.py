"""Microcontrollers: flash, memory and instructions of nets on an emulated board, beside C code of another compiler.

``python -m benchmarks.microcontroller [--target NAME] [NET...]`` needs the tools of a board in ``tools.codegen.boards``
(default: ``cortex-m4``), and for the other compiler the package ``emx-onnx-cgen``, whose C code gcc compiles with
``-O3``. Both get the same ONNX file. Flash is code and weights without the program around; memory is static memory and
stack. QEMU counts the instructions of a call; it does not know what each of them costs. ``--json`` prints everything.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import graphc as gc
from benchmarks.harness.results import format_table
from graphc import nn
from tools.codegen.boards import BOARDS, Board, build_program, run_program

COLUMNS = ("net", "compiler", "flash B", "memory B", "instructions", "difference")


def policy() -> nn.Module:
    return nn.Sequential(nn.Linear(17, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 6))


def digits() -> nn.Module:
    layers = nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU()
    return nn.Sequential(*layers, nn.MaxPool2d(2), nn.Flatten(), nn.Linear(784, 10))


def in_bytes(make: Callable[[], nn.Module], shape: tuple[int, ...]) -> nn.Module:
    """Return a net whose layers multiply bytes, for inputs from -1 to 1."""
    return gc.quantize(make().eval(), [gc.rand(64, *shape[1:]) * 2 - 1])


NETS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], int]] = {
    "policy": (policy, (1, 17), 6),
    "policy-int8": (lambda: in_bytes(policy, (1, 17)), (1, 17), 6),
    "digits": (digits, (1, 1, 28, 28), 10),
    "digits-int8": (lambda: in_bytes(digits, (1, 1, 28, 28)), (1, 1, 28, 28), 10),
}
"""Net, shape of its input, and number of outputs."""


class Figures(NamedTuple):
    """Measurements of a net by a compiler."""

    flash: int
    """Bytes of code and weights."""
    memory: int
    """Bytes of static memory and stack."""
    instructions: int
    """Instructions of a call."""
    outputs: np.ndarray


def own_code(model: nn.Module, shape: tuple[int, ...], target: str, folder: Path) -> tuple[str, list[Path]]:
    """Return the C text of ``net`` by graphc, and the files to link."""
    library = gc.build_library(model, gc.zeros(shape), path=folder / "own.a", emit=("a", "h"), target=target)
    text = f"""
#include "own.h"
static unsigned char context[{library.context_bytes}] __attribute__((aligned(64)));
static unsigned char arena[{max(int(library.entries["run"].arena), 1)}] __attribute__((aligned(64)));
int net(const float *input, float *output) {{
    static int ready;
    if (!ready) ready = own_init((own_t *)context, sizeof context) == 0;
    return own_run((own_t *)context, input, output, arena, sizeof arena);
}}
"""
    return text, [library.files["a"]]


def other_code(model: Path, shape: tuple[int, ...], outputs: int, folder: Path) -> tuple[str, list[Path]]:
    """Return the C text of ``net`` by emx-onnx-cgen, and the files to link."""
    tool = shutil.which("emx-onnx-cgen")
    assert tool is not None
    options = ("--large-temp-threshold", "0", "--model-name", "emx")
    subprocess.run([tool, "compile", *options, str(model), str(folder / "emx.c")], check=True, capture_output=True)
    sizes = "".join(f"[{n}]" for n in shape)
    text = f"""
void emx(const float input{sizes}, float output[1][{outputs}]);
int net(const float *input, float *output) {{
    emx((const void *)input, (void *)output);
    return 0;
}}
"""
    return text, [folder / "emx.c"]


def measure(
    text: str, files: list[Path], count: int, outputs: int, board: Board, folder: Path, runs: int = 20
) -> Figures:
    """Link the program, run it on the emulated board, and return what it prints."""
    (folder / "net.c").write_text(text)
    program, empty = folder / "board.elf", folder / "empty.elf"
    sizes = f"-DINPUT={count}", f"-DOUTPUT={outputs}", f"-DRUNS={runs}"
    flags = *sizes, f"-I{folder}", "-std=gnu11", "-O3", "-ffunction-sections", "-w", Path(__file__).with_suffix(".c")
    build_program(board, [*flags, folder / "net.c", *files, "-lm"], program)
    (folder / "empty.c").write_text("int net(const float *input, float *output) { return output[0] = *input; }")
    build_program(board, [*flags, folder / "empty.c"], empty)
    text = run_program(board, program, "-icount", "shift=0", timeout=300)
    words = np.array([int(word, 16) for word in text.split()], np.uint32)
    *results, stack, instructions, code = words
    if code:
        raise RuntimeError(f"the net returned {code}")
    with_net, alone = (_sizes(board, file) for file in (program, empty))
    flash, memory = (a - b for a, b in zip(with_net, alone, strict=True))
    return Figures(flash, memory + int(stack), int(instructions) // runs, _floats(results))


def _floats(words: list[Any]) -> np.ndarray:
    return np.array(words, np.uint32).view(np.float32)


def _sizes(board: Board, program: Path) -> tuple[int, int]:
    """Return the bytes of a program in flash and in static memory."""
    tool = f"{board.compiler.removesuffix('gcc')}size"
    done = subprocess.run([tool, str(program)], capture_output=True, text=True, check=True)
    text, data, bss = map(int, done.stdout.splitlines()[1].split()[:3])
    return text + data, data + bss


def compare(name: str, target: str, folder: Path) -> dict[str, Figures]:
    """Return the figures of a net, by compiler."""
    make, shape, outputs = NETS[name]
    gc.manual_seed(0)
    model = make().eval()
    sizes = int(np.prod(shape)), outputs, BOARDS[target], folder
    gc.export(model, gc.zeros(shape), path=folder / "net.onnx")
    found = {"graphc": measure(*own_code(model, shape, target, folder), *sizes)}
    if shutil.which("emx-onnx-cgen"):
        found["emx-onnx-cgen"] = measure(*other_code(folder / "net.onnx", shape, outputs, folder), *sizes)
    return found


def main(arguments: list[str]) -> int:
    """Print the table of all nets, or of those named."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("nets", nargs="*", metavar="NET", help=f"one of {', '.join(NETS)} (default: all)")
    parser.add_argument("--target", choices=BOARDS, default="cortex-m4")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.nets if name not in NETS]
    if unknown:
        parser.error(f"unknown net {unknown[0]!r}: choose from {', '.join(NETS)}")
    rows, records = [], []
    for name in options.nets or NETS:
        with tempfile.TemporaryDirectory() as folder:
            found = compare(name, options.target, Path(folder))
        for compiler, figures in found.items():
            error = float(np.abs(figures.outputs - found["graphc"].outputs).max())
            rows.append([name, compiler, *map(str, figures[:3]), f"{error:.1e}"])
            records.append({"net": name, "compiler": compiler, **figures._asdict(), "outputs": error})
    print(json.dumps(records) if options.json else format_table(COLUMNS, rows))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
