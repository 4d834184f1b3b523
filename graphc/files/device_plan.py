"""Device plans: the kernel launches of a program in order with their arguments, as plain data for every size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from graphc.base.errors import ArtifactError
from graphc.base.records import dataclass
from graphc.base.sizes.size import Dimension, at
from graphc.files.manifest import MAX_ENTRIES, Extent, Manifest, from_json

MAX_THREADS = 1024
"""Largest number of threads in a block."""
MAX_SHARED = 227 * 1024
"""Largest shared memory of a block on any GPU, in bytes."""


@dataclass(frozen=True)
class LoopSpec:
    """Loop around launches, by its name and number of iterations."""

    name: str
    extent: Extent


@dataclass(frozen=True)
class StepSpec:
    """Increment of an argument's address in each iteration of a loop."""

    loop: str
    nbytes: Extent


@dataclass(frozen=True)
class Place:
    """Address of an argument: an offset in a buffer of the manifest; temporaries are in the arena."""

    buffer: str
    offset: Extent = 0
    """In bytes."""
    steps: tuple[StepSpec, ...] = ()


@dataclass(frozen=True)
class LaunchSpec:
    """Launch of a kernel, repeated for each iteration of the loops around it."""

    kernel: str
    """Its name in the program, for messages."""
    symbol: str
    grid: Extent
    """Number of blocks along x."""
    threads: int
    """Threads per block."""
    shared: int
    """Bytes of dynamic shared memory."""
    arguments: tuple[Place, ...]
    """Pointer arguments of the kernel, in order."""
    sizes: tuple[Extent, ...] = ()
    """Further arguments: a word of 64 bits each."""
    loops: tuple[LoopSpec, ...] = ()
    """Outermost first; consecutive launches with the same loop alternate in each iteration."""
    product: Any = None
    """Fields of a ProductDescriptor if the device's library computes it, numbers and strings only; else None."""
    product_sizes: dict[str, Extent] = field(default_factory=dict)
    """Further fields of the descriptor, which depend on the sizes."""

    def __post_init__(self) -> None:
        good = self.symbol.isidentifier() and 0 < self.threads <= MAX_THREADS and 0 <= self.shared <= MAX_SHARED
        _require(good, f"kernel {self.kernel[:60]!r} has an invalid symbol, block or shared memory")
        enclosing = {loop.name for loop in self.loops}
        used = {step.loop for argument in self.arguments for step in argument.steps}
        _require(used <= enclosing, f"an argument of {self.kernel[:60]!r} moves with a loop that is not around it")


@dataclass(frozen=True)
class DevicePlan:
    """Launches that run a program on a device, without its code and constants."""

    manifest: Manifest
    """Buffers, dimensions and memory, as for native programs."""
    launches: tuple[LaunchSpec, ...]
    checked: int = 0
    """Number of first launches that may set the status; if one does, the program stops after them."""
    dims: tuple[Dimension, ...] = ()
    """Dimensions of the manifest."""

    def __post_init__(self) -> None:
        _require(self.dims == self.manifest.dims, "the plan has other dimensions than its manifest")
        _require(len(self.launches) <= MAX_ENTRIES, f"there are {len(self.launches)} launches")
        _require(0 <= self.checked <= len(self.launches), f"{self.checked} launches are checked")
        names = {b.name for b in self.manifest.buffers}
        used = {argument.buffer for launch in self.launches for argument in launch.arguments}
        _require(used <= names, f"there is no buffer {', '.join(sorted(used - names))[:200]}")

    def steps(self, sizes: Mapping[Dimension, int] | None = None) -> tuple[list[PlannedLaunch], int]:
        """Return all single launches in order for sizes of the dimensions, and the number of checked ones."""
        indices = {b.name: i for i, b in enumerate(self.manifest.buffers)}
        values = dict(sizes or {})
        launches: list[PlannedLaunch] = []
        checked = 0
        for position, iteration in _runs(self.launches, values):
            launches.append(_step(self.launches[position], indices, values, iteration))
            if position < self.checked:
                checked = len(launches)
        return launches, checked


@dataclass(frozen=True)
class PlannedLaunch:
    """Single launch with known sizes."""

    kernel: str
    symbol: str
    grid: int
    threads: int
    shared: int
    places: tuple[tuple[int, int], ...]
    """(index of the buffer in the manifest, byte offset) of each pointer."""
    sizes: tuple[int, ...]
    product: Any = None

    def arguments(self, addresses: Sequence[int]) -> list[int]:
        """Return the argument words of the kernel for buffers at these addresses."""
        return [*[addresses[buffer] + offset for buffer, offset in self.places], *self.sizes]


def _step(
    launch: LaunchSpec, indices: Mapping[str, int], values: dict[Dimension, int], iteration: Mapping[str, int]
) -> PlannedLaunch:
    addresses = []
    for argument in launch.arguments:
        moved = sum(at(step.nbytes, values) * iteration[step.loop] for step in argument.steps)
        addresses.append((indices[argument.buffer], at(argument.offset, values) + moved))
    return PlannedLaunch(
        launch.kernel,
        launch.symbol,
        at(launch.grid, values),
        launch.threads,
        launch.shared,
        tuple(addresses),
        tuple(at(size, values) for size in launch.sizes),
        _product(launch, values),
    )


def _product(launch: LaunchSpec, values: dict[Dimension, int]) -> Any:
    """Return all fields of the descriptor, or None."""
    if launch.product is None:
        return None
    return {**launch.product, **{name: at(size, values) for name, size in launch.product_sizes.items()}}


def _runs(launches: Sequence[LaunchSpec], values: dict[Dimension, int]) -> Iterator[tuple[int, dict[str, int]]]:
    """Yield (index of the launch, iteration of each loop around it) of every single launch, in order."""
    stack: list[tuple[int, int, int, dict[str, int]]] = [(0, len(launches), 0, {})]
    while stack:
        start, stop, depth, iteration = stack.pop()
        pending: list[tuple[int, int, int, dict[str, int]]] = []
        while start < stop:
            loop = _loop(launches[start], depth)
            if loop is None:
                pending.append((start, start, -1, iteration))
                start += 1
                continue
            end = start
            while end < stop and _loop(launches[end], depth) == loop:
                end += 1
            pending += [(start, end, depth + 1, {**iteration, loop.name: i}) for i in range(at(loop.extent, values))]
            start = end
        if depth < 0:
            yield start, iteration
        else:
            stack += reversed(pending)


def _loop(launch: LaunchSpec, depth: int) -> LoopSpec | None:
    return launch.loops[depth] if depth < len(launch.loops) else None


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise ArtifactError(what)


def read_plan(data: bytes) -> DevicePlan:
    """Parse the JSON of a plan. Raise ArtifactError where it is damaged."""
    return from_json(DevicePlan, data)
