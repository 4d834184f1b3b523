"""Microcontrollers: flash, memory and instructions of nets on an emulated board, beside C code of another compiler.

``python -m benchmarks.microcontroller [--target NAME] [NET...]`` needs the tools of a board in ``tools.codegen.boards``
(default: ``cortex-m4``), and for the other compiler the package ``emx-onnx-cgen``, whose C code gcc compiles with
``-O3``. Both get the same ONNX file. Flash is code and weights without the program around; memory is static memory and
stack. QEMU counts the instructions of a call; it does not know what each of them costs. The bound is the number that
graphc proves of its code. ``--json`` prints everything.
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
from graphc.compiler.realtime import RealtimeReport
from tools.codegen.boards import BOARDS, COUNTING, Board, build_program, run_program

COLUMNS = ("net", "compiler", "flash B", "memory B", "instructions", "bound", "difference")


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
    stack: int = 0
    """Bytes of stack that the call writes."""
    bound: int | None = None
    """Proven maximum of the instructions."""
    stack_bound: int | None = None
    """Proven maximum of the bytes of stack."""


class Code(NamedTuple):
    """A net in C."""

    text: str
    """C text of ``net``, which calls the macro CALL."""
    call: str
    """Name of the function that CALL is."""
    files: list[Path]
    """Files to link."""
    proof: RealtimeReport | None = None


def own_code(model: nn.Module, shape: tuple[int, ...], target: str, folder: Path) -> Code:
    """Return a net by graphc."""
    options: dict[str, Any] = {"emit": ("a", "h"), "target": target, "realtime": True}
    library = gc.build_library(model, gc.zeros(shape), path=folder / "own.a", **options)
    text = f"""
#include "own.h"
static unsigned char context[{library.context_bytes}] __attribute__((aligned(64)));
static unsigned char arena[{max(int(library.entries["run"].arena), 1)}] __attribute__((aligned(64)));
int net(const float *input, float *output) {{
    static int ready;
    if (!ready) ready = own_init((own_t *)context, sizeof context) == 0;
    return CALL((own_t *)context, input, output, arena, (uint64_t)sizeof arena);
}}
"""
    return Code(text, "own_run", [library.files["a"]], library.realtime["run"])


def other_code(model: Path, shape: tuple[int, ...], outputs: int, folder: Path) -> Code:
    """Return a net by emx-onnx-cgen."""
    tool = shutil.which("emx-onnx-cgen")
    assert tool is not None
    options = ("--large-temp-threshold", "0", "--model-name", "emx")
    subprocess.run([tool, "compile", *options, str(model), str(folder / "emx.c")], check=True, capture_output=True)
    sizes = "".join(f"[{n}]" for n in shape)
    text = f"""
void emx(const float input{sizes}, float output[1][{outputs}]);
int net(const float *input, float *output) {{
    CALL((const void *)input, (void *)output);
    return 0;
}}
"""
    return Code(text, "emx", [folder / "emx.c"])


def measure(code: Code, count: int, outputs: int, board: Board, folder: Path) -> Figures:
    """Link the program, run it on the emulated board, and return what it prints."""
    sizes = f"-DINPUT={count}", f"-DOUTPUT={outputs}", f"-DRUNS={board.runs}"
    flags = *sizes, f"-I{folder}", "-std=gnu11", "-O3", "-ffunction-sections", "-w", Path(__file__).with_suffix(".c")
    (folder / "net.c").write_text(f"int nothing();\n{code.text}")
    (folder / "empty.c").write_text("int net(const float *input, float *output) { return output[0] = *input; }")
    program, around, empty = (folder / f"{name}.elf" for name in ("board", "around", "empty"))
    for path, call in ((program, code.call), (around, "nothing")):
        build_program(board, [*flags, f"-DCALL={call}", folder / "net.c", *code.files, "-lm"], path)
    build_program(board, [*flags, folder / "empty.c"], empty)
    words = _printed(board, program)
    *results, stack, ticks, status = words
    if status:
        raise RuntimeError(f"the net returned {status}")
    *_, stack_around, ticks_around, _ = _printed(board, around)
    instructions = board.instructions(int(ticks), int(ticks_around))
    flash, memory = (a - b for a, b in zip(_sizes(board, program), _sizes(board, empty), strict=True))
    figures = flash, memory + int(stack), instructions, _floats(results), int(stack) - int(stack_around)
    if code.proof is None or code.proof.outside:
        return Figures(*figures)
    return Figures(*figures, code.proof.instructions, code.proof.stack_bytes)


def _printed(board: Board, program: Path) -> np.ndarray:
    """Return the words that a program prints."""
    text = run_program(board, program, *COUNTING, timeout=300)
    return np.array([int(word, 16) for word in text.split()], np.uint32)


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
    found = {"graphc": measure(own_code(model, shape, target, folder), *sizes)}
    if shutil.which("emx-onnx-cgen"):
        found["emx-onnx-cgen"] = measure(other_code(folder / "net.onnx", shape, outputs, folder), *sizes)
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
            bound = "-" if figures.bound is None else str(figures.bound)
            rows.append([name, compiler, *map(str, figures[:3]), bound, f"{error:.1e}"])
            records.append({"net": name, "compiler": compiler, **figures._asdict(), "outputs": error})
    print(json.dumps(records) if options.json else format_table(COLUMNS, rows))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
