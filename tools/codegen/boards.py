"""Cortex-M boards that QEMU emulates: memory, flags of the C compiler, linker script, and how programs run on them.

A program's C code includes ``board.h``, which has the start-up code. ``arm-none-eabi-gcc`` builds it, and
``qemu-system-arm`` runs it.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

COMPILER, EMULATOR = TOOLS = "arm-none-eabi-gcc", "qemu-system-arm"


@dataclass(frozen=True)
class Board:
    """A board that QEMU emulates."""

    name: str
    flags: tuple[str, ...]
    """Flags of the C compiler."""
    memory: str
    """Bytes of the memory at address 0, for code, and of that at 0x20000000, for data and stack."""
    heap: int
    """Address of 16 MB of memory or more for large operands."""
    cases: int
    """Number of cases of ``board_ops`` whose code fits into the memory at address 0."""


BOARDS = {
    "cortex-m4": Board("mps2-an386", ("-mcpu=cortex-m4", "-mfpu=fpv4-sp-d16"), "4M", 0x21000000, 200),
    "cortex-m7": Board("mps2-an500", ("-mcpu=cortex-m7", "-mfpu=fpv5-d16"), "4M", 0x60000000, 200),
    "cortex-m55": Board("mps3-an547", ("-mcpu=cortex-m55",), "512K", 0x60000000, 40),
}
"""By the target's processor. Memory as in hw/arm/mps2.c and mps2-tz.c of QEMU, and Arm's notes AN386, AN500, AN547."""
_SCRIPT = """
MEMORY {{ CODE (rx) : ORIGIN = 0, LENGTH = {memory}  RAM (rwx) : ORIGIN = 0x20000000, LENGTH = {memory} }}
_estack = ORIGIN(RAM) + LENGTH(RAM);
SECTIONS {{
  .text : {{ KEEP(*(.vectors)) *(.text*) *(.rodata*) *(.data.rel.ro*) *(.ARM.ex*) }} > CODE
  .data : {{ *(.data*) }} > RAM
  .bss : {{ *(.bss*) *(COMMON) _ebss = .; }} > RAM
}}
"""
"""QEMU loads ``.data`` to its address in memory, so no start-up code copies it."""


def build_program(board: Board, arguments: Iterable[str | Path], program: Path) -> None:
    """Compile and link a program from files and further flags of the compiler. Raises CalledProcessError."""
    script = program.with_suffix(".ld")
    script.write_text(_SCRIPT.format(memory=board.memory))
    flags = *board.flags, "-mthumb", "-mfloat-abi=hard", f"-I{Path(__file__).parent}"
    link = "-nostartfiles", "--specs=nosys.specs", "-T", script, "-Wl,--gc-sections,--no-warn-execstack"
    subprocess.run([COMPILER, *flags, *link, *arguments, "-o", program], check=True, cwd=program.parent)


def run_program(board: Board, program: Path, *options: str, timeout: int) -> str:
    """Return what a program prints on an emulated board. ``timeout`` is in seconds.

    The program's folder is the one where it opens files. Raises CalledProcessError where ``main`` does not return 0,
    and where the processor stops with a fault.
    """
    command = [EMULATOR, "-M", board.name, "-nographic", "-semihosting", *options, "-kernel", program.name]
    done = subprocess.run(
        command,
        cwd=program.parent,
        check=True,
        text=True,
        timeout=timeout,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    return done.stdout
