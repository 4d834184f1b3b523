"""explain: who computes what of a model of PyTorch, graphc or PyTorch itself, why, and for how long."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import fx
from torch._functorch import config as aot_config

from graphc.base.errors import FallbackWarning
from graphc.base.location import Location
from graphc.interop.torch.backend import graphc as backend
from graphc.interop.torch.fallback import WATCH, Operator, Shares

_PATCHES = {"enable_autograd_cache": False, "force_non_lazy_backward_lowering": True}
"""Every graph is compiled, backward passes at once."""
_KINDS = {"tangents": "backward", "primals": "forward"}
"""Of graphs by how AOTAutograd calls their arguments."""


@dataclass(frozen=True)
class GraphReport:
    """A graph that Dynamo captured, or one for its backward pass."""

    kind: str
    """``inference``, ``forward`` or ``backward``."""
    operators: tuple[Operator, ...]
    """In the order of the graph."""
    programs: int
    """How many native programs compute what graphc does."""
    calls: int
    """How often it ran in the call that was measured; a backward pass is no part of that."""
    native_seconds: float
    """What the native programs took in that call."""
    torch_seconds: float
    """What PyTorch took."""

    @property
    def native(self) -> tuple[Operator, ...]:
        """What graphc computes."""
        return tuple([o for o in self.operators if o.is_native])

    @property
    def refused(self) -> tuple[Operator, ...]:
        """What PyTorch computes, with reasons."""
        return tuple([o for o in self.operators if not o.is_native])

    def __str__(self) -> str:
        took = f", {1e3 * self.native_seconds:.3g} ms", f", {1e3 * self.torch_seconds:.3g} ms"
        here, there = took if self.calls else (", not run", "")
        programs = f"{self.programs} program{'s' * (self.programs != 1)}"
        lines = [f"{self.kind}: graphc {len(self.native)} of {len(self.operators)} operators in {programs}{here}"]
        counts = Counter(o.name.removesuffix(".default").removeprefix("aten.") for o in self.native)
        if counts:
            lines.append("  graphc: " + ", ".join(f"{n} {c}" if c > 1 else n for n, c in counts.most_common()))
        if self.refused:
            lines.append(f"  PyTorch: {len(self.refused)}{there}")
            lines += _table([(o.name, o.reason, o.place.describe()) for o in self.refused])
        return "\n".join(lines)


@dataclass(frozen=True)
class Break:
    """Where Dynamo ended a graph before the end of the model."""

    reason: str
    """In Dynamo's words."""
    place: Location

    def __str__(self) -> str:
        return f"graph break: {self.reason.strip().splitlines()[0]}\n  from   {self.place.describe()}"


