"""Boards with microcontrollers that QEMU emulates: memory, C compiler, linker script, and how programs run on them.

A program's C code includes ``board.h``, which has the start-up code. The compiler is ``arm-none-eabi-gcc`` or
``riscv64-unknown-elf-gcc`` with picolibc, the emulator ``qemu-system-arm`` or ``qemu-system-riscv32``.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from graphc.codegen.machine.target import Target, target_named


@dataclass(frozen=True)
class Board:
    """A board that QEMU emulates."""

    machine: tuple[str, ...]
    """Options of the emulator for the board and its processor."""
    flags: tuple[str, ...]
    """Flags of the C compiler."""
    code: int
    """Address of the memory for code, from which the processor starts."""
    data: int
    """Address of the memory for data and stack."""
    memory: str
    """Bytes of each of the two."""
    heap: int
    """Address of 16 MB of memory or more for large operands."""
    cases: int
    """Number of cases of ``board_ops`` whose code fits into the memory for code."""
    compiler: str = "arm-none-eabi-gcc"
    emulator: str = "qemu-system-arm"
    tick: float = 1
    """Instructions in a tick of what ``timed`` in ``board.h`` reads, with COUNTING."""

    @property
    def tools(self) -> tuple[str, str]:
        """Return the names of compiler and emulator."""
        return self.compiler, self.emulator

    @property
    def runs(self) -> int:
        """Return for how many calls ``timed`` runs, so that a tick more or less does not change the instructions of
        one. All calls together may take 670 million instructions: the clock of a Cortex-M has 24 bits."""
        return int(2 * self.tick) + 1

    def instructions(self, ticks: int, nothing: int) -> int:
        """Return the instructions of a function. ``ticks``: of so many calls of it as ``runs`` says; ``nothing``: of
        calls of a function of one instruction."""
        return round((ticks - nothing) * self.tick / self.runs) + 1


def _cortex(machine: str, clock: int, flags: Iterable[str], memory: str, heap: int, cases: int) -> Board:
    """Return a board of Arm, whose processor has a clock of so many Hz."""
    flags = *flags, "-mthumb", "-mfloat-abi=hard", "--specs=nosys.specs"
    return Board(("-M", machine), flags, 0, 0x20000000, memory, heap, cases, tick=1e9 / clock)


def _riscv(processor: str, flags: Iterable[str]) -> Board:
    """Return the board without hardware of its own (``virt``), whose memory begins at 2 GB."""
    tools = "riscv64-unknown-elf-gcc", "qemu-system-riscv32"
    machine = "-M", "virt", "-bios", "none", "-cpu", f"rv32,{processor}"
    flags = *flags, "--specs=picolibc.specs"
    return Board(machine, flags, 0x80000000, 0x81000000, "16M", 0x82000000, 400, *tools)


BOARDS = {
    "cortex-m4": _cortex("mps2-an386", 25_000_000, ("-mcpu=cortex-m4", "-mfpu=fpv4-sp-d16"), "4M", 0x21000000, 200),
    "cortex-m7": _cortex("mps2-an500", 25_000_000, ("-mcpu=cortex-m7", "-mfpu=fpv5-d16"), "4M", 0x60000000, 200),
    "cortex-m55": _cortex("mps3-an547", 32_000_000, ("-mcpu=cortex-m55",), "512K", 0x60000000, 40),
    "rv32imc": _riscv("f=false,d=false,a=false", ("-march=rv32imc", "-mabi=ilp32")),
    "rv32imfc": _riscv("d=false,a=false", ("-march=rv32imfc", "-mabi=ilp32f")),
}
"""By the target's name. Memory and clock as in hw/arm/mps2.c, mps2-tz.c and hw/riscv/virt.c of QEMU, and Arm's notes
AN386, AN500, AN547."""
COUNTING = "-icount", "shift=0"
"""Options of the emulator with which an instruction takes a nanosecond."""
_SCRIPT = """
MEMORY {{ CODE (rx) : ORIGIN = {code}, LENGTH = {memory}  RAM (rwx) : ORIGIN = {data}, LENGTH = {memory} }}
_estack = ORIGIN(RAM) + LENGTH(RAM);
SECTIONS {{
  .text : {{ KEEP(*(.vectors)) *(.text*) *(.rodata*) *(.srodata*) *(.data.rel.ro*) *(.ARM.ex*) }} > CODE
  .data : {{ *(.data*) *(.sdata*) }} > RAM
  .bss : {{ *(.bss*) *(.sbss*) *(COMMON) _ebss = .; }} > RAM
}}
"""
"""QEMU loads ``.data`` to its address in memory, so no start-up code copies it."""


def board_of(target: Target) -> Board:
    """Return the board of a target."""
    return next(board for name, board in BOARDS.items() if target_named(name).features == target.features)


def build_program(board: Board, arguments: Iterable[str | Path], program: Path) -> None:
    """Compile and link a program from files and further flags of the compiler. Raises CalledProcessError."""
    script = program.with_suffix(".ld")
    script.write_text(_SCRIPT.format(code=board.code, data=board.data, memory=board.memory))
    flags = *board.flags, f"-I{Path(__file__).parent}"
    link = "-nostartfiles", "-T", script, "-Wl,--gc-sections,--no-warn-execstack"
    subprocess.run([board.compiler, *flags, *link, *arguments, "-o", program], check=True, cwd=program.parent)


def run_program(board: Board, program: Path, *options: str, timeout: int) -> str:
    """Return what a program prints on an emulated board. ``timeout`` is in seconds.

    The program's folder is the one where it opens files. Raises CalledProcessError where ``main`` does not return 0,
    and where the processor stops with a fault.
    """
    command = [board.emulator, *board.machine, "-nographic", "-semihosting", *options, "-kernel", program.name]
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
