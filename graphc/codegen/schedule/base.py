"""What a program pass and a step on a nest are: named, frozen records that return what they leave and what changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Protocol

from graphc.base.pass_runner import PassRun
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
    """What all passes of one compile may look at besides the program."""

    forms: Forms
    """The forms of kernels that are known, for the target."""
    tuned: Mapping[str, str] = field(default_factory=dict)
    """Labels of register blocks by the keys of ``find_blocks``, which are taken instead of those with the best
    estimate."""

    @property
    def target(self) -> Target:
        """The machine that the program is made for."""
        return self.forms.target


@dataclass(frozen=True)
class Scheduled:
    """A program on its way through the schedule, with what has been decided beside its loops."""

    program: Program
    prepacking: Program | None = None
    """What is computed once for many calls, split off by ``prepacking``; its memory is not planned."""
    execution: Execution = field(default_factory=Execution)


@dataclass(frozen=True)
class PassResult:
    """What a program pass leaves."""

    scheduled: Scheduled
    changed: int
    """How many kernels and calls are not as they were, or how many decisions were taken; 0 where the pass found nothing
    to do."""
    reasons: tuple[str, ...] = ()
    """Why it chose what it chose, a line for each choice."""
    steps: tuple[PassRun, ...] = ()
    """What each step on a nest did to all kernels together."""


class ProgramPass(Protocol):
    """A frozen dataclass whose fields are its options; its docstring says what it needs, does and leaves."""

    @property
    def name(self) -> str:
        """The name under which options, stages and errors mention the pass."""
        ...

    def run(self, given: Scheduled, context: Context) -> PassResult:
        """Transforms a valid program into a valid program of the same arguments and effects."""
        ...


@dataclass(frozen=True)
class Nest:
    """A kernel on its way through the steps."""

    kernel: Kernel
    names: Names
    """Gives names that the kernel does not use."""
    constants: frozenset[str] = frozenset()
    """Buffers to which calls bind what is call-invariant."""
    form: Form | None = None
    """Its canonical form, once that is found."""
    tile: Tile | None = None
    """The register block that it was cut into; steps that choose plain lanes have nothing to do then."""
    packing: Packing | None = None
    """What must be packed for the register block, which is read from the argument ``packed``."""
    row_packing: Packing | None = None
    """The same of the operand whose elements are broadcast, which is read from ``packed_rows``."""
    narrow: frozenset[Axis] = frozenset()
    """Loops that read in pieces of less than a cache line."""


@dataclass(frozen=True)
class StepResult:
    """What a step leaves."""

    nest: Nest
    changed: int
    """1 where the step wrote the nest anew or chose something, 0 where it had nothing to do."""
    reasons: tuple[str, ...] = ()


class NestStep(Protocol):
    """A frozen dataclass, as a program pass; it sees one kernel."""

    @property
    def name(self) -> str:
        """The name under which options and errors mention the step."""
        ...

    def run(self, nest: Nest, context: Context) -> StepResult:
        """Transforms a kernel into an equivalent one."""
        ...


def count_changes(before: Program, after: Program) -> int:
    """How many kernels of ``after`` are new, and at how many places the calls differ."""
    known = {id(k) for k in before.kernels}
    pairs = zip_longest(before.calls, after.calls)
    return sum(id(k) not in known for k in after.kernels) + sum(a is not b for a, b in pairs)
