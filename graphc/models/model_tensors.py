"""Tensors as arguments, params and states of loaded models; imported where there are some."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError, GradientError, TraceError
from graphc.base.foreign import is_foreign_tensor
from graphc.models.model_call import ModelCall
from graphc.nn.parameter import Parameter
from graphc.runtime.call import Executable
from graphc.tape.grad_mode import is_grad_enabled
from graphc.tensors.creation import from_dlpack
from graphc.tensors.placement import is_on_device, on_host
from graphc.tensors.tensor import Tensor


def tensor_of(array: np.ndarray, is_param: bool = False) -> Tensor:
    """A tensor, or a parameter, that owns an array."""
    return Parameter(Tensor._wrap(array)) if is_param else Tensor._wrap(array)


def array_of(value: Any) -> np.ndarray:
    """The array of a tensor, in the memory of the host, or what numpy makes of anything else."""
    return on_host(value._data) if isinstance(value, Tensor) else np.asarray(value)


def call_on_tensors(call: ModelCall, given: Sequence[Any], out: Sequence[np.ndarray] | None) -> list[Any]:
    """The outputs of a call in order; tensors where some argument is one. Raises GradientError where gradients would be
    lost, and what a call on arrays raises."""
    if not any(isinstance(a, Tensor) for a in given):
        return call.run([_argument(call, a) for a in given], out)
    if _is_recorded(call, given):
        return _record(call, given, out)
    return [Tensor._wrap(a) for a in call.run([_argument(call, a) for a in given], out)]


def _is_recorded(call: ModelCall, given: Sequence[Any]) -> bool:
    """Whether outputs of a call are part of the autograd graph."""
    if not is_grad_enabled():
        return False
    inputs = any(isinstance(a, Tensor) and a.requires_grad for a in given)
    return inputs or (call.spec.derivative is not None and any(p.requires_grad for p in call.trained))


def _record(call: ModelCall, given: Sequence[Any], out: Any) -> list[Any]:
    title = call.spec.title
    recorder = None if call.recorder is None else call.recorder()
    if recorder is None:
        raise GradientError(
            f"the loaded model {title} computes no gradients, but an input requires them",
            remedy="x.detach(), or with graphc.no_grad(): ...; export(..., derivative=True), whose file has them",
        )
    if out is not None:
        raise GradientError(f"outputs of {title} that have gradients are written to no array of others")
    for value in given:
        _argument(call, value)
    if call.checks is not None:
        call.checks.of([a._data if isinstance(a, Tensor) else a for a in given])
    return recorder.run(given)


def _argument(call: ModelCall, value: Any) -> Any:
    """The array of a tensor, one of another library too; raises TraceError under trace."""
    if not isinstance(value, Tensor):
        foreign = not isinstance(value, np.ndarray) and not is_on_device(value) and is_foreign_tensor(value)
        return from_dlpack(value)._data if foreign else value
    title = call.spec.title
    if is_on_device(value._data) and isinstance(call.program, Executable):
        raise ArgumentError(
            f"an input of {title} lies on {value._data.device.name}, and it was loaded for the CPU",
            remedy=f"graphc.load(path, device={value._data.device.name!r}), or x.cpu()",
        )
    if not isinstance(value._data, np.ndarray) and not is_on_device(value._data):
        raise TraceError(
            f"the loaded model {title} cannot be part of a compiled function", remedy="the module it was made of"
        )
    return value._data
