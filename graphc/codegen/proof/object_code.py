"""Comparison of assembly with object code: the same bytes, or the same functions of the same length."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from struct import Struct
from struct import error as StructError

from graphc.base.errors import ArtifactError, RealtimeError
from graphc.base.records import dataclass
from graphc.codegen.link.elf32 import is_elf32, read_contents, read_functions
from graphc.codegen.machine.step import Reader
from graphc.codegen.proof.assembly import ALIGNED, LABEL, TYPE, AssemblyFunction

_HEADER = Struct("<16sHHIQQQIHHHHHH")
_SECTION = Struct("<IIQQQQIIQQ")
_SYMBOL = Struct("<IBBHQQ")
_RELOCATION = Struct("<QQq")
_CONTENTS, _SYMBOLS, _RELOCATIONS = 1, 2, 4
_IN_MEMORY, _FUNCTION = 2, 2


@dataclass(frozen=True)
class ObjectCode:
    """Compared content of an object file."""

    sections: dict[str, tuple[bytes, tuple[tuple, ...]]]
    """Contents and relocations (offset, type, symbol, addend) of loaded sections, by name and number."""
    functions: dict[str, tuple[int, int]]
    """Offset in its section, and bytes, of each function."""
    undefined: frozenset[str]
    """External symbols."""
    instructions: Mapping[str, tuple[bytes, ...]] = field(default_factory=dict)
    """Instructions of each function, for processors of 32 bits; empty for others."""

    @property
    def code_bytes(self) -> int:
        """Bytes of all its functions."""
        return sum(size for _, size in self.functions.values())


def read_object_code(data: bytes) -> ObjectCode:
    """Read an object file (ELF, little-endian); raises ArtifactError for other files. Of files of 32 bits, only
    functions and names are read."""
    if is_elf32(data):
        functions = read_functions(data)
        places = {name: (f.start, f.nbytes) for name, f in functions.items()}
        instructions = {name: f.instructions for name, f in functions.items()}
        return ObjectCode({}, places, frozenset(read_contents(data).undefined), instructions)
    try:
        return _read(data)
    except (StructError, IndexError, ValueError) as error:
        raise ArtifactError(f"the object code is damaged: {error}") from error


def _read(data: bytes) -> ObjectCode:
    if not data.startswith(b"\x7fELF\x02\x01"):
        raise ArtifactError("the object code is not a 64-bit little-endian ELF file")
    *_, table, _, _, _, _, entry, count, names = _HEADER.unpack_from(data)
    rows = [_SECTION.unpack_from(data, table + i * entry) for i in range(count)]
    bodies = [data[row[4] : row[4] + row[5]] for row in rows]
    titles = [f"{_text(bodies[names], row[0])} {i}" for i, row in enumerate(rows)]
    symbols: list[tuple[str, tuple]] = []
    for row, body in zip(rows, bodies, strict=True):
        if row[1] == _SYMBOLS:
            symbols = [(_text(bodies[row[6]], s[0]), s) for s in _SYMBOL.iter_unpack(body)]
    numbers = {i: n for n, i in enumerate(i for i, row in enumerate(rows) if _is_loaded(row))}
    relocations: dict[int, list[tuple]] = {}
    for row, body in zip(rows, bodies, strict=True):
        if row[1] == _RELOCATIONS:
            for offset, info, addend in _RELOCATION.iter_unpack(body):
                name, symbol = symbols[info >> 32]
                meant = name or titles[symbol[3]].split()[0]
                relocations.setdefault(row[7], []).append((offset, info & 0xFFFFFFFF, meant, addend))
    sections = {
        f"{titles[i].split()[0]} {n}": (bodies[i] if rows[i][1] == _CONTENTS else b"", tuple(relocations.get(i, ())))
        for i, n in numbers.items()
    }
    functions = {name: (s[4], s[5]) for name, s in symbols if s[1] & 15 == _FUNCTION and s[3]}
    return ObjectCode(sections, functions, frozenset(name for name, s in symbols if name and not s[3]))


def _text(body: bytes, offset: int) -> str:
    return body[offset : body.index(b"\0", offset)].decode()


def _is_loaded(row: tuple) -> bool:
    return bool(row[2] & _IN_MEMORY) and row[1] == _CONTENTS


def check_same(code: ObjectCode, again: ObjectCode, machine: Reader) -> None:
    """Raise RealtimeError unless two files hold the same bytes and relocations. Padding may differ: many short nops or
    few long ones."""
    for name in sorted(code.sections.keys() | again.sections.keys()):
        first, second = (x.sections.get(name, (b"", None)) for x in (code, again))
        if _plain(first[0], machine) != _plain(second[0], machine) or first[1] != second[1]:
            raise RealtimeError(f"the analyzed assembly gives other bytes in {name.split()[0]}")


def _plain(code: bytes, machine: Reader) -> bytes:
    """Return the code with its padding zeroed."""
    if machine.filler is None:
        return code
    return re.sub(b"(?:" + machine.filler.pattern + b")+", lambda x: bytes(len(x[0])), code, flags=re.DOTALL)


def check_layout(code: ObjectCode, functions: Sequence[AssemblyFunction], machine: Reader) -> None:
    """Raise RealtimeError unless the code's functions match the assembly. For a machine with instructions of one
    length, compare starts and lengths; for those of 32 bits, the instructions by number; for others, only the names.
    Note the padding before aligned locations."""
    if code.functions.keys() != {f.name for f in functions}:
        raise RealtimeError("the analyzed assembly has other functions than the object code")
    if code.instructions:
        for function in functions:
            _check_instructions(function, code.instructions[function.name], machine)
        return
    address = 0
    for function in functions:
        start = None
        for number in range(len(function.lines)):
            if number in function.aligned:
                added = _padding(address, *function.aligned[number], machine)
                address += added
                function.filling[number] = -(-added // machine.filling_bytes)
            start = address if start is None else start
            address += machine.instruction_bytes
        if machine.instruction_bytes and code.functions[function.name] != (start, address - (start or 0)):
            raise RealtimeError(
                f"@{function.name} of the analyzed assembly has another address or length in the object code"
            )


def _check_instructions(function: AssemblyFunction, instructions: Sequence[bytes], machine: Reader) -> None:
    """Raise RealtimeError unless a function has as many instructions as its assembly, and those with the suffix ``.w``
    take four bytes. Note the padding, which only aligned locations have."""
    position = 0
    fits = True
    steps = machine.steps(function.lines, frozenset(function.labels))
    for number, line in enumerate([*function.lines, None]):
        start = position
        while (
            number in function.aligned and position < len(instructions) and _is_filler(instructions[position], machine)
        ):
            position += 1
        function.filling[number] = position - start
        if line is not None:
            size = len(instructions[position]) if position < len(instructions) else 0
            fits = fits and size >= (4 if line.mnemonic.endswith(".w") else 2)
            position += steps[number].instructions
    if not fits or position != len(instructions):
        raise RealtimeError(f"@{function.name} of the analyzed assembly has other instructions in the object code")


def _is_filler(instruction: bytes, machine: Reader) -> bool:
    return machine.filler is not None and machine.filler.fullmatch(instruction) is not None


def _padding(address: int, power: int, most: int, machine: Reader) -> int:
    """Return the padding bytes before an aligned address; the maximum if addresses are unknown."""
    if not machine.instruction_bytes:
        return min(most, (1 << power) - 1)
    needed = -address % (1 << power)
    return needed if needed <= most else 0


# ---- padding before aligned locations, measured by labels around it

_MARKS = ".graphc_marks"
_RECORD = Struct("<II")


def marked(assembly: str) -> str:
    """Return the assembly with labels around each alignment in a function, and a section with the offset of each from
    the start of the function and its bytes. The code itself does not change."""
    lines: list[str] = []
    records: list[str] = []
    names = {match[1] for line in assembly.splitlines() if (match := TYPE.match(line))}
    function = ""
    for line in assembly.splitlines():
        label = LABEL.match(line)
        function = label[1] if label and label[1] in names else "" if line.startswith("\t.size") else function
        if function and ALIGNED.match(line):
            start, end = (f".Lgraphc_{side}{len(records)}" for side in ("from", "to"))
            records.append(f"\t.long\t{start}-{function}, {end}-{start}")
            lines += [f"{start}:", line, f"{end}:"]
        else:
            lines.append(line)
    return "\n".join([*lines, f'\t.section\t{_MARKS},"",@progbits', *records, ""])


def note_filling(code: ObjectCode, marks: bytes, functions: Sequence[AssemblyFunction], machine: Reader) -> None:
    """Note the padding of functions. ``marks`` is object code of ``marked`` assembly."""
    records = _RECORD.iter_unpack(section_of(marks, _MARKS))
    text = next((body for name, (body, _) in code.sections.items() if name.startswith(".text")), b"")
    for function in functions:
        start = code.functions[function.name][0]
        # NOTE: padding before the first instruction, or after the last one, never runs.
        for number in sorted(n for n in function.aligned if 0 < n < len(function.lines)):
            offset, size = next(records)
            filling = text[start + offset : start + offset + size]
            function.filling[number] = (
                len(machine.filler.findall(filling)) if machine.filler else -(-size // machine.filling_bytes)
            )


def section_of(data: bytes, name: str) -> bytes:
    """Return the contents of a section of object code by its name; empty if it is missing."""
    *_, table, _, _, _, _, entry, count, names = _HEADER.unpack_from(data)
    rows = [_SECTION.unpack_from(data, table + i * entry) for i in range(count)]
    titles = data[rows[names][4] : rows[names][4] + rows[names][5]]
    return next((data[row[4] : row[4] + row[5]] for row in rows if _text(titles, row[0]) == name), b"")
