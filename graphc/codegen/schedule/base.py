"""Protocols of program passes and nest steps: named, frozen records that return their result and a count of changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from itertools import zip_longest
from typing import Protocol

from graphc.base.pass_runner import PassRun
from graphc.base.records import dataclass
from graphc.codegen.machine.target import Target
from graphc.codegen.schedule.contraction.pack import Packing
from graphc.codegen.schedule.contraction.register_block import Tile
from graphc.codegen.schedule.forms import Form, Forms
from graphc.codegen.schedule.threads.execution import Execution
from graphc.ir.kernel.index import Axis
from graphc.ir.kernel.map import Names
from graphc.ir.kernel.statements import Kernel, Program


@dataclass(frozen=True)
class Context:
    """Facts available to all passes of one compile besides the program."""

    forms: Forms
    """Memo of the canonical forms of kernels, for the target."""
    tuned: Mapping[str, str] = field(default_factory=dict)
    """Labels of register blocks, by the keys of ``find_blocks``; they override the choice by estimate."""

    @property
    def target(self) -> Target:
        """Machine for which the program is compiled."""
        return self.forms.target


@dataclass(frozen=True)
class Scheduled:
    """A program on its way through the schedule, with the decisions that its loops do not show."""

    program: Program
    prepacking: Program | None = None
    """Program that runs once for many calls, split off by ``prepacking``; its memory is not planned."""
    execution: Execution = field(default_factory=Execution)


@dataclass(frozen=True)
class PassResult:
    """Result of a program pass."""

    scheduled: Scheduled
    changed: int
    """Number of changed kernels and calls, or of decisions; 0 where the pass found nothing to do."""
    reasons: tuple[str, ...] = ()
    """Reasons of the pass for its choices, a line each."""
    steps: tuple[PassRun, ...] = ()
    """Runs of the nest steps, each added up over all kernels."""


class ProgramPass(Protocol):
    """Protocol of a pass: a frozen dataclass with options as fields, whose docstring has Needs, Does and Leaves."""

    @property
    def name(self) -> str:
        """Name of the pass in options, stages and errors."""
        ...

    def run(self, scheduled: Scheduled, context: Context) -> PassResult:
        """Transform a valid program into a valid program with the same arguments and effects."""
        ...


@dataclass(frozen=True)
class Nest:
    """A kernel on its way through the steps."""

    kernel: Kernel
    names: Names
    """Generator of names that the kernel does not use."""
    constants: frozenset[str] = frozenset()
    """Buffers to which calls bind call-invariant storages."""
    form: Form | None = None
    """Its canonical form, after the step ``canonical-form``."""
    tile: Tile | None = None
    """The register block into which it was cut, if any; steps that choose plain lanes then do nothing."""
    packing: Packing | None = None
    """Layout of the packed operand that the register block reads from the argument ``packed``."""
    row_packing: Packing | None = None
    """Layout of the packed broadcast operand, read from the argument ``packed_rows``."""
    narrow: frozenset[Axis] = frozenset()
    """Loops whose loads are narrower than a cache line."""


@dataclass(frozen=True)
class StepResult:
    """Result of a step on a nest."""

    nest: Nest
    changed: int
    """1 where the step rewrote the nest or made a choice (or a count of choices), 0 where it had nothing to do."""
    reasons: tuple[str, ...] = ()


class NestStep(Protocol):
    """Protocol of a step: a frozen dataclass like a program pass, applied to one kernel."""

    @property
    def name(self) -> str:
        """Name of the step in options and errors."""
        ...

    def run(self, nest: Nest, context: Context) -> StepResult:
        """Transform a kernel into an equivalent one."""
        ...


def count_changes(before: Program, after: Program) -> int:
    """Count the new kernels of ``after``, plus the positions at which the calls differ."""
    old_kernels = {id(k) for k in before.kernels}
    pairs = zip_longest(before.calls, after.calls)
    return sum(id(k) not in old_kernels for k in after.kernels) + sum(a is not b for a, b in pairs)
