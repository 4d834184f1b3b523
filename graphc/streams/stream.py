"""``gc.stream``: a model of sequences as a step with states."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, overload

import numpy as np

from graphc.base.difference import combined, difference, tolerance_for
from graphc.base.errors import ArgumentError
from graphc.base.sizes.named_dims import Dim
from graphc.base.sizes.size import Dimension
from graphc.checks.check import ChecksItself, Report, StageReport
from graphc.ir.graph.graph import Graph, input_class
from graphc.streams.planner import Planned, make_plan
from graphc.streams.running import Named, Running, StepModule
from graphc.streams.signal import Signal, of_axis
from graphc.streams.stateful import StatefulStream, stateful_stream
from graphc.tensors.creation import from_numpy
from graphc.tensors.structure import Structure, flatten, unflatten
from graphc.tensors.tensor import Tensor
from graphc.tracing.dims import Dims
from graphc.tracing.trace import trace_sized


class StreamStep(StepModule):
    """One tick of a stream: takes the next samples of each input, and returns the next samples of each output.

    Parameters of the model are its parameters, under their names with underscores; states are buffers, ``state_...``.
    """

    def __init__(self, planned: Planned, structure: Structure, bound: Mapping[str, Tensor]):
        super().__init__({s.name: s.initial for step in planned.steps for s in step.states})
        self._planned = planned
        self._structure = structure
        self._names: list[tuple[int, str]] = []
        for value, signal in planned.plan.signals.items():
            if value.node.op.name == "input" and input_class(value) != "input":
                name = f"model_{len(self._names)}_{value.name.replace('.', '_')}"
                self.register_buffer(name, bound[value.node.attrs["path"]].detach().clone())
                self._names.append((signal.slot, name))

    @property
    def forward(self) -> Callable[..., Any]:  # type: ignore[override]
        """Return the function of a tick, with the names of the model's inputs."""
        return Named(self._run, [s.value.name for s in self._planned.inputs])

    def _run(self, *inputs: Tensor) -> Any:
        slots: dict[int, Any] = {s.slot: x for s, x in zip(self._planned.inputs, inputs, strict=True)}
        slots |= {slot: getattr(self, name) for slot, name in self._names}
        for step in self._planned.steps:
            buffers = [self.buffer(state.name) for state in step.states]
            results = step.run(*(slots[slot] for slot in step.reads), *(b.clone() for b in buffers))
            slots.update(zip(step.writes, results, strict=False))
            for buffer, new in zip(buffers, results[len(step.writes) :], strict=True):
                buffer.copy_(new)
        return unflatten(self._structure, [slots[s.slot] for s in self._planned.outputs])


