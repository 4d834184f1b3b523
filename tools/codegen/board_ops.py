"""Programs of ``tools.codegen.cross_ops`` on emulated boards with microcontrollers, linked by the board's own tools."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from graphc.c_library.bare import supplied
from graphc.codegen.machine.target import Target
from graphc.compiler.linking import builtins_for
from graphc.files.object_archive import split_objects
from tools.codegen.boards import COUNTING, board_of, build_program, run_program


def run_chunks(objects: Sequence[bytes], inputs: Callable[[slice], bytes], target: Target, folder: Path) -> bytes:
    """Return the results of all cases, whose entries are ``case_N``, from programs with some of them each.

    ``inputs`` returns the input file of some cases. Raises CalledProcessError.
    """
    results = b""
    for _ in _runs(objects, inputs, target, folder):
        results += (folder / "out").read_bytes()
    return results


def count_instructions(
    objects: Sequence[bytes], inputs: Callable[[slice], bytes], target: Target, folder: Path
) -> list[int]:
    """Return the instructions of a call of each case, at most 8 million, on average over calls with the same operands.
    Raises CalledProcessError."""
    board, counted = board_of(target), list[int]()
    for text in _runs(objects, inputs, target, folder, (f"-DRUNS={board.runs}",), COUNTING):
        nothing, *ticks = (int(word, 16) for word in text.split())
        counted += [board.instructions(t, nothing) for t in ticks]
    return counted


def _runs(
    objects: Sequence[bytes],
    inputs: Callable[[slice], bytes],
    target: Target,
    folder: Path,
    flags: Sequence[str] = (),
    options: Sequence[str] = (),
) -> Iterator[str]:
    """Run the cases, a program for each group of them, and yield what each prints."""
    board = board_of(target)
    for start in range(0, len(objects), board.cases):
        some = slice(start, start + board.cases)
        (folder / "in").write_bytes(inputs(some))
        _link(objects[some], start, target, folder, flags)
        yield run_program(board, folder / "cases.elf", *options, timeout=600)


def _link(objects: Sequence[bytes], start: int, target: Target, folder: Path, flags: Sequence[str]) -> None:
    pieces = [piece for code in objects for piece in split_objects(code)]
    pieces += supplied(pieces, builtins_for(target)).values()
    for number, piece in enumerate(pieces):
        (folder / f"{number}.o").write_bytes(piece)
    entries = [f"case_{start + i}" for i in range(len(objects))]
    declared = "".join(f"void {name}(void *);\n" for name in entries)
    (folder / "entries.c").write_text(f"{declared}void (*const cases[])(void *) = {{{', '.join(entries)}}};\n")
    board = board_of(target)
    files = [f"{number}.o" for number in range(len(pieces))]
    (folder / "files").write_text("\n".join(files))
    source = Path(__file__).with_suffix(".c")
    arguments = *flags, "-O1", "-w", f"-DHEAP={board.heap}", source, "entries.c", "@files", "-lm"
    build_program(board, arguments, folder / "cases.elf")
