"""Nest steps, from a lowered kernel to one with lanes or register blocks: a literal list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from graphc.base.pass_runner import Outcome, PassRun, PipelineRunner
from graphc.base.records import dataclass
from graphc.codegen.machine.target import Target
from graphc.codegen.schedule.base import Context, Nest, NestStep, StepResult
from graphc.codegen.schedule.contraction.for_sizes import suit_small_sizes
from graphc.codegen.schedule.contraction.match import Contraction
from graphc.codegen.schedule.contraction.nest import apply_tile
from graphc.codegen.schedule.contraction.pack import Packed, make_packing, make_row_packing
from graphc.codegen.schedule.contraction.register_block import Tile
from graphc.codegen.schedule.expansion.expand import expand
from graphc.codegen.schedule.forms import register_block
from graphc.codegen.schedule.lanes.choose import vectorise
from graphc.codegen.schedule.lanes.transpose import holds_transposed, transposed_tiles
from graphc.codegen.schedule.loops.index_set_splitting import split_index_sets
from graphc.codegen.schedule.loops.transform import hoist
from graphc.codegen.schedule.reduce.initial_values import start_at_addends
from graphc.codegen.schedule.reduce.masked_sums import end_masked_sums
from graphc.codegen.schedule.reduce.narrow_loads import find_narrow_loads
from graphc.ir.kernel.index import Axis
from graphc.ir.kernel.map import Names, map_statements
from graphc.ir.kernel.statements import Buffer, Loop, Stmt, Store, walk
from graphc.ir.kernel.text import print_kernel
from graphc.ir.kernel.verify import verify_kernel

PACKED = "packed"
"""Name of the argument from which a register block reads its packed operand."""
PACKED_ROWS = "packed_rows"
"""Name of the argument from which it reads the packed operand whose elements are broadcast."""


@dataclass(frozen=True)
class CanonicalForm:
    """Bring a nest into its canonical form.

    Needs: a kernel without lanes. Does: splits axes so that quotients become axes, orders loops by their strides in
    memory, merges loops that every index treats as one. Leaves: one nest for all kernels with the same meaning.

    ``for p in 0..12: y[p] = x[(p div 4) + (p mod 4) * 3]`` ->
    ``for i in 0..3: for j in 0..4: y[i * 4 + j] = x[i + j * 3]``.
    """

    name: str = "canonical-form"

    def run(self, nest: Nest, context: Context) -> StepResult:
        """Look the form up, or compute it."""
        form = context.forms.find(nest.kernel, nest.constants)
        kernel = replace(nest.kernel, body=form.body)
        changed = int(form.body is not nest.kernel.body)
        return StepResult(replace(nest, kernel=kernel, names=Names(first=form.names), form=form), changed)


@dataclass(frozen=True)
class Contract:
    """Tile a contraction into register blocks.

    Needs: a canonical nest. Does: cuts a sum of products of two loads into the register block with the least estimated
    cycles, unless plain lanes are expected to take less than half of them. Leaves: the nest of that block, with an
    argument ``packed`` where an operand's layout does not suit it; any other nest unchanged.

    ``c[i, j] += a[i, k] * b[k, j]`` -> rows of ``i`` by vectors of ``j`` in registers while ``k`` runs.
    """

    name: str = "contraction"

    def run(self, nest: Nest, context: Context) -> StepResult:
        """Apply the tuned register block, or the one with the best estimate."""
        if nest.form is None or context.tuned:
            tiled = register_block(nest.kernel, nest.constants, context.target, context.tuned)
        else:
            tiled = nest.form.tiled
        if tiled is None:
            return StepResult(nest, 0)
        contraction, tile = tiled
        if not context.tuned:
            tile = suit_small_sizes(nest.kernel, tile, context.target, nest.constants)
        packed = _packed(contraction, tile, context.target)
        panels = None if tile.in_panels else packed.panels
        extra = [Buffer(p.buffer, p.load.dtype, p.size, "in") for p in (panels, packed.rows) if p is not None]
        scratch = tuple(b for b in nest.kernel.buffers if b.role == "scratch")
        kernel = replace(nest.kernel, buffers=(*nest.kernel.arguments, *extra, *scratch)) if extra else nest.kernel
        blocked = apply_tile(contraction, tile, kernel, context.target, nest.names, packed)
        reason = f"register block {tile.label}: {tile.cycles:.3g} cycles estimated, the least"
        tiled_nest = replace(nest, kernel=blocked, tile=tile, packing=panels, row_packing=packed.rows)
        return StepResult(tiled_nest, 1, (reason,))


def _packed(c: Contraction, tile: Tile, target: Target) -> Packed:
    """Return the packings of a register block's operands."""
    panels = make_packing(c, tile, target, PACKED) if tile.pack is not None else None
    return Packed(panels, make_row_packing(c, tile, target, PACKED_ROWS))


