"""Model of a data parallel step: its time from the recorded times of its buckets and the cost of their reductions."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from benchmarks.cluster.networks import ALGORITHMS, Cost, Network

PLAIN, ZERO = "plain", "ZeRO-1"


@dataclass(frozen=True)
class BucketTimes:
    """Bucket of gradients in a step that waits for no reduction; times are seconds from the step's beginning."""

    nbytes: int
    ready: float
    """When the last of its gradients is there."""
    needed: float
    """When the optimizer asks for it."""


@dataclass(frozen=True)
class Plan:
    """A step of one rank."""

    name: str
    samples: int
    """Samples of one rank."""
    seconds: float
    """Seconds of the whole step, without reductions."""
    buckets: tuple[BucketTimes, ...]
    """Buckets in the order of their reductions, which is also that of ``ready`` and ``needed``."""

    @property
    def nbytes(self) -> int:
        return sum(b.nbytes for b in self.buckets)

    @property
    def update(self) -> float:
        """Return the seconds of the optimizer: from its first request for a bucket to the end."""
        return self.seconds - self.buckets[0].needed if self.buckets else 0.0


@dataclass
class Step:
    """Time of a step with its reductions."""

    seconds: float
    exposed: float
    """Seconds in which computing waits, or pauses because its core runs a reduction."""
    communication: float
    """Seconds of all collectives, one after the other."""
    spans: list[tuple[str, float, float]] = field(default_factory=list)
    """Collectives with beginning and end."""

    def efficiency(self, plan: Plan) -> float:
        """Return the samples per second of a rank, relative to a rank alone."""
        return plan.seconds / self.seconds


class _Run:
    """Clocks of the computing thread and of the communicating one."""

    def __init__(self, overlap: float):
        self.overlap = overlap
        self.delay = 0.0
        """Delay of the computing thread."""
        self.free = 0.0
        """Time at which the other thread becomes free."""
        self.spans: list[tuple[str, float, float]] = []

    def begin(self, name: str, at: float, seconds: float) -> float:
        """Begin a collective requested at that point of the step; return the time of its end."""
        start = max(at + self.delay, self.free)
        self.free = start + seconds
        self.delay += (1 - self.overlap) * seconds
        self.spans.append((name, start, self.free))
        return self.free

    def wait(self, at: float, end: float) -> None:
        """Wait for the result at that point of the step."""
        self.delay = max(self.delay, end - at)


def plain(plan: Plan, reduce: Cost, overlap: float = 1.0) -> Step:
    """Predict a step whose buckets are all-reduced. ``overlap`` is the fraction of a reduction's time in which its rank
    goes on computing: 1 if another core or a device communicates, 0 if communication takes the time of computing."""
    run = _Run(overlap)
    ends = [run.begin(f"reduce {i}", b.ready, reduce(b.nbytes)) for i, b in enumerate(plan.buckets)]
    for bucket, end in zip(plan.buckets, ends, strict=True):
        run.wait(bucket.needed, end)
    return _step(plan.seconds, run)


def sharded(plan: Plan, half: Cost, ranks: int, overlap: float = 1.0) -> Step:
    """Return a step with ZeRO-1 (S. Rajbhandari et al., ZeRO: memory optimizations toward training trillion parameter
    models, 2020): buckets are reduce-scattered, each rank updates its part of them, and the parts are gathered before
    the step ends. ``half``: of a reduce-scatter or an all-gather."""
    run, updates, at = _Run(overlap), _updates(plan), 0.0
    ends = [run.begin(f"scatter {i}", b.ready, half(b.nbytes)) for i, b in enumerate(plan.buckets)]
    gathered = []
    for index, (bucket, end) in enumerate(zip(plan.buckets, ends, strict=True)):
        at = max(at, plan.buckets[0].needed)
        run.wait(at, end)
        at += updates[index] / ranks
        gathered.append(run.begin(f"gather {index}", at, half(bucket.nbytes)))
    seconds = plan.seconds - plan.update * (1 - 1 / ranks)
    for end in gathered:
        run.wait(seconds, end)
    return _step(seconds, run)


def _updates(plan: Plan) -> list[float]:
    """Return the seconds of the optimizer's work on each bucket, in proportion to its bytes."""
    return [plan.update * b.nbytes / max(1, plan.nbytes) for b in plan.buckets]


def _step(seconds: float, run: _Run) -> Step:
    communication = sum(end - start for _, start, end in run.spans)
    return Step(seconds + run.delay, run.delay, communication, run.spans)


@dataclass(frozen=True)
class PaperRow:
    """One number of ranks on paper."""

    ranks: int
    kind: str
    """``plain`` or ``ZeRO-1``."""
    how: str
    """``ring`` or ``tree``."""
    seconds: float
    efficiency: float
    exposed: float
    communication: float


@dataclass(frozen=True)
class Assumed:
    """Assumptions about many ranks."""

    network: Network
    ranks: tuple[int, ...]
    overlap: float = 1.0
    """See ``plain``."""
    speed: float = 1.0
    """Speed of a rank, relative to the recorded one."""


def slower(plan: Plan, factor: float) -> Plan:
    """Return the same plan on a rank that takes ``factor`` times as long to compute."""
    buckets = tuple(BucketTimes(b.nbytes, b.ready * factor, b.needed * factor) for b in plan.buckets)
    return replace(plan, seconds=plan.seconds * factor, buckets=buckets)


def scale(plan: Plan, assumed: Assumed) -> list[PaperRow]:
    """Return all numbers of ranks, plain and sharded: the better of ring and tree."""
    rows, plan = [], slower(plan, 1 / assumed.speed)
    for count in assumed.ranks:
        for kind in (PLAIN, ZERO):
            candidates = {a: _one(plan, assumed, count, a, kind) for a in ALGORITHMS}
            best = min(candidates, key=lambda a: candidates[a].seconds)
            step = candidates[best]
            row = PaperRow(count, kind, best, step.seconds, step.efficiency(plan), step.exposed, step.communication)
            rows.append(row)
    return rows


def _one(plan: Plan, assumed: Assumed, ranks: int, algorithm: str, kind: str) -> Step:
    network, overlap = assumed.network, assumed.overlap
    if kind == PLAIN:
        return plain(plan, network.all_reduce(ranks, algorithm), overlap)
    return sharded(plan, network.half(ranks, algorithm), ranks, overlap)
