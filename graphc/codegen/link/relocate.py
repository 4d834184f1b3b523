"""Relocation of linked sections: global offset table, stubs, and the values that instructions and words hold."""

from __future__ import annotations

from graphc.base.errors import CompileError
from graphc.codegen.link.layout import SectionFlag
from graphc.codegen.link.reader import RelocationEntry, Section, Symbol
from graphc.codegen.link.resolve import LinkUnit
from graphc.codegen.machine.linkage import PAGE, WORD, Relocation


class Relocator:
    """Entries of the global offset table (GOT) and stubs that a program needs, and its relocated sections.

    The sections of the program, of the GOT and of the stubs need addresses before sections are relocated.
    """

    def __init__(self, program: LinkUnit):
        self.program, self.linkage = program, program.linkage
        self.table: dict[str | Symbol, int] = {}
        """Index of the GOT entry, by the symbol or, for one of another library, by its name."""
        self.stubs: dict[str, int] = {}
        """Index of the stub, by name."""
        self.words: list[tuple[Section, RelocationEntry]] = []
        """Words outside of the GOT that hold a whole address."""
        for section in program.sections:
            for relocation in section.relocations:
                self._count(section, relocation)
        self.got = self._reserved(".got", len(self.table) * WORD, WORD, SectionFlag.WRITE)
        self.plt = self._reserved(".plt", len(self.stubs) * self.linkage.stub_bytes, 16, SectionFlag.EXECUTE)

    def _reserved(self, name: str, nbytes: int, alignment: int, flag: SectionFlag) -> Section:
        return Section(name, SectionFlag.IN_MEMORY | flag, alignment, nbytes, bytes(nbytes))

    def _count(self, section: Section, relocation: RelocationEntry) -> None:
        symbol, value = self.program.definition(relocation.symbol), relocation.rule.value
        key = symbol or relocation.symbol.name
        if value.startswith("got"):
            self.table.setdefault(key, len(self.table))
        elif value == "address":
            self.words.append((section, relocation))
        elif isinstance(key, str) and value != "nothing":
            self.table.setdefault(key, len(self.table))
            self.stubs.setdefault(key, len(self.stubs))

    def word(self, key: str | Symbol) -> int:
        """Return the address of a GOT entry."""
        return self.got.address + self.table[key] * WORD

    def all_stubs(self) -> bytes:
        """Return the code of the stubs."""
        first, nbytes = self.plt.address, self.linkage.stub_bytes
        words = [self.word(name) for name in self.stubs]
        return b"".join(self.linkage.stub(first + i * nbytes, word) for i, word in enumerate(words))

    def applied(self, section: Section) -> bytes:
        """Return the contents of a section with all relocations but ``words``."""
        data, upper = bytearray(section.data), dict[int, int]()
        for relocation in section.relocations:
            if relocation.rule.value not in ("pair", "address", "nothing"):
                value = upper[section.address + relocation.offset] = self._value(section, relocation)
                write_value(data, section, relocation, value)
        for relocation in section.relocations:
            if relocation.rule.value == "pair":
                value = upper.get(self._address(relocation.symbol))
                if value is None:
                    raise CompileError(f"{relocation.rule.name} in {section.name} has no matching upper part")
                write_value(data, section, relocation, value)
        return bytes(data)

    def _address(self, symbol: Symbol) -> int:
        definition = self.program.definition(symbol)
        if definition is not None:
            return definition.address
        return self.plt.address + self.stubs[symbol.name] * self.linkage.stub_bytes

    def _value(self, section: Section, relocation: RelocationEntry) -> int:
        here, value = section.address + relocation.offset, relocation.rule.value
        if value.startswith("got"):
            there = self.word(self.program.definition(relocation.symbol) or relocation.symbol.name) + relocation.addend
        else:
            there = self._address(relocation.symbol) + relocation.addend
        if value.endswith("absolute"):
            return there
        return there - here if value in ("relative", "got") else (there // PAGE - here // PAGE) * PAGE


def write_value(data: bytearray, section: Section, relocation: RelocationEntry, value: int) -> None:
    """Write the value of a relocation into the contents of its section. Raises CompileError if it does not fit."""
    how: Relocation = relocation.rule
    if not how.fits(value):
        raise CompileError(
            f"{how.name} of {relocation.symbol.name or section.name} is too far away: {value} bytes",
            remedy="link a smaller library: put constants into a separate file",
        )
    where = slice(relocation.offset, relocation.offset + how.nbytes)
    new = how.patch(int.from_bytes(data[where], "little"), value)
    data[where] = (new % (1 << 8 * how.nbytes)).to_bytes(how.nbytes, "little")
