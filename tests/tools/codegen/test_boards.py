"""Emulated boards: what programs print, initialized memory, and faults."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tools.codegen.boards import BOARDS, build_program, run_program

WORD = """
#include "board.h"
static volatile unsigned word = 0x1234abcd;
int main(void) { print(word); return 0; }
"""
FAULT = """
#include "board.h"
#ifdef __riscv
#define UNDEFINED "unimp"
#else
#define UNDEFINED "udf #0"
#endif
int main(void) { __asm__ volatile(UNDEFINED); return 0; }
"""
ERROR = """
#include "board.h"
int main(void) { return 1; }
"""


def run(text: str, target: str, folder: Path) -> str:
    """Return what a C program prints on a board."""
    for tool in BOARDS[target].tools:
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    (folder / "main.c").write_text(text)
    build_program(BOARDS[target], ["-O1", "-Wall", "-Werror", "main.c"], folder / "main.elf")
    return run_program(BOARDS[target], folder / "main.elf", timeout=60)


@pytest.mark.parametrize("target", BOARDS)
def test_data_have_their_values_when_a_program_starts(target: str, tmp_path: Path):
    assert run(WORD, target, tmp_path) == "1234abcd\n"


@pytest.mark.parametrize("target", ["cortex-m4", "rv32imc"])
@pytest.mark.parametrize("text", [FAULT, ERROR])
def test_a_fault_and_a_result_of_main_other_than_0_are_errors(text: str, target: str, tmp_path: Path):
    with pytest.raises(subprocess.CalledProcessError):
        run(text, target, tmp_path)
