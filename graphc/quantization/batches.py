"""Batches of calibration data: the calls of a model that an iterable of inputs describes, and hooks during them."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError
from graphc.nn.module import Module
from graphc.tape.grad_mode import no_grad
from graphc.tape.hooks import RemovableHandle
from graphc.tensors.creation import as_tensor
from graphc.tensors.tensor import Tensor

Batch = tuple[tuple[Any, ...], dict[str, Any]]
"""Positional and keyword arguments of one call."""


def _limits(model: Module) -> tuple[int | None, set[str] | None]:
    """Return the number of positional arguments that ``forward`` takes, and the names of named ones. None if there is
    no limit."""
    parameters = inspect.signature(model.forward).parameters.values()
    kinds = {p.kind for p in parameters}
    count = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
    names = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    variable = inspect.Parameter
    return None if variable.VAR_POSITIONAL in kinds else count, None if variable.VAR_KEYWORD in kinds else names


def batches_of(model: Module, data: Any) -> Iterator[Batch]:
    """Iterate over the calls that the data describes.

    Elements are a tensor or array (the only argument), a tuple or list (positional arguments), or a dictionary
    (keyword arguments). Those that ``forward`` does not take, such as the labels of a data set, are left out.
    """
    if isinstance(data, (Tensor, np.ndarray)):
        raise ArgumentError(
            "quantize: the calibration data is one tensor, not an iterable of inputs", remedy="pass a list: [x]"
        )
    if not isinstance(data, Iterable):
        raise ArgumentError(
            f"quantize: {type(data).__name__} is no iterable of inputs", remedy="pass a list of inputs or a DataLoader"
        )
    limit, names = _limits(model)
    for item in data:
        if isinstance(item, Mapping):
            yield (), {str(n): _tensor(value) for n, value in item.items() if names is None or n in names}
        elif isinstance(item, (tuple, list)):
            yield tuple(_tensor(value) for value in item[:limit]), {}
        else:
            yield (_tensor(item),), {}


def _tensor(value: Any) -> Any:
    return as_tensor(value) if isinstance(value, np.ndarray) else value


def run(model: Module, batch: Batch) -> Any:
    """Call the model without gradients."""
    arguments, named = batch
    with no_grad():
        return model(*arguments, **named)


@contextmanager
def attached(handles: Iterable[RemovableHandle]) -> Iterator[None]:
    """Remove hooks at the end of the block, also after an error."""
    registered = list(handles)
    try:
        yield
    finally:
        for handle in registered:
            handle.remove()


def input_of(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Return the input of a layer from the arguments of its call: ``layer(x)`` or ``layer(input=x)``."""
    return args[0] if args else kwargs["input"]
