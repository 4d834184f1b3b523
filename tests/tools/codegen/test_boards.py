"""Emulated boards: what programs print, initialized memory, and faults."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tools.codegen.boards import BOARDS, TOOLS, build_program, run_program

WORD = """
#include "board.h"
static volatile unsigned word = 0x1234abcd;
int main(void) { print(word); return 0; }
"""
FAULT = """
#include "board.h"
int main(void) { __asm__ volatile("udf #0"); return 0; }
"""
ERROR = """
#include "board.h"
int main(void) { return 1; }
"""


def run(text: str, target: str, folder: Path) -> str:
    """Return what a C program prints on a board."""
    for tool in TOOLS:
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    (folder / "main.c").write_text(text)
    build_program(BOARDS[target], ["-O1", "-Wall", "-Werror", "main.c"], folder / "main.elf")
    return run_program(BOARDS[target], folder / "main.elf", timeout=60)


@pytest.mark.parametrize("target", BOARDS)
def test_data_have_their_values_when_a_program_starts(target: str, tmp_path: Path):
    assert run(WORD, target, tmp_path) == "1234abcd\n"


@pytest.mark.parametrize("text", [FAULT, ERROR])
def test_a_fault_and_a_result_of_main_other_than_0_are_errors(text: str, tmp_path: Path):
    with pytest.raises(subprocess.CalledProcessError):
        run(text, "cortex-m4", tmp_path)
