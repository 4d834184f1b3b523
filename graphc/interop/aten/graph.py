"""Graph of ATen operators, independent of its source: Dynamo, ``torch.export``, or a ``.pt2`` file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import Any

from graphc.base.location import UNKNOWN, Location
from graphc.base.records import dataclass

AUTOCAST = "higher_order.wrap_with_autocast"
"""Its second argument is an element type, which is not read: the rule refuses regions where it matters."""
WITHOUT_MEANING = frozenset({"device", "layout", "pin_memory", "memory_format", "generator"})
"""Arguments about memory placement, which graphc decides itself. Graphs omit them."""


@dataclass(frozen=True, slots=True)
class Ref:
    """Use of a value of the graph by name: an argument, or the result of a step."""

    name: str


@dataclass(frozen=True, slots=True)
class Step:
    """One application of an operator.

    ``args`` and ``kwargs`` hold Refs, numbers, dtypes of graphc, strings, None, and lists, tuples and dictionaries of
    these. Readers of graphs omit devices, layouts and memory formats.
    """

    name: str
    target: str
    """Name such as ``aten.add.Tensor``, ``operator.mul``, ``math.ceil``."""
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    location: Location = UNKNOWN
    """The user's line that it comes from."""

    def __str__(self) -> str:
        arguments = [_shown(a) for a in self.args] + [f"{k}={_shown(v)}" for k, v in self.kwargs.items()]
        return f"{self.name} = {self.target}({', '.join(arguments)})"


@dataclass(slots=True)
class AtenGraph:
    """Steps in an order in which they can run."""

    name: str
    inputs: list[str]
    steps: list[Step]
    output: Any
    """Refs and other values of steps, nested in lists, tuples and dictionaries."""
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
    """Yield the names of the values in nested arguments."""
    if isinstance(value, Ref):
        yield value.name
    elif isinstance(value, Mapping):
        for element in value.values():
            yield from refs(element)
    elif isinstance(value, (list, tuple)):
        for element in value:
            yield from refs(element)
    elif isinstance(value, slice):
        yield from refs((value.start, value.stop, value.step))


def replaced(value: Any, find: Callable[[str], Any]) -> Any:
    """Replace each Ref in nested arguments by ``find`` of its name."""
    if isinstance(value, Ref):
        return find(value.name)
    if isinstance(value, Mapping):
        return {key: replaced(element, find) for key, element in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)([replaced(element, find) for element in value])
    if isinstance(value, slice):
        return slice(*[replaced(element, find) for element in (value.start, value.stop, value.step)])
    return value
