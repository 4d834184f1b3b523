"""Programs of ``tools.codegen.cross_ops`` on emulated boards with microcontrollers, linked by the board's own tools."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from graphc.codegen.link.elf32 import read_contents
from graphc.codegen.machine.target import Target
from graphc.compiler.linking import builtins_for
from graphc.files.object_archive import split_objects

TOOLS = "arm-none-eabi-gcc", "qemu-system-arm"


@dataclass(frozen=True)
class Board:
    """A board that QEMU emulates."""

    name: str
    flags: tuple[str, ...]
    """Flags of the C compiler."""
    heap: int
    """Address of memory for operands."""
    cases: int
    """Number of cases whose code fits into the memory at address 0."""


BOARDS = {
    "cortex-m4": Board("mps2-an386", ("-mcpu=cortex-m4", "-mfpu=fpv4-sp-d16"), 0x21000000, 200),
    "cortex-m7": Board("mps2-an500", ("-mcpu=cortex-m7", "-mfpu=fpv5-d16"), 0x60000000, 200),
    "cortex-m55": Board("mps3-an547", ("-mcpu=cortex-m55",), 0x60000000, 40),
}
"""By the target's processor."""
SCRIPT = """
MEMORY { FLASH (rx) : ORIGIN = 0, LENGTH = 4M  RAM (rwx) : ORIGIN = 0x20000000, LENGTH = 512K }
_estack = ORIGIN(RAM) + LENGTH(RAM);
SECTIONS {
  .text : { KEEP(*(.vectors)) *(.text*) *(.rodata*) *(.data.rel.ro*) *(.ARM.ex*) } > FLASH
  .data : { *(.data*) } > RAM AT> FLASH
  .bss : { *(.bss*) *(COMMON) } > RAM
}
"""


def run_chunks(objects: Sequence[bytes], inputs: Callable[[slice], bytes], target: Target, folder: Path) -> bytes:
    """Return the results of all cases, whose entries are ``case_N``, from programs with some of them each.

    ``inputs`` returns the input file of some cases. Raises CalledProcessError.
    """
    results = b""
    board = BOARDS[target.cpu]
    for start in range(0, len(objects), board.cases):
        some = slice(start, start + board.cases)
        (folder / "in").write_bytes(inputs(some))
        _link(objects[some], start, target, folder)
        command = [TOOLS[1], "-M", board.name, "-nographic", "-semihosting", "-kernel", "cases.elf"]
        subprocess.run(command, cwd=folder, check=True, timeout=600, stdin=subprocess.DEVNULL)
        results += (folder / "out").read_bytes()
    return results


def _link(objects: Sequence[bytes], start: int, target: Target, folder: Path) -> None:
    pieces = [piece for code in objects for piece in split_objects(code)]
    supply = builtins_for(target)
    names = dict.fromkeys(name for code in pieces for name in read_contents(code).undefined)
    pieces += [code for code in map(supply, names) if code is not None]
    for number, piece in enumerate(pieces):
        (folder / f"{number}.o").write_bytes(piece)
    entries = [f"case_{start + i}" for i in range(len(objects))]
    declared = "".join(f"void {name}(void *);\n" for name in entries)
    (folder / "entries.c").write_text(f"{declared}void (*const cases[])(void *) = {{{', '.join(entries)}}};\n")
    (folder / "board.ld").write_text(SCRIPT)
    board = BOARDS[target.cpu]
    files = [f"{number}.o" for number in range(len(pieces))]
    (folder / "files").write_text("\n".join(files))
    source = str(Path(__file__).with_suffix(".c"))
    flags = *board.flags, "-mthumb", "-mfloat-abi=hard", "-O1", "-w", f"-DHEAP={board.heap}"
    link = "-nostartfiles", "--specs=nosys.specs", "-T", "board.ld", "-Wl,--gc-sections,--no-warn-execstack"
    command = [TOOLS[0], *flags, *link, source, "entries.c", "@files", "-lm", "-o", "cases.elf"]
    subprocess.run(command, cwd=folder, check=True)
