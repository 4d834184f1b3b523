"""Multi-versioning: nests whose lanes are mostly empty at a dimension's least size get a version for that size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from graphc.base.dtypes import float32
from graphc.base.errors import VerifyError
from graphc.base.sizes.named_dims import dimensions, size_of
from graphc.base.sizes.size import LARGEST, Dimension, at, hint
from graphc.codegen.schedule.base import Context, Nest
from graphc.codegen.schedule.contraction.for_sizes import cycles_at
from graphc.codegen.schedule.contraction.pack import Packing
from graphc.codegen.schedule.estimate.cost import StatementCounts
from graphc.codegen.schedule.steps import run_steps
from graphc.ir.kernel.dims import bind_kernel, dims_of_kernel
from graphc.ir.kernel.map import BodyCopier, Names, map_parts, map_statements
from graphc.ir.kernel.statements import Kernel, Load, Loop, walk
from graphc.ir.kernel.verify import verify_kernel

_SUFFIX = "_least"
"""Suffix of buffers that belong to the version for the least size."""


@dataclass(frozen=True)
class Version:
    """A kernel of two nests: one for the least size of a dimension, one for all other sizes."""

    kernel: Kernel
    packing: Packing | None
    """Packing for the version for the least size, which reads it from the argument ``packing.buffer``."""
    reason: str


def with_least_version(kernel: Kernel, nest: Nest, context: Context) -> Version | None:
    """Return a scheduled kernel with an added version for the least size of a dimension that runs across lanes.

    The version binds the dimension to that size and goes through the same steps. Returns None unless the version is
    expected to be clearly faster and to read few more bytes of weights. ``kernel`` is the unscheduled ``nest``.
    """
    remaining = dims_of_kernel(nest.kernel)  # a dimension vanishes where all loops over it never run
    candidates = (d for name, d in dims_of_kernel(kernel).items() if name in remaining)
    dimension = next((d for d in candidates if _leaves_lanes_empty(nest, d, context)), None)
    if dimension is None or (nest.packing is not None and nest.packing.load.buffer not in nest.constants):
        return None
    sizes, k = {dimension.name: dimension.low}, context.target.costs.lanes
    small, _ = run_steps(Nest(bind_kernel(kernel, sizes), Names(), nest.constants), context)
    if _more_weights(nest, small) > context.target.l2_bytes * k.version_weights:
        return None
    before, after = _costs(nest, small, sizes, context)
    if not after or after * k.version_gain > before or after + k.version_saved > before:
        return None  # a loop without iterations (``after`` is 0) needs no version either
    version = _joined(nest, small, dimension)
    try:
        verify_kernel(version.kernel)
    except VerifyError:  # the verifier cannot always prove that an index within a part of a size is within the size
        return None
    why = f"a version of its own for {dimension.name} = {dimension.low}, there {before / after:.2g} times as fast"
    return replace(version, reason=f"{why} by the estimate")


def _leaves_lanes_empty(nest: Nest, dimension: Dimension, context: Context) -> bool:
    """Check whether an axis across lanes is shorter than a register when the dimension is smallest."""
    if not 1 <= dimension.low < dimension.hint or nest.form is None:
        return False
    if nest.tile is not None:
        across = [nest.tile.vector]
    else:
        scalar_loops = {s.axis.name for s, _ in walk(nest.kernel.body) if isinstance(s, Loop)}
        axes = [s.axis for s, _ in walk(nest.form.body) if isinstance(s, Loop)]
        across = [axis for axis in axes if axis.name not in scalar_loops]
    lanes = context.target.lanes(float32)
    return any(_least(x.extent, dimension) < min(lanes, hint(x.extent)) for x in across)


def _costs(nest: Nest, small: Nest, sizes: Mapping[str, int], context: Context) -> tuple[float, float]:
    """Return the estimated costs of both nests for these sizes: cycles of register blocks, else statement counts."""
    if nest.form is not None and nest.tile is not None and small.tile is not None:
        canonical = replace(nest.kernel, body=nest.form.body)
        return cycles_at(canonical, nest.tile, sizes, context.target, nest.constants), small.tile.cycles
    before = StatementCounts().body(bind_kernel(nest.kernel, sizes).body)
    return before, StatementCounts().body(small.kernel.body)


def _least(size: Any, dimension: Dimension) -> int:
    """Evaluate a size with ``dimension`` at its least value and all others at their expected values."""
    return at(size, {d: d.low if d == dimension else d.hint for d in dimensions((size,)).values()})


def _more_weights(nest: Nest, small: Nest) -> int:
    """Return the bytes of constants that only the version for the least size reads, plus its packed copies."""
    read = [{s.buffer for s, _ in walk(x.kernel.body) if isinstance(s, Load)} for x in (nest, small)]
    extra = [b for b in small.kernel.arguments if b.name in read[1] - read[0] and b.name in small.constants]
    nbytes = sum(hint(b.size) * b.dtype.itemsize for b in extra)
    if small.packing is not None:
        fixed = small.packing.load.buffer in small.constants
        nbytes += hint(small.packing.size) * small.packing.load.dtype.itemsize if fixed else LARGEST
    return nbytes


def _joined(nest: Nest, small: Nest, dimension: Dimension) -> Version:
    """Return both nests in one kernel, each in a loop that runs once or not at all."""
    kernel, names = nest.kernel, nest.names
    own = {b.name: b.name + _SUFFIX for b in small.kernel.buffers if b.role == "scratch"}
    packing = small.packing
    if packing is not None:
        own[packing.buffer] = packing.buffer + _SUFFIX
        packing = replace(packing, buffer=packing.buffer + _SUFFIX)
    added = [replace(b, name=own[b.name]) for b in small.kernel.buffers if b.name in own]
    arguments = (*kernel.arguments, *(b for b in added if b.role != "scratch"))
    scratch = [b for b in (*kernel.buffers, *added) if b.role == "scratch"]
    renamed = map_statements(small.kernel.body, leaf=lambda s: (map_parts(s, buffer=lambda b: own.get(b, b)),))
    body = BodyCopier(names, {}).body(renamed)
    more = (size_of(dimension) + (dimension.high - dimension.low - 1)) // dimension.high
    both = ((names.axis("w", 1 - more), body), (names.axis("w", more), kernel.body))
    loops = tuple(Loop(axis, "version", inner) for axis, inner in both)
    return Version(replace(kernel, buffers=(*arguments, *scratch), body=loops), packing, "")