@dataclass(frozen=True)
class IndexSetSplitting:
    """Cut loops where conditions on their index change.

    Needs: a canonical nest. Does: cuts parallel loops and short reductions where conditions on their axis change.
    Leaves: loops that test fewer conditions. Register blocks stay unchanged.

    ``for i in 0..10: x[i] if i < 4 else 0`` -> ``for i in 0..4: x[i]``, ``for i in 4..10: 0``.
    """

    name: str = "index-set-splitting"

    def run(self, nest: Nest, context: Context) -> StepResult:
        """Split every loop of the nest."""
        if nest.tile:
            return StepResult(nest, 0)
        return _with_body(nest, split_index_sets(nest.kernel.body, nest.names, context.target.costs.loops))


@dataclass(frozen=True)
class Hoist:
    """Move loop-invariant code out of loops.

    Needs: a nest without lanes. Does: moves statements out of loops on which they do not depend. Leaves: an equivalent
    nest with fewer operations. Register blocks stay unchanged.

    ``for i: for j: y[i, j] = exp(a[i]) * x[j]`` -> ``for i: e = exp(a[i]); for j: y[i, j] = e * x[j]``.
    """

    name: str = "hoisting"

    def run(self, nest: Nest, context: Context) -> StepResult:
        """Hoist from the inner loops outwards."""
        if nest.tile:
            return StepResult(nest, 0)
        stored = {s.buffer for s, _ in walk(nest.kernel.body) if isinstance(s, Store)}
        return _with_body(nest, hoist(nest.kernel.body, stored))


@dataclass(frozen=True)
class NarrowLoads:
    """Find loops that load less than a cache line at a time.

    Needs: a nest without lanes. Does: finds the innermost loops that only wait for the LLC. Leaves: their axes, along
    which ``lanes`` loads less than a cache line at a time; the kernel unchanged.

    ``for j: s += x[i, j]`` over rows in the last-level cache -> ``narrow = {j}``.
    """

    name: str = "narrow-loads"

    def run(self, nest: Nest, context: Context) -> StepResult:
        """Examine every innermost loop."""
        narrow = frozenset[Axis]() if nest.tile else find_narrow_loads(nest.kernel, context.target)
        reasons = tuple(f"loop {axis.name} does little but wait for the LLC" for axis in sorted(narrow, key=_name))
        return StepResult(replace(nest, narrow=narrow) if narrow else nest, len(narrow), reasons)


@dataclass(frozen=True)
class Lanes:
    """Vectorise a nest.

    Needs: a nest without lanes. Does: turns transposes into square blocks in registers, and puts the cheapest axes of
    other nests across lanes. Leaves: a nest of vectors with loops for the remainder. Register blocks stay unchanged.

    ``for i in 0..100: y[i] = x[i]`` -> ``for i in 0..6: vector l in 0..16: y[i * 16 + l] = x[i * 16 + l]``, and the
    last 4 elements.
    """

    name: str = "lanes"

    def run(self, nest: Nest, context: Context) -> StepResult:
        """Choose by the estimated cost of each axis."""
        if nest.tile:
            return StepResult(nest, 0)
        return _with_body(nest, put_lanes(nest.kernel.body, context.target, nest.names, nest.narrow))