class Stream(Running, ChecksItself):
    """A running stream, made by ``gc.stream``.

    A call takes the next samples of each input, a whole number of ticks, and returns the next samples of each output.
    """

    def __init__(self, step: StreamStep, planned: Planned, model: Any, flush_denormals: bool = False):
        super().__init__(step, flush_denormals)
        self.model = model
        """The model of whole sequences."""
        self._planned = planned

    @property
    def tick(self) -> int:
        """Number of samples of an input in a tick."""
        return self._planned.tick

    @property
    def delay(self) -> tuple[int, ...] | int:
        """Number of samples of each output before its sequence begins: the stream returns zeros there."""
        delays = tuple(s.delay for s in self._planned.outputs)
        return delays[0] if len(delays) == 1 else delays

    @property
    def outputs(self) -> tuple[Signal, ...]:
        """Signal of each output in a tick."""
        return self._planned.outputs

    @property
    def axes(self) -> tuple[int | None, ...]:
        """Dimension of time of each output; None for an output that belongs to the last sample."""
        return tuple(s.axis for s in self._planned.outputs)

    def examples(self) -> tuple[Tensor, ...]:
        """Return arguments of a tick: zeros."""
        return tuple([from_numpy(np.zeros(s.shape, s.value.dtype.numpy)) for s in self._planned.inputs])

    def fresh(self) -> Stream:
        """Return another stream of the same program, at the start of a sequence."""
        return Stream(self.copied(), self._planned, self.model, self.flush_denormals)

    def check(self, *sequences: Any, rtol: float | None = None, atol: float | None = None) -> Report:
        """Compare a new stream with the model on whole sequences, as far as both have results.

        Raise ArgumentError for sequences that are too short for any result.
        """
        inputs = [*zip(self._arrays(sequences), self._planned.inputs, strict=True)]
        ticks = min(a.shape[s.axis] // s.block for a, s in inputs if s.axis is not None)
        parts = [_first(x, s, ticks) for x, s in inputs]
        found, expected = (flatten(result)[0] for result in (self.fresh()(*parts), self.model(*map(_tensor, parts))))
        differences = []
        for index, (actual, wanted, signal) in enumerate(zip(found, expected, self.outputs, strict=True)):
            pair = _common(actual.detach().numpy(), wanted.detach().numpy(), signal)
            if not pair[0].size:
                raise ArgumentError(
                    f"sequences of {ticks * self.tick} samples give no result of output {index}",
                    remedy="pass longer ones",
                )
            differences.append(difference(f"output {index}", *pair, tolerance_for(*pair, rtol, atol)))
        return Report((StageReport("stream", combined(differences)),))

    def __call__(self, *inputs: Any) -> Any:
        """Take the next samples.

        Args:
            inputs: an array or tensor for each input of the model, with a multiple of ``tick`` samples in time.

        Returns:
            As the model: the next samples of each output. An output without time is that of the last tick.

        Raises:
            ArgumentError: other shapes.
        """
        found = [self._tick(block) for block in self._blocks(inputs)]
        leaves = [flatten(result)[0] for result in found]
        joined = [self._joined([tick[i] for tick in leaves], s.axis) for i, s in enumerate(self._planned.outputs)]
        return unflatten(flatten(found[0])[1], joined)

    def _tick(self, inputs: Sequence[Tensor]) -> Any:
        return self.compiled(*inputs)

    def _joined(self, parts: Sequence[Tensor], axis: int | None) -> Tensor:
        if axis is None or len(parts) == 1:
            return parts[-1]
        return from_numpy(np.concatenate([p.detach().numpy() for p in parts], axis))

    def _blocks(self, inputs: Sequence[Any]) -> Iterator[list[Tensor]]:
        """Yield the inputs of each tick."""
        signals, arrays = self._planned.inputs, self._arrays(inputs)
        counts = {n for pair in zip(arrays, signals, strict=True) if (n := _ticks(*pair)) is not None}
        if len(counts) != 1:
            raise ArgumentError("the inputs have different numbers of samples")
        for tick in range(counts.pop()):
            yield [from_numpy(_of_tick(a, s, tick)) for a, s in zip(arrays, signals, strict=True)]

    def _arrays(self, inputs: Sequence[Any]) -> list[np.ndarray]:
        """Return the inputs as arrays. Raise ArgumentError for another number, dtypes, and shapes apart from time."""
        signals = self._planned.inputs
        if len(inputs) != len(signals):
            raise ArgumentError(f"the stream takes {len(signals)} inputs, got {len(inputs)}")
        arrays = [x.detach().numpy() if isinstance(x, Tensor) else np.asarray(x) for x in inputs]
        for array, signal in zip(arrays, signals, strict=True):
            axis = signal.axis
            shape = array.shape if axis is None else (*array.shape[:axis], signal.block, *array.shape[axis + 1 :])
            if array.ndim != signal.rank or shape != signal.shape or array.dtype != signal.value.dtype.numpy:
                expected = f"{signal.value.dtype.name}{list(signal.shape)}"
                got = f"{array.dtype}{list(array.shape)}"
                raise ArgumentError(f"input {signal.value.name} of a tick is {expected}, got {got}")
        return arrays


def _common(actual: np.ndarray, wanted: np.ndarray, signal: Signal) -> tuple[np.ndarray, np.ndarray]:
    """Return the results that a stream and a model have in common."""
    axis = signal.axis
    if axis is None:
        return actual, wanted
    count = max(0, min(actual.shape[axis] - signal.delay, wanted.shape[axis]))
    spans = slice(signal.delay, signal.delay + count), slice(0, count)
    first, second = (x[of_axis(axis, signal.rank, at)] for x, at in zip((actual, wanted), spans, strict=True))
    return first, second


def _tensor(array: np.ndarray) -> Tensor:
    return from_numpy(np.ascontiguousarray(array))


def _first(array: np.ndarray, signal: Signal, ticks: int) -> np.ndarray:
    """Return the samples of so many ticks of an input."""
    return array if signal.axis is None else array[of_axis(signal.axis, signal.rank, slice(0, ticks * signal.block))]


def _of_tick(array: np.ndarray, signal: Signal, tick: int) -> np.ndarray:
    """Return the part of an input that belongs to a tick."""
    if signal.axis is None:
        return array
    first = tick * signal.block
    return np.ascontiguousarray(array[of_axis(signal.axis, signal.rank, slice(first, first + signal.block))])


def _ticks(array: np.ndarray, signal: Signal) -> int | None:
    """Return for how many ticks an array suffices; None for an input without time. Raise ArgumentError."""
    axis, name = signal.axis, signal.value.name
    if axis is None:
        return None
    ticks, rest = divmod(array.shape[axis], signal.block)
    if rest or not ticks:
        raise ArgumentError(
            f"input {name} has {array.shape[axis]} samples, and a tick takes {signal.block}",
            remedy=f"pass a multiple of {signal.block} samples",
        )
    return ticks


@overload
def stream(
    model: Any,
    *examples: Any,
    dim: str | int = "time",
    dims: Any = None,
    step: int | None = None,
    lookahead: int = 0,
    memory: int | None = None,
    flush_denormals: bool = False,
    stateful: None = None,
    **keyword_examples: Any,
) -> Stream: ...


@overload
def stream(
    model: Any,
    *examples: Any,
    stateful: Mapping[str, str | int],
    flush_denormals: bool = False,
    **keyword_examples: Any,
) -> StatefulStream: ...


def stream(
    model: Any,
    *examples: Any,
    dim: str | int = "time",
    dims: Any = None,
    step: int | None = None,
    lookahead: int = 0,
    memory: int | None = None,
    flush_denormals: bool = False,
    stateful: Mapping[str, str | int] | None = None,
    **keyword_examples: Any,
) -> Stream | StatefulStream:
    """Make a stream of a model of whole sequences: a step with states, which takes some samples per call.

    Work and memory of a tick do not depend on the number of samples before. Results equal those of the model for the
    whole sequence, ``stream.delay`` samples later.

    Args:
        model: a module or function.
        examples, keyword_examples: arguments of the model for some sequence, as for ``trace``.
        dim: the dimension of time: its name in ``dims``, or its number, if it is the same in all inputs.
        dims: named dimensions, as for ``compile``; not needed where ``dim`` is a number, or the model names its own.
        step: samples of an input in a tick (default: the smallest number that fits).
        lookahead: largest number of samples of an output that may come later than in a causal model.
        memory: samples that an attention over all earlier ones keeps.
        flush_denormals: take denormal numbers for zeros in ticks, as filters reach in silence; they may be slow.
        stateful: for a model that takes states and returns the next ones: the name or number of the output for each
            such input. The examples are the first states; a call is a tick, and no dimension of time is needed.

    Returns:
        The Stream, or a StatefulStream.

    Raises:
        StreamError: an op needs the whole sequence, or looks ahead; the message names it.
        ArgumentError: a wrong argument.

    Example:
        >>> import graphc as gc
        >>> tcn = gc.nn.Sequential(gc.nn.ConstantPad1d((2, 0), 0.0), gc.nn.Conv1d(1, 4, 3))
        >>> stream = gc.stream(tcn, gc.zeros(1, 1, 16), dim=2)
        >>> stream(gc.zeros(1, 1, 5)).shape
        (1, 4, 5)
    """
    if stateful is not None:
        if (dim, dims, step, lookahead, memory) != ("time", None, None, 0, None):
            raise ArgumentError(
                "a model that takes its states has no dimension of time", remedy="pass stateful without other arguments"
            )
        return stateful_stream(model, examples, keyword_examples, stateful, flush_denormals)
    step = None if step is None else _whole_number("step", step, 1)
    memory = None if memory is None else _whole_number("memory", memory, 1)
    lookahead = _whole_number("lookahead", lookahead, 0)
    dims, dim = _named(model, examples, keyword_examples, dims, dim)
    traced = trace_sized(model, examples, keyword_examples, Dims(dims, model).varying(dim, examples, keyword_examples))
    graph = traced.graph
    graph.assumptions = tuple(traced.assumptions.found.values())
    graph.bound = {a.value.node.attrs["path"]: a.tensor for a in traced.arguments}
    planned = make_plan(graph, _dimension(graph, dim), step, lookahead, memory)
    return Stream(StreamStep(planned, traced.structure, graph.bound), planned, model, flush_denormals)


def _named(
    model: Any, examples: Sequence[Any], keyword_examples: Mapping[str, Any], dims: Any, dim: str | int
) -> tuple[Any, str]:
    """Return the named dimensions of the arguments, and the name of that of time."""
    if not isinstance(dim, str):
        if dims is not None:
            raise ArgumentError("dims names the dimension of time", remedy="pass its name as dim, or leave out dims")
        dims, dim = _dims_of(examples, keyword_examples, _whole_number("dim", dim, None)), "time"
    dims = getattr(model, "dims", None) if dims is None else dims
    if dims is None:
        raise ArgumentError(
            "the dimension of time is not known",
            remedy=f"pass its number, dim=1, or dims={{'x': (1, gc.Dim({dim!r}))}}",
        )
    return dims, dim


def _whole_number(name: str, value: Any, least: int | None) -> int:
    """Return an argument as an int. Raise ArgumentError for other types, and for numbers below ``least``."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ArgumentError(f"{name} must be a whole number, got {type(value).__name__}") from None
    if least is not None and number < least:
        raise ArgumentError(f"{name} must be at least {least}, got {number}")
    return number


def _dims_of(examples: Sequence[Any], keyword_examples: Mapping[str, Any], axis: int) -> Any:
    leaves, _ = flatten((examples, dict(keyword_examples)))
    time = Dim("time")

    def spec(x: Any) -> Any:
        rank = len(np.shape(x))
        if not -rank <= axis < rank:
            raise ArgumentError(f"an example of rank {rank} has no dimension {axis}")
        return tuple(time if i == axis % rank else None for i in range(rank))

    if len(leaves) != len(examples) + len(keyword_examples):
        raise ArgumentError("arguments are nested", remedy="name the dimension of time in dims")
    return {**{i: spec(x) for i, x in enumerate(examples)}, **{n: spec(x) for n, x in keyword_examples.items()}}


def _dimension(graph: Graph, name: str) -> Dimension:
    """Return the dimension of time, which a trace may have replaced by a part of it (``4*time_4``)."""
    return next(d for n, d in graph.dims.items() if n == name or n.startswith(f"{name}_"))
