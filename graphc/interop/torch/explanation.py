"""Explanation of a PyTorch model: which operators graphc computes, which PyTorch does and why, and their times."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import torch
from torch import fx
from torch._functorch import config as aot_config

from graphc.base.errors import FallbackWarning
from graphc.base.location import Location
from graphc.base.records import dataclass
from graphc.interop.torch.backend import graphc as backend
from graphc.interop.torch.fallback import WATCH, Operator, Shares

_PATCHES = {"enable_autograd_cache": False, "force_non_lazy_backward_lowering": True}
"""Compile every graph, and backward passes at once."""
_KINDS = {"tangents": "backward", "primals": "forward"}
"""Kinds of graphs by AOTAutograd's names of their arguments."""


@dataclass(frozen=True)
class GraphReport:
    """Graph that Dynamo captured, or the graph of its backward pass."""

    kind: str
    """``inference``, ``forward`` or ``backward``."""
    operators: tuple[Operator, ...]
    """Operators in the order of the graph."""
    programs: int
    """Number of native programs."""
    calls: int
    """Number of runs in the measured call, which does not include the backward pass."""
    native_seconds: float
    """Time of the native programs in that call."""
    torch_seconds: float
    """Time of PyTorch in that call."""

    @property
    def native(self) -> tuple[Operator, ...]:
        """Return the operators that graphc computes."""
        return tuple([o for o in self.operators if o.is_native])

    @property
    def refused(self) -> tuple[Operator, ...]:
        """Return the operators that PyTorch computes, with reasons."""
        return tuple([o for o in self.operators if not o.is_native])

    def __str__(self) -> str:
        timings = f", {1e3 * self.native_seconds:.3g} ms", f", {1e3 * self.torch_seconds:.3g} ms"
        here, there = timings if self.calls else (", not run", "")
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
    """Graph break: Dynamo ended a graph before the end of the model."""

    reason: str
    """Reason in Dynamo's words."""
    place: Location

    def __str__(self) -> str:
        return f"graph break: {self.reason.strip().splitlines()[0]}\n  from   {self.place.describe()}"


@dataclass(frozen=True)
class Explanation:
    """Result of ``explain``. ``print`` shows it as a table."""

    graphs: tuple[GraphReport, ...]
    breaks: tuple[Break, ...]
    seconds: float
    """Time of the measured call: graphs, Dynamo's guards, and Python between the graphs."""

    @property
    def native_seconds(self) -> float:
        """Return the time of the native programs."""
        return sum(g.native_seconds for g in self.graphs)

    @property
    def torch_seconds(self) -> float:
        """Return the time of the operators that graphc leaves to PyTorch."""
        return sum(g.torch_seconds for g in self.graphs)

    @property
    def share(self) -> float:
        """Return the fraction of operators that graphc computes, 0 to 1."""
        count = sum(len(g.operators) for g in self.graphs)
        return sum(len(g.native) for g in self.graphs) / count if count else 0.0

    def as_json(self) -> dict[str, Any]:
        """Return the explanation as plain data."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [f"graph {i}, {graph}" for i, graph in enumerate(self.graphs, 1)]
        lines += map(str, self.breaks)
        if not self.graphs:
            lines.append("Dynamo captured no graph: PyTorch computes everything")
        rest = self.seconds - self.native_seconds - self.torch_seconds
        timings = [("graphc", self.native_seconds), ("PyTorch", self.torch_seconds), ("between graphs", rest)]
        summary = ", ".join(f"{name} {100 * duration / self.seconds:.0f} %" for name, duration in timings)
        lines.append(f"a call: {1e3 * self.seconds:.3g} ms, of which {summary}")
        return "\n".join(lines)


def explain(model: Any, *args: Any, **kwargs: Any) -> Explanation:
    """Explain which operators of ``model(*args, **kwargs)`` graphc computes and which PyTorch does.

    The explanation has the user's lines, reasons, graph breaks of Dynamo, and the times of both sides in a call.

    Calls the model twice, as ``torch.compile(model, backend="graphc")`` would: once to compile it, once to measure it.
    Raises what those calls raise.
    """
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
    """Function of a list that records the number and time of its calls."""

    def __init__(self, function: Callable[..., Any]):
        self._boxed_call = True
        self.function = function
        self.forget()

    def forget(self) -> None:
        self.seconds, self.calls = 0.0, 0

    def __call__(self, args: list[Any]) -> Any:
        start = time.perf_counter()
        result = self.function(args)
        self.seconds += time.perf_counter() - start
        self.calls += 1
        return result


@dataclass(frozen=True)
class _Graph:
    kind: str
    shares: Shares
    run: _Timed
    native: list[_Timed]


class _Recorder:
    """Observer of compiled graphs and their run times."""

    def __init__(self) -> None:
        self.graphs: list[_Graph] = []
        self.breaks: list[Break] = []

    def capture(self, module: fx.GraphModule, examples: Sequence[Any]) -> Callable[..., Any]:
        """Pass a captured graph to the backend, and record the graph break before it."""
        reason: Any = getattr(module, "compile_subgraph_reason", None)
        if reason is not None and reason.graph_break:
            frame = reason.user_stack[-1] if reason.user_stack else None
            location = Location("", frame.filename, frame.lineno or 0) if frame else Location()
            self.breaks.append(Break(str(reason.reason), location))
        return backend(module, examples)

    def on_graph(
        self, module: fx.GraphModule, shares: Shares, run: Callable[..., Any], native: Sequence[Any]
    ) -> Callable[..., Any]:
        """Record a compiled graph. Returns its timed replacement."""
        names = [n.name.split("_")[0] for n in module.graph.nodes if n.op == "placeholder"]
        kind = next((kind for name, kind in _KINDS.items() if name in names), "inference")
        timed_run = _Timed(run)
        self.graphs.append(_Graph(kind, shares, timed_run, [timed_run] if run in native else list(native)))
        return timed_run

    def on_program(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the timed replacement of a native program."""
        return _Timed(function)

    def forget(self) -> None:
        """Reset the times before the measured call."""
        for graph in self.graphs:
            for timed in (graph.run, *graph.native):
                timed.forget()


def _report(graph: _Graph) -> GraphReport:
    native = sum(t.seconds for t in graph.native)
    torch_time = graph.run.seconds - native
    return GraphReport(graph.kind, graph.shares.operators, graph.shares.parts, graph.run.calls, native, torch_time)


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Format rows as columns. Equal rows appear once with their count."""
    counted = [(f"{row[0]} ({times} times)" if times > 1 else row[0], *row[1:]) for row, times in Counter(rows).items()]
    widths = [max(len(row[i]) for row in counted) for i in range(2)]
    return [f"    {row[0]:{widths[0]}}  {row[1]:{widths[1]}}  {row[2]}".rstrip() for row in counted]
