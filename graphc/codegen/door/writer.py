"""Writer of LLVM functions that read C records: blocks, fields by name, counted loops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

_ALIGNMENT = {"ptr": 8, "i64": 8, "i32": 4, "i8": 1, "i1": 1}
"""Alignment of each type in memory, in bytes."""


class NativeWriter:
    """Collects the lines of a function. Registers and types are text in LLVM's syntax. Methods with a result return its
    register."""

    def __init__(self, layout: Mapping[str, int]):
        """``layout`` gives the offset of each ``Record.field``, in bytes, and the size of each ``Record.size``."""
        self._layout = layout
        self._lines: list[str] = []
        self._count = 0
        self.block = ""
        """Label of the current block."""
        self.label("entry")

    @property
    def body(self) -> str:
        """Lines between the braces."""
        return "\n".join(self._lines)

    def _fresh(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    # ---- values

    def value(self, expression: str) -> str:
        """Append an instruction with a result."""
        register = self._fresh("%v")
        self.do(f"{register} = {expression}")
        return register

    def do(self, instruction: str) -> None:
        """Append an instruction without a result."""
        self._lines.append(f"  {instruction}")

    def equal(self, kind: str, a: str, b: str) -> str:
        """Compare two values for equality."""
        return self.value(f"icmp eq {kind} {a}, {b}")

    def differ(self, kind: str, a: str, b: str) -> str:
        """Compare two values for inequality."""
        return self.value(f"icmp ne {kind} {a}, {b}")

    def both(self, a: str, b: str) -> str:
        """Append the conjunction of two conditions."""
        return self.value(f"and i1 {a}, {b}")

    def call(self, kind: str, function: str, arguments: str) -> str:
        """Call a function."""
        return self.value(f"call {kind} {function}({arguments})")

    def merge(self, kind: str, *sources: tuple[str, str]) -> str:
        """Append a phi of (value, block) pairs."""
        return self.value(f"phi {kind} {', '.join(f'[ {value}, %{block} ]' for value, block in sources)}")

    # ---- memory

    def load(self, kind: str, address: str) -> str:
        """Load a value from an address."""
        return self.value(f"load {kind}, ptr {address}, align {_ALIGNMENT[kind]}")

    def store(self, kind: str, value: str, address: str) -> None:
        """Store a value to an address."""
        self.do(f"store {kind} {value}, ptr {address}, align {_ALIGNMENT[kind]}")

    def offset(self, base: str, nbytes: str | int) -> str:
        """Compute the address ``nbytes`` bytes after ``base``."""
        return self.value(f"getelementptr i8, ptr {base}, i64 {nbytes}")

    def element_address(self, kind: str, base: str, index: str) -> str:
        """Compute the address of an array element."""
        return self.value(f"getelementptr {kind}, ptr {base}, i64 {index}")

    def item(self, kind: str, base: str, index: str) -> str:
        """Load an array element."""
        return self.load(kind, self.element_address(kind, base, index))

    def number(self, name: str) -> int:
        """Return a number of the layout."""
        return self._layout[name]

    def record(self, name: str, base: str, index: str) -> str:
        """Compute the address of a record in an array of records."""
        return self.offset(base, self.value(f"mul i64 {index}, {self.number(f'{name}.size')}"))

    def get(self, kind: str, base: str, field: str) -> str:
        """Load a field of a record."""
        return self.load(kind, self.offset(base, self.number(field)))

    def put(self, kind: str, value: str, base: str, field: str) -> None:
        """Store a field of a record."""
        self.store(kind, value, self.offset(base, self.number(field)))

    # ---- control flow

    def label(self, name: str) -> None:
        """Begin a block."""
        self._lines.append(f"{name}:")
        self.block = name

    def go(self, label: str) -> None:
        """Branch to a label."""
        self.do(f"br label %{label}")

    def choose(self, condition: str, yes: str, no: str) -> None:
        """Branch to one of two labels."""
        self.do(f"br i1 {condition}, label %{yes}, label %{no}")

    def need(self, condition: str, otherwise: str) -> None:
        """Continue here if the condition holds, else at a label."""
        label = self._fresh("next")
        self.choose(condition, label, otherwise)
        self.label(label)

    def avoid(self, condition: str, otherwise: str) -> None:
        """Continue here if the condition does not hold, else at a label."""
        label = self._fresh("next")
        self.choose(condition, otherwise, label)
        self.label(label)

    def give(self, kind: str, value: str) -> None:
        """Return a value."""
        self.do(f"ret {kind} {value}")

    @contextmanager
    def each(self, count: str, first: str = "0", compare: str = "ult") -> Iterator[str]:
        """Write a loop around the block: an index from ``first`` on, as long as it compares so with ``count``. Yield
        the index."""
        i, following = self._fresh("%i"), self._fresh("%following")
        loop, body, advance, done = (self._fresh(name) for name in ("loop", "body", "advance", "done"))
        before = self.block
        self.go(loop)
        self.label(loop)
        self.do(f"{i} = phi i64 [ {first}, %{before} ], [ {following}, %{advance} ]")
        self.choose(self.value(f"icmp {compare} i64 {i}, {count}"), body, done)
        self.label(body)
        yield i
        self.go(advance)
        self.label(advance)
        self.do(f"{following} = add i64 {i}, 1")
        self.go(loop)
        self.label(done)