@dataclass(frozen=True)
class MaskedSums:
    """Stop masked sums early.

    Needs: register blocks. Does: ends sums of one row, over operands larger than L1, where only zero weights follow or
    a mask replaces the sums. Leaves: loops that read only unmasked elements; other nests unchanged.

    ``for i: s += weigh(p[i], v[i])`` -> ``n`` is the index after the last nonzero ``p[i]``, and
    ``for i until n: s += weigh(p[i], v[i])``.
    """

    name: str = "masked-sums"

    def run(self, nest: Nest, context: Context) -> StepResult:
        """Examine every register block of one row."""
        if nest.tile is None or nest.tile.rows > 1:
            return StepResult(nest, 0)
        body = end_masked_sums(nest.kernel.body, nest.names, context.target)
        reasons = ("sums end after the last element that a mask lets through",) if body != nest.kernel.body else ()
        return replace(_with_body(nest, body if reasons else nest.kernel.body), reasons=reasons)


@dataclass(frozen=True)
class InitialValues:
    """Start sums of integers at what is added to them.

    Needs: loops as they will run. Does: starts a sum of integers at the element that is added to its total, which saves
    the addition. Leaves: sums of floats, whose rounding depends on the order.

    ``s = 0; for k: s += a[k] * b[k]; y[j] = s + c[j]`` -> ``s = c[j]; for k: s += a[k] * b[k]; y[j] = s``.
    """

    name: str = "initial-values"

    def run(self, nest: Nest, context: Context) -> StepResult:
        """Examine every block of the nest."""
        return _with_body(nest, start_at_addends(nest.kernel.body))


@dataclass(frozen=True)
class Expand:
    """Expand transcendental operations.

    Needs: a kernel that no later step changes. Does: expands transcendental operations into polynomials. Leaves:
    arithmetic that every target has, without calls of a library.

    ``y = exp(x)`` -> ``n = round(x * log2(e)); y = 2**n * polynomial(x - n * log(2))``.
    """

    name: str = "expansion"

    def run(self, nest: Nest, context: Context) -> StepResult:
        """Expand every statement of the kernel."""
        kernel = expand(nest.kernel)
        return StepResult(replace(nest, kernel=kernel), int(kernel is not nest.kernel))


STEPS: tuple[NestStep, ...] = (
    # Equal kernels become equal nests, so that each form is computed once.
    CanonicalForm(),
    # Either register blocks ...
    Contract(),
    # ... or plain lanes: conditions go first because they block all later steps.
    IndexSetSplitting(),
    Hoist(),
    NarrowLoads(),
    Lanes(),
    MaskedSums(),
    InitialValues(),
    # Last, because one operation is easier to move and to price than the twenty into which it expands.
    Expand(),
)
"""Steps on every kernel, from first to last."""


def run_steps(nest: Nest, context: Context, steps: tuple[NestStep, ...] = STEPS) -> tuple[Nest, list[PassRun]]:
    """Return the nest after all steps, with a record of each step's run."""

    def run(step: NestStep, current: Nest) -> Outcome[Nest]:
        result = step.run(current, context)
        return Outcome(result.nest, result.changed, result.reasons)

    runner = PipelineRunner[NestStep, Nest](run, _verify, _text, is_stage=False)
    return runner(steps, nest)


def put_lanes(
    body: tuple[Stmt, ...], target: Target, names: Names, narrow: frozenset[Axis] = frozenset()
) -> tuple[Stmt, ...]:
    """Vectorise every nest: as square blocks with register transposes, or with its cheapest axes across lanes."""

    def enter(loop: Loop) -> Sequence[Stmt] | None:
        tiled = transposed_tiles(loop, target, names)
        if tiled is not None or holds_transposed(loop, target):
            return tiled
        return vectorise((loop,), target, names, narrow)

    return map_statements(body, enter=enter)


def _with_body(nest: Nest, body: tuple[Stmt, ...]) -> StepResult:
    return StepResult(replace(nest, kernel=replace(nest.kernel, body=body)), int(body is not nest.kernel.body))


def _name(axis: Axis) -> str:
    return axis.name


def _verify(nest: Nest) -> None:
    verify_kernel(nest.kernel)


def _text(nest: Nest) -> str:
    return print_kernel(nest.kernel)
