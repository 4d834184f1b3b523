"""Forward pass and loss of a training step: how a batch reaches model and loss, and which result is the loss."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from graphc.base.errors import ArgumentError
from graphc.tensors.tensor import Tensor


def forward_and_loss(
    model: Any, loss: Any, names: Sequence[Any] | None, x: tuple[Any, ...], y: tuple[Any, ...], more: Any = None
) -> tuple[Any, ...]:
    """Return the loss's result and the model's output. With ``names``, return the losses of these names first.

    ``more`` holds keyword arguments of the model. Without ``loss`` the model computes it, and ``y`` holds further
    arguments of the model.
    """
    if loss is None:
        output = model(*x, *y, **(more or {}))
        result = output if names else loss_of(output)
    else:
        output = model(*x, **(more or {}))
        result = loss(output, *y)
    if names:
        return _named(result, names), result, output
    first = result[0] if isinstance(result, (tuple, list)) and result else result
    if not isinstance(first, Tensor):
        raise ArgumentError(
            f"compile_step: the loss returned {type(first).__name__} where the loss should be",
            remedy="return the loss, or a tuple that begins with it: return loss, {'accuracy': accuracy}",
        )
    return result, output


def _named(result: Any, names: Sequence[Any]) -> tuple[Tensor, ...]:
    """Return the loss of each name, in order."""
    losses = result[0] if isinstance(result, (tuple, list)) and result else result
    if not isinstance(losses, Mapping) or any(not isinstance(losses.get(name), Tensor) for name in names):
        entries = ", ".join(f"{name!r}: ..." for name in names)
        raise ArgumentError(
            f"compile_step: optimizers exist for the losses {', '.join(map(repr, names))}, but the loss returned "
            f"{_described(losses)}",
            remedy=f"return {{{entries}}}, or a tuple that begins with it",
        )
    return tuple(losses[name] for name in names)


def _described(value: Any) -> str:
    return f"a dictionary of {', '.join(map(repr, value))}" if isinstance(value, Mapping) else type(value).__name__


def loss_of(output: Any) -> Tensor:
    """Return the loss in a model's output: the output itself, its entry or attribute ``loss``, or the only scalar with
    a gradient in a tuple or list.
    """
    if isinstance(output, Tensor):
        return output
    if isinstance(output, Mapping):
        candidates = [output["loss"]] if isinstance(output.get("loss"), Tensor) else []
    elif isinstance(getattr(output, "loss", None), Tensor):
        candidates = [output.loss]
    elif isinstance(output, (tuple, list)):
        candidates = [t for t in output if isinstance(t, Tensor) and not t.shape and t.requires_grad]
    else:
        candidates = []
    if len(candidates) != 1:
        raise ArgumentError(
            f"compile_step: without a loss the model computes it, and the {type(output).__name__} that it returned "
            f"has {len(candidates) or 'no'} candidates for the loss",
            remedy="select the loss: compile_step(model, lambda output: output[1], optimizer)",
        )
    return candidates[0]


class Inputs:
    """The mapping of a step's first argument to the model's arguments.

    A tuple is several arguments. A dictionary whose keys are parameters of ``forward`` is keyword arguments. Anything
    else is one argument.
    """

    def __init__(self, model: Any):
        self.names: set[str] = set()
        """Parameters that accept a keyword."""
        self._needed: set[str] = set()
        try:
            parameters = inspect.signature(getattr(model, "forward", model)).parameters.values()
        except (TypeError, ValueError):
            return
        kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        named = [p for p in parameters if p.kind in kinds]
        self.names = {p.name for p in named}
        self._needed = {p.name for p in named if p.default is p.empty}

    def are_keywords(self, x: Any) -> bool:
        """Return whether a first argument is a dictionary of the model's keyword arguments."""
        return isinstance(x, dict) and bool(x) and x.keys() <= self.names and x.keys() >= self._needed

    def split(self, args: tuple[Any, ...], more: dict[str, Any]) -> tuple[tuple[Any, ...], tuple[Any, ...], Any]:
        """Return the model's positional arguments, the arguments of the loss, and the model's keyword arguments in a
        call ``step(*args, **more)``."""
        x, y = args[:1], args[1:]
        if x and isinstance(x[0], tuple):
            x = x[0]
        elif x and not more and self.are_keywords(x[0]):
            x, more = (), x[0]
        return x, y, more