@dataclass(frozen=True)
class Explanation:
    """What ``explain`` found; ``print`` shows it as a table."""

    graphs: tuple[GraphReport, ...]
    breaks: tuple[Break, ...]
    seconds: float
    """What the call took that was measured: the graphs, Dynamo's guards, and Python between the graphs."""

    @property
    def native_seconds(self) -> float:
        """What native programs took of it."""
        return sum(g.native_seconds for g in self.graphs)

    @property
    def torch_seconds(self) -> float:
        """What operators of PyTorch took that graphc has left to it."""
        return sum(g.torch_seconds for g in self.graphs)

    @property
    def share(self) -> float:
        """The share of operators that graphc computes, 0 to 1."""
        count = sum(len(g.operators) for g in self.graphs)
        return sum(len(g.native) for g in self.graphs) / count if count else 0.0

    def as_json(self) -> dict[str, Any]:
        """The same as plain data."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [f"graph {i}, {graph}" for i, graph in enumerate(self.graphs, 1)]
        lines += map(str, self.breaks)
        if not self.graphs:
            lines.append("Dynamo captured no graph: PyTorch computes everything")
        rest = self.seconds - self.native_seconds - self.torch_seconds
        parts = [("graphc", self.native_seconds), ("PyTorch", self.torch_seconds), ("between graphs", rest)]
        shown = ", ".join(f"{name} {100 * part / self.seconds:.0f} %" for name, part in parts)
        lines.append(f"a call: {1e3 * self.seconds:.3g} ms, of which {shown}")
        return "\n".join(lines)


def explain(model: Any, *args: Any, **kwargs: Any) -> Explanation:
    """Says which operators of ``model(*args, **kwargs)`` graphc computes and which PyTorch does, with lines and
    reasons, where Dynamo breaks graphs, and what either side takes in a call.

    Calls the model twice, as ``torch.compile(model, backend="graphc")`` would: to compile it, and to measure. Raises
    what that raises."""
    recorder = _Recorder()
    plain = getattr(model, "_orig_mod", model)
    compiled = torch.compile(plain, backend=recorder.capture)
    token = WATCH.set(recorder)
    try:
        with warnings.catch_warnings(), aot_config.patch(_PATCHES):
            warnings.simplefilter("ignore", FallbackWarning)
            compiled(*args, **kwargs)
            recorder.forget()
            start = time.perf_counter()
            compiled(*args, **kwargs)
            seconds = time.perf_counter() - start
    finally:
        WATCH.reset(token)
    return Explanation(tuple(map(_report, recorder.graphs)), tuple(recorder.breaks), seconds)


class _Timed:
    """A function that takes a list, with the time of its calls."""

    def __init__(self, function: Callable[..., Any]):
        self._boxed_call = True
        self.function = function
        self.forget()

    def forget(self) -> None:
        self.seconds, self.calls = 0.0, 0

    def __call__(self, args: list[Any]) -> Any:
        start = time.perf_counter()
        found = self.function(args)
        self.seconds += time.perf_counter() - start
        self.calls += 1
        return found


@dataclass(frozen=True)
class _Graph:
    kind: str
    shares: Shares
    whole: _Timed
    native: list[_Timed]


class _Recorder:
    """Looks at what the backend is given, and measures what it makes of that."""

    def __init__(self) -> None:
        self.graphs: list[_Graph] = []
        self.breaks: list[Break] = []

    def capture(self, module: fx.GraphModule, examples: Sequence[Any]) -> Callable[..., Any]:
        """The backend, looked over its shoulder."""
        reason: Any = getattr(module, "compile_subgraph_reason", None)
        if reason is not None and reason.graph_break:
            frame = reason.user_stack[-1] if reason.user_stack else None
            place = Location("", frame.filename, frame.lineno or 0) if frame else Location()
            self.breaks.append(Break(str(reason.reason), place))
        return backend(module, examples)

    def made(
        self, module: fx.GraphModule, shares: Shares, run: Callable[..., Any], native: Sequence[Any]
    ) -> Callable[..., Any]:
        """Called with each graph that was compiled; gives what takes its place."""
        names = [n.name.split("_")[0] for n in module.graph.nodes if n.op == "placeholder"]
        kind = next((kind for name, kind in _KINDS.items() if name in names), "inference")
        whole = _Timed(run)
        self.graphs.append(_Graph(kind, shares, whole, [whole] if run in native else list(native)))
        return whole

    def part(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Called with each native program; gives what takes its place."""
        return _Timed(function)

    def forget(self) -> None:
        """The next call is the one to be measured."""
        for graph in self.graphs:
            for timed in (graph.whole, *graph.native):
                timed.forget()


def _report(graph: _Graph) -> GraphReport:
    native = sum(t.seconds for t in graph.native)
    rest = graph.whole.seconds - native
    return GraphReport(graph.kind, graph.shares.operators, graph.shares.parts, graph.whole.calls, native, rest)


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Lines of columns, the same rows once with their number."""
    counted = [(f"{row[0]} ({times} times)" if times > 1 else row[0], *row[1:]) for row, times in Counter(rows).items()]
    widths = [max(len(row[i]) for row in counted) for i in range(2)]
    return [f"    {row[0]:{widths[0]}}  {row[1]:{widths[1]}}  {row[2]}".rstrip() for row in counted]
