"""What runs a program on a device: launches in order with their arguments, as plain data for every size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from graphc.base.errors import ArtifactError
from graphc.base.sizes.size import Dimension, at
from graphc.files.manifest import MAX_ENTRIES, Extent, Manifest

MAX_THREADS = 1024
"""Most threads of a block."""
MAX_SHARED = 227 * 1024
"""Most bytes of shared memory of a block on any GPU."""


@dataclass(frozen=True)
class LoopSpec:
    """A loop around launches."""

    name: str
    extent: Extent


@dataclass(frozen=True)
class StepSpec:
    """How far a place moves with each iteration of a loop."""

    loop: str
    nbytes: Extent


@dataclass(frozen=True)
class Place:
    """Where an argument starts: in a buffer of the manifest, temporaries in the arena."""

    buffer: str
    offset: Extent = 0
    """In bytes."""
    steps: tuple[StepSpec, ...] = ()


@dataclass(frozen=True)
class LaunchSpec:
    """One launch of a kernel, or one for each iteration of the loops around it."""

    kernel: str
    """Its name in the program; for people."""
    symbol: str
    grid: Extent
    """Blocks along x."""
    threads: int
    """Of a block."""
    shared: int
    """Bytes of dynamic shared memory."""
    arguments: tuple[Place, ...]
    """What the kernel's pointers are, in order."""
    sizes: tuple[Extent, ...] = ()
    """What follows them: a word of 64 bits each."""
    loops: tuple[LoopSpec, ...] = ()
    """Outermost first; neighbours in the same loop take turns."""
    product: Any = None
    """Where the device's library computes it: the fields of a ProductDescriptor, numbers and texts only."""
    product_sizes: dict[str, Extent] = field(default_factory=dict)
    """Further fields, which depend on the sizes."""

    def __post_init__(self) -> None:
        good = self.symbol.isidentifier() and 0 < self.threads <= MAX_THREADS and 0 <= self.shared <= MAX_SHARED
        _require(good, f"kernel {self.kernel[:60]!r} is no launch")
        inside = {loop.name for loop in self.loops}
        moved = {step.loop for place in self.arguments for step in place.steps}
        _require(moved <= inside, f"an argument of {self.kernel[:60]!r} moves with a loop that is not around it")


@dataclass(frozen=True)
class DevicePlan:
    """What runs a program on a device, besides its code and its constants."""

    manifest: Manifest
    """Buffers, dimensions and memory, as of native programs."""
    launches: tuple[LaunchSpec, ...]
    checked: int = 0
    """How many launches come first after which the program goes on only if none of them has set the status."""
    dims: tuple[Dimension, ...] = ()
    """Those of the manifest."""

    def __post_init__(self) -> None:
        _require(self.dims == self.manifest.dims, "the plan has other dimensions than its manifest")
        _require(len(self.launches) <= MAX_ENTRIES, f"there are {len(self.launches)} launches")
        _require(0 <= self.checked <= len(self.launches), f"{self.checked} launches are checked")
        known = {b.name for b in self.manifest.buffers}
        used = {place.buffer for launch in self.launches for place in launch.arguments}
        _require(used <= known, f"there is no buffer {', '.join(sorted(used - known))[:200]}")

    def steps(self, sizes: Mapping[Dimension, int] | None = None) -> tuple[list[Step], int]:
        """The single launches in order for these sizes of the dimensions, and how many of them are checked."""
        number = {b.name: i for i, b in enumerate(self.manifest.buffers)}
        values = dict(sizes or {})
        found: list[Step] = []
        checked = 0
        for position, iteration in _runs(self.launches, values):
            found.append(_step(self.launches[position], number, values, iteration))
            if position < self.checked:
                checked = len(found)
        return found, checked


@dataclass(frozen=True)
class Step:
    """One launch, all sizes known."""

    kernel: str
    symbol: str
    grid: int
    threads: int
    shared: int
    places: tuple[tuple[int, int], ...]
    """(number of the buffer in the manifest, byte offset) of each pointer."""
    sizes: tuple[int, ...]
    product: Any = None

    def arguments(self, addresses: Sequence[int]) -> list[int]:
        """The words that the kernel is given where the buffers start at these addresses."""
        return [*[addresses[buffer] + offset for buffer, offset in self.places], *self.sizes]


def _step(launch: LaunchSpec, number: Mapping[str, int], values: dict[Dimension, int], now: Mapping[str, int]) -> Step:
    places = []
    for place in launch.arguments:
        moved = sum(at(step.nbytes, values) * now[step.loop] for step in place.steps)
        places.append((number[place.buffer], at(place.offset, values) + moved))
    return Step(
        launch.kernel,
        launch.symbol,
        at(launch.grid, values),
        launch.threads,
        launch.shared,
        tuple(places),
        tuple(at(size, values) for size in launch.sizes),
        _product(launch, values),
    )


def _product(launch: LaunchSpec, values: dict[Dimension, int]) -> Any:
    """All fields of the descriptor."""
    if launch.product is None:
        return None
    return {**launch.product, **{name: at(size, values) for name, size in launch.product_sizes.items()}}


def _runs(launches: Sequence[LaunchSpec], values: dict[Dimension, int]) -> Iterator[tuple[int, dict[str, int]]]:
    """(number of a launch, iteration of each loop around it) of every single launch, in order."""
    stack: list[tuple[int, int, int, dict[str, int]]] = [(0, len(launches), 0, {})]
    while stack:
        start, stop, depth, now = stack.pop()
        pending: list[tuple[int, int, int, dict[str, int]]] = []
        while start < stop:
            loop = _loop(launches[start], depth)
            if loop is None:
                pending.append((start, start, -1, now))
                start += 1
                continue
            end = start
            while end < stop and _loop(launches[end], depth) == loop:
                end += 1
            pending += [(start, end, depth + 1, {**now, loop.name: i}) for i in range(at(loop.extent, values))]
            start = end
        if depth < 0:
            yield start, now
        else:
            stack += reversed(pending)


def _loop(launch: LaunchSpec, depth: int) -> LoopSpec | None:
    return launch.loops[depth] if depth < len(launch.loops) else None


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise ArtifactError(what)
