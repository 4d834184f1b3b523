"""Models that take their state as an argument and return the next one: the state stays inside."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphc.base.errors import ArgumentError
from graphc.nn.module import Module
from graphc.streams.running import Named, Running, StepModule
from graphc.tensors.creation import from_numpy
from graphc.tensors.structure import Structure, flatten, names
from graphc.tensors.tensor import Tensor


class StatefulStep(StepModule):
    """A call of a model whose states are buffers: it takes the other inputs, and returns the other outputs."""

    def __init__(self, model: Any, arguments: Mapping[str, Tensor], states: Mapping[str, int]):
        """``states`` are the numbers of the outputs that hold the next states, by input."""
        super().__init__({name: arguments[name].detach().numpy() for name in states})
        self.model = model
        self._arguments = [*arguments]
        self._outputs = dict(states)

    @property
    def inputs(self) -> list[str]:
        """Names of the inputs of a call."""
        return [name for name in self._arguments if name not in self._outputs]

    @property
    def forward(self) -> Callable[..., Any]:  # type: ignore[override]
        """Return the function of a call, with the names of its inputs."""
        return Named(self._run, self.inputs)

    def _run(self, *inputs: Tensor) -> Any:
        given = dict(zip(self.inputs, inputs, strict=True))
        held = {name: self.buffer(name) for name in self._outputs}
        results = self.model(*({**given, **{n: b.clone() for n, b in held.items()}}[name] for name in self._arguments))
        leaves, structure = flatten(results)
        for name, number in self._outputs.items():
            held[name].copy_(leaves[number])
        rest = [leaf for number, leaf in enumerate(leaves) if number not in self._outputs.values()]
        if isinstance(results, dict) and len(names(structure, "")) == len(results):
            return {n: v for i, (n, v) in enumerate(results.items()) if i not in self._outputs.values()}
        return rest[0] if len(rest) == 1 else tuple(rest)


class StatefulStream(Running):
    """A running model that keeps its states. A call takes the other inputs, and returns the other outputs."""

    module: StatefulStep

    def fresh(self) -> StatefulStream:
        """Return another stream of the same model, with the first states."""
        return StatefulStream(self.copied(), self.flush_denormals)

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """Call the model once."""
        return self.compiled(*inputs, **named)


def stateful_stream(
    model: Any,
    examples: Sequence[Any],
    keyword_examples: Mapping[str, Any],
    states: Mapping[str, str | int],
    flush_denormals: bool = False,
) -> StatefulStream:
    """Make a stream of a model that takes states and returns them. Raise ArgumentError for names that it lacks."""
    if not isinstance(states, Mapping):
        raise ArgumentError(
            f"stateful is {type(states).__name__}", remedy='pass the output of each state: {"input": "output"}'
        )
    forward = model.forward if isinstance(model, Module) else model
    arguments = Named.bound(forward, examples, keyword_examples)
    tensors = {name: _tensor(name, value) for name, value in arguments.items()}
    unknown = next((name for name in states if name not in tensors), None)
    if unknown is not None:
        raise ArgumentError(
            f"the model has no input {unknown!r} (its inputs: {', '.join(tensors)})", remedy="name an input in stateful"
        )
    results = model(*tensors.values())
    leaves, structure = flatten(results)
    numbers = {name: _number(output, _output_names(model, structure, len(leaves))) for name, output in states.items()}
    for name, number in numbers.items():
        before, after = tensors[name], leaves[number]
        if before.shape != after.shape or before.dtype is not after.dtype:
            raise ArgumentError(
                f"input {name} is {before.dtype.name}{list(before.shape)}, and output {states[name]} is "
                f"{after.dtype.name}{list(after.shape)}",
                remedy="name the output that holds the next state",
            )
    return StatefulStream(StatefulStep(model, tensors, numbers), flush_denormals)


def _tensor(name: str, value: Any) -> Tensor:
    leaves, _ = flatten(value)
    if len(leaves) != 1:
        raise ArgumentError(f"input {name} is {type(value).__name__}, not one tensor")
    return leaves[0] if isinstance(leaves[0], Tensor) else from_numpy(leaves[0])


def _output_names(model: Any, structure: Structure, count: int) -> list[str]:
    """Return the names of a model's outputs: those of its file, or from their places in what it returns."""
    ports = getattr(getattr(model, "graph", None), "outputs", ())
    if len(ports) == count and count:
        return [port.name for port in ports]
    return [name.removeprefix(".") for name in names(structure, "")]


def _number(output: str | int, known: Sequence[str]) -> int:
    if isinstance(output, int) and 0 <= output < len(known):
        return output
    if output in known:
        return known.index(str(output))
    raise ArgumentError(
        f"the model has no output {output!r} (its outputs: {', '.join(known)})",
        remedy="pass a name, or a number from 0",
    )
