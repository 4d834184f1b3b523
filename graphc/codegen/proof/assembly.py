"""Parser of LLVM's assembly: functions, their instructions in order, and their labels."""

from __future__ import annotations

import re
from dataclasses import field

from graphc.base.records import dataclass
from graphc.codegen.machine.step import Line

LABEL = re.compile(r"^([.$\w]+):")
TYPE = re.compile(r"^\s*\.type\s+([.$\w]+)\s*,\s*[@%]function")
ALIGNED = re.compile(r"^\s*\.p2align\s+(\d+)(?:\s*,[^,]*)?(?:,\s*(\d+))?")
_STRING = re.compile(r'"[^"]*"')


@dataclass
class AssemblyFunction:
    """One function of a module."""

    name: str
    lines: list[Line] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    """Number of the instruction after each label."""
    aligned: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Alignment before instructions: (power of two, maximum bytes of padding)."""
    filling: dict[int, int] = field(default_factory=dict)
    """Maximum number of padding instructions before an instruction."""


def read_assembly(text: str, comment: str = "#") -> list[AssemblyFunction]:
    """Return the functions of a module, in order. ``comment`` starts a comment."""
    functions: list[AssemblyFunction] = []
    names: set[str] = set()
    before: tuple[int, int] | None = None
    for number, raw in enumerate(text.splitlines(), 1):
        line = _without_comment(raw, comment)
        if declared := TYPE.match(line):
            names.add(declared[1])
        elif aligned := ALIGNED.match(line):
            before = int(aligned[1]), int(aligned[2] or 1 << int(aligned[1]))
            if functions:
                functions[-1].aligned[len(functions[-1].lines)] = before
        elif label := LABEL.match(line):
            if label[1] in names:
                functions.append(AssemblyFunction(label[1], aligned={0: before} if before else {}))
            elif functions:
                functions[-1].labels[label[1]] = len(functions[-1].lines)
        elif line.startswith(("\t", " ")) and line.strip() and not line.strip().startswith("."):
            functions[-1].lines.append(_instruction(line.strip(), number))
    return functions


def _without_comment(line: str, comment: str) -> str:
    if line.lstrip().startswith("//"):
        return ""
    bare = _STRING.sub("", line)
    for mark in ("//", comment):
        # NOTE: where // begins comments, the other sign (#) begins literals.
        position = bare.find(mark) if mark == "//" or comment != "//" else -1
        if position >= 0:
            bare = bare[:position]
    return bare.rstrip()


def _instruction(text: str, number: int) -> Line:
    mnemonic, _, rest = text.replace("\t", " ").partition(" ")
    if mnemonic in ("lock", "rep", "repne", "{evex}", "{vex}"):
        second, _, rest = rest.strip().partition(" ")
        mnemonic = second if mnemonic.startswith("{") else f"{mnemonic} {second}"
    return Line(mnemonic.rstrip(";"), tuple(split_operands(rest)), number)


def split_operands(text: str) -> list[str]:
    """Return the operands between commas outside of brackets."""
    operands, depth, current = [], 0, ""
    for character in text.strip():
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            operands.append(current.strip())
            current = ""
        else:
            current += character
    return [*operands, current.strip()] if current.strip() else operands
