"""Forward pass and loss of a training step: how batches reach model and loss, and where the loss is found."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from graphc.base.errors import ArgumentError
from graphc.tensors.tensor import Tensor


def forward_and_loss(
    model: Any, loss: Any, names: Sequence[Any] | None, x: tuple[Any, ...], y: tuple[Any, ...], more: Any = None
) -> tuple[Any, ...]:
    """What the loss returned, and what the model did; before these the losses of these ``names``, if there are any.

    ``more`` are keyword arguments of the model. Without ``loss`` the model computes it, and ``y`` are arguments of the
    model, too."""
    if loss is None:
        output = model(*x, *y, **(more or {}))
        found = output if names else loss_of(output)
    else:
        output = model(*x, **(more or {}))
        found = loss(output, *y)
    if names:
        return _named(found, names), found, output
    first = found[0] if isinstance(found, (tuple, list)) and found else found
    if not isinstance(first, Tensor):
        raise ArgumentError(
            f"compile_step: the loss returned {type(first).__name__} where the loss should be",
            remedy="return the loss, or a tuple that begins with it: return loss, {'accuracy': accuracy}",
        )
    return found, output


def _named(found: Any, names: Sequence[Any]) -> tuple[Tensor, ...]:
    """The loss of each name, in order."""
    losses = found[0] if isinstance(found, (tuple, list)) and found else found
    if not isinstance(losses, Mapping) or any(not isinstance(losses.get(name), Tensor) for name in names):
        shown = ", ".join(f"{name!r}: ..." for name in names)
        raise ArgumentError(
            f"compile_step: there are optimizers for the losses {', '.join(map(repr, names))}, and the loss returned "
            f"{_described(losses)}",
            remedy=f"return {{{shown}}}, or a tuple that begins with it",
        )
    return tuple(losses[name] for name in names)


def _described(value: Any) -> str:
    return f"a dictionary of {', '.join(map(repr, value))}" if isinstance(value, Mapping) else type(value).__name__


def loss_of(output: Any) -> Tensor:
    """The loss in what a model returned: it itself, its entry or attribute ``loss``, or the only one number in a tuple
    or list that has a gradient."""
    if isinstance(output, Tensor):
        return output
    if isinstance(output, Mapping):
        found = [output["loss"]] if isinstance(output.get("loss"), Tensor) else []
    elif isinstance(getattr(output, "loss", None), Tensor):
        found = [output.loss]
    elif isinstance(output, (tuple, list)):
        found = [t for t in output if isinstance(t, Tensor) and not t.shape and t.requires_grad]
    else:
        found = []
    if len(found) != 1:
        raise ArgumentError(
            f"compile_step: without a loss the model computes it, and in the {type(output).__name__} that it returned "
            f"{len(found) or 'none'} may be the loss",
            remedy="compile_step(model, lambda output: output[1], optimizer), which says where it is",
        )
    return found[0]


class Inputs:
    """How the first argument of a step reaches the model: a tuple as several arguments, a dictionary whose keys are
    parameters of ``forward`` as keyword arguments, and anything else as it is."""

    def __init__(self, model: Any):
        self.names: set[str] = set()
        """Parameters that can be given by name."""
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
        """Whether a first argument is a dictionary of the model's keyword arguments."""
        return isinstance(x, dict) and bool(x) and x.keys() <= self.names and x.keys() >= self._needed
