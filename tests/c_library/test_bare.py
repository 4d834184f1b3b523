"""Libraries for microcontrollers: what runs on emulated boards, and what they do not have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.base.errors import ArgumentError, CompileError
from graphc.c_library.bare import supplied
from graphc.c_library.build import Library, build_library
from graphc.codegen.link.elf32 import is_elf32, read_contents
from graphc.codegen.llvm.build import build_object
from graphc.codegen.machine.target import target_named
from graphc.files.object_archive import split_objects
from tests.c_library.conftest import run_tool, tool_or_skip
from tools.codegen.boards import BOARDS, build_program, run_program


def policy() -> nn.Module:
    graphc.manual_seed(0)
    return nn.Sequential(nn.Linear(17, 32), nn.Tanh(), nn.Linear(32, 6), nn.Softmax(-1)).eval()


def digits() -> nn.Module:
    graphc.manual_seed(0)
    layers = nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3), nn.GELU(), nn.Flatten()
    return nn.Sequential(*layers, nn.Linear(400, 10)).eval()


class Filter(nn.Module):
    """A recurrent net that keeps its state."""

    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(4, 8)
        self.register_buffer("state", graphc.zeros(1, 8))

    def forward(self, x: Any) -> Any:
        self.state.copy_(self.cell(x, self.state))
        return self.state.exp()


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "policy": (policy, (1, 17)),
    "digits": (digits, (1, 1, 14, 14)),
    "filter": (lambda: Filter().eval(), (1, 4)),
    "bytes": (lambda: graphc.quantize(digits(), [graphc.rand(32, 1, 14, 14) * 2 - 1]), (1, 1, 14, 14)),
}
CALLS = 2


def built(name: str, target: str, folder: Path, **options: Any) -> Library:
    model, shape = MODELS[name]
    graphc.manual_seed(3)
    example = graphc.zeros(shape)
    return build_library(model(), example, path=folder / f"{name}.a", emit=("a", "h"), target=target, **options)


def inputs(shape: tuple[int, ...]) -> list[np.ndarray]:
    """What the program draws."""
    state, arrays = 1, []
    for _ in range(CALLS):
        numbers = []
        for _ in range(int(np.prod(shape))):
            state = (state * 1664525 + 1013904223) % 2**32
            numbers.append((state >> 8) / 8388608 - 1)
        arrays.append(np.array(numbers, np.float32).reshape(shape))
    return arrays


def printed(library: Library, target: str, folder: Path, count: int) -> np.ndarray:
    """The outputs of all calls on an emulated board, f32 [CALLS, count]."""
    for tool in BOARDS[target].tools:
        tool_or_skip(tool)
    board, program = BOARDS[target], folder / "board.elf"
    entry = library.entries["run"]
    sizes = {"CONTEXT": library.context_bytes, "ARENA": max(int(entry.arena), 1), "OUTPUT": count, "CALLS": CALLS}
    sizes["INPUT"] = int(np.prod(MODELS[library.name][1]))
    text = Path(__file__).with_name("board.c").read_text().replace("NAME", library.name)
    (folder / "board.c").write_text(text)
    defines = [f"-D{name}={value}" for name, value in sizes.items()]
    warnings = "-O2", "-Wall", "-Werror", "-std=c99"
    build_program(board, [*warnings, *defines, folder / "board.c", library.files["a"]], program)
    text = run_program(board, program, timeout=120)
    *words, code = text.split()
    assert code == "00000000", text
    return np.array([int(word, 16) for word in words], np.uint32).view(np.float32).reshape(CALLS, count)


@pytest.mark.parametrize("target", BOARDS)
@pytest.mark.parametrize("name", MODELS)
def test_a_board_computes_what_python_does(name: str, target: str, tmp_path: Path):
    make, shape = MODELS[name]
    library = built(name, target, tmp_path)
    graphc.manual_seed(3)
    model = make()
    with graphc.no_grad():
        expected = [np.array(model(graphc.tensor(x)).numpy()).ravel() for x in inputs(shape)]
    found = printed(library, target, tmp_path, expected[0].size)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("target", ["cortex-m4", "rv32imc"])
def test_in_strict_order_the_bits_are_those_of_this_machine(target: str, tmp_path: Path):
    make, shape = MODELS["policy"]
    library = built("policy", target, tmp_path, strict_order=True)
    graphc.manual_seed(3)
    compiled = graphc.compile(make(), target="host:strict")
    with graphc.no_grad():
        expected = [compiled(graphc.tensor(x)).numpy().ravel() for x in inputs(shape)]
    np.testing.assert_array_equal(printed(library, target, tmp_path, expected[0].size), expected)


def test_equal_models_give_equal_archives(tmp_path: Path):
    first, second = (built("policy", "cortex-m4", tmp_path / name) for name in "ab" if not (tmp_path / name).mkdir())
    assert first.files["a"].read_bytes() == second.files["a"].read_bytes()


def test_the_header_has_sizes_of_64_bits(tmp_path: Path):
    text = built("policy", "cortex-m4", tmp_path).files["h"].read_text()
    assert "uint64_t arena_size);" in text and "size_t " not in text.replace("uint64_t", "").replace("_size_t", "")


@pytest.mark.parametrize(
    ("target", "tool", "runtime"),
    [
        ("cortex-m4", "arm-none-eabi-nm", ("__aeabi_", "mem")),
        ("rv32imc", "riscv64-unknown-elf-nm", ("mem",)),
        ("rv32imfc", "riscv64-unknown-elf-nm", ("mem",)),
    ],
)
def test_only_functions_of_compilers_are_missing(target: str, tool: str, runtime: tuple[str, ...], tmp_path: Path):
    library = built("digits", target, tmp_path)
    lines = run_tool(tool_or_skip(tool, "llvm-nm"), library.files["a"]).splitlines()
    names = {kind: {x.split()[-1] for x in lines if x.split()[-2:-1] == [kind]} for kind in "UTWDRr"}
    missing = names["U"] - set().union(*(names[kind] for kind in "TWDRr"))
    assert all(name.startswith(runtime) for name in missing), missing


def test_states_are_copied_by_the_c_library(tmp_path: Path):
    """Its sizes have the bits of an address; those of the functions that graphc has are 64 everywhere."""
    objects = split_objects(built("filter", "rv32imc", tmp_path).files["a"].read_bytes())
    contents = [read_contents(code) for code in objects if is_elf32(code)]
    assert "memcpy" in {name for c in contents for name in c.undefined}
    assert "memcpy" not in {name for c in contents for name in c.defined}


@pytest.mark.parametrize("target", BOARDS)
def test_the_header_has_the_proven_limits(target: str, tmp_path: Path):
    library = built("policy", target, tmp_path, realtime=True)
    report, text = library.realtime["run"], library.files["h"].read_text()
    assert report.instructions and not report.outside and "as many instructions" in report.compared
    assert f"#define POLICY_RUN_STACK_SIZE {report.stack_bytes}\n" in text
    assert f"#define POLICY_RUN_INSTRUCTIONS {report.instructions}\n" in text
    assert "STACK_SIZE" not in built("policy", target, tmp_path).files["h"].read_text()


def test_functions_of_supplied_functions_are_supplied():
    target = target_named("cortex-m4")
    calls = {"f": "g", "g": "h", "h": "other"}

    def supply(name: str) -> bytes | None:
        if name not in calls:
            return None
        text = f"declare void @{calls[name]}()\ndefine void @{name}() {{\n  call void @{calls[name]}()\n  ret void\n}}"
        return build_object(f'target triple = "{target.triple}"\n{text}\n', target)

    first = supply("f")
    assert first is not None
    assert [*supplied([first], supply)] == ["g", "h"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"emit": ("so",)}, "no file of kind 'so' for microcontrollers"),
        ({"weights": "beside"}, "no files to map weights from"),
        ({"threads": True}, "no thread pool"),
    ],
)
def test_what_a_board_does_not_have_is_refused(options: dict[str, Any], message: str, tmp_path: Path):
    arguments = {"emit": ("a", "h"), "target": "cortex-m4", **options}
    with pytest.raises((ArgumentError, CompileError), match=message):
        build_library(policy(), graphc.zeros(1, 17), path=tmp_path / "net.a", **arguments)
