"""A graph of ATen operators as graphc holds it, whoever wrote it: Dynamo, ``torch.export``, or a ``.pt2`` file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from graphc.base.location import UNKNOWN, Location

AUTOCAST = "higher_order.wrap_with_autocast"
"""Its second argument is an element type, which is not read: regions for which it means something are refused."""
WITHOUT_MEANING = frozenset({"device", "layout", "pin_memory", "memory_format", "generator"})
"""Arguments of operators that say where and how memory lies, which is graphc's own matter: graphs lack them."""


@dataclass(frozen=True, slots=True)
class Ref:
    """A value of the graph where it is used: an argument, or what a step computes, by name."""

    name: str


@dataclass(frozen=True, slots=True)
class Step:
    """One application of an operator; ``args`` and ``kwargs`` hold Refs, numbers, dtypes of graphc, texts, None, and
    lists, tuples and dictionaries of these. Devices, layouts and memory formats are left out by who reads the graph."""

    name: str
    target: str
    """``aten.add.Tensor``, ``operator.mul``, ``math.ceil``."""
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    place: Location = UNKNOWN
    """The line of the user that it comes from."""

    def __str__(self) -> str:
        shown = [_shown(a) for a in self.args] + [f"{k}={_shown(v)}" for k, v in self.kwargs.items()]
        return f"{self.name} = {self.target}({', '.join(shown)})"


@dataclass(slots=True)
class AtenGraph:
    """Steps in an order in which they can run."""

    name: str
    inputs: list[str]
    steps: list[Step]
    output: Any
    """Refs and what else a step may hold, nested in lists, tuples and dictionaries."""
    constants: dict[str, Any] = field(default_factory=dict)
    """Tensors of graphc, and graphs of branches and loops, by the names that Refs use."""

    def __str__(self) -> str:
        lines = [f"{self.name}({', '.join(self.inputs)})", *[f"  {s}" for s in self.steps]]
        return "\n".join([*lines, f"  return {_shown(self.output)}"])


def _shown(value: Any) -> str:
    if isinstance(value, Ref):
        return value.name
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_shown, value))}]"
    return repr(value)


def refs(value: Any) -> Iterator[str]:
    """The names of the values that nested arguments use."""
    if isinstance(value, Ref):
        yield value.name
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from refs(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from refs(part)
    elif isinstance(value, slice):
        yield from refs((value.start, value.stop, value.step))


def replaced(value: Any, find: Callable[[str], Any]) -> Any:
    """Nested arguments with what ``find`` gives for each name in the place of its Refs."""
    if isinstance(value, Ref):
        return find(value.name)
    if isinstance(value, Mapping):
        return {key: replaced(part, find) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)([replaced(part, find) for part in value])
    if isinstance(value, slice):
        return slice(*[replaced(part, find) for part in (value.start, value.stop, value.step)])
    return value
