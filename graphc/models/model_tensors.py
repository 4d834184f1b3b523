"""Tensors as arguments, params and states of loaded models, in a module imported only when used."""

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
    """Return a tensor, or a parameter, that owns an array."""
    return Parameter(Tensor._wrap(array)) if is_param else Tensor._wrap(array)


def array_of(value: Any) -> np.ndarray:
    """Return the array of a tensor in host memory, or NumPy's conversion of anything else."""
    return on_host(value._data) if isinstance(value, Tensor) else np.asarray(value)


def call_on_tensors(call: ModelCall, arguments: Sequence[Any], out: Sequence[np.ndarray] | None) -> list[Any]:
    """Return the outputs of a call in order, as tensors where some argument is one.

    Raise GradientError where gradients would be lost, and the errors of a call on arrays.
    """
    if not any(isinstance(a, Tensor) for a in arguments):
        return call.run([_argument(call, a) for a in arguments], out)
    if _is_recorded(call, arguments):
        return _record(call, arguments, out)
    return [Tensor._wrap(a) for a in call.run([_argument(call, a) for a in arguments], out)]


def _is_recorded(call: ModelCall, arguments: Sequence[Any]) -> bool:
    """Return whether the outputs of a call are recorded on the autograd tape."""
    if not is_grad_enabled():
        return False
    inputs = any(isinstance(a, Tensor) and a.requires_grad for a in arguments)
    return inputs or (call.spec.derivative is not None and any(p.requires_grad for p in call.trained))


def _record(call: ModelCall, arguments: Sequence[Any], out: Any) -> list[Any]:
    title = call.spec.title
    recorder = None if call.recorder is None else call.recorder()
    if recorder is None:
        raise GradientError(
            f"the loaded model {title} computes no gradients, but an input requires them",
            remedy="pass x.detach(), call it in graphc.no_grad(), or export it with derivative=True for gradients",
        )
    if out is not None:
        raise GradientError(f"outputs of {title} that have gradients cannot be written to the arrays of `out`")
    for value in arguments:
        _argument(call, value)
    if call.checks is not None:
        call.checks.of([a._data if isinstance(a, Tensor) else a for a in arguments])
    return recorder.run(arguments)


def _argument(call: ModelCall, value: Any) -> Any:
    """Return the array of a tensor, also of another library. Raise TraceError under trace."""
    if not isinstance(value, Tensor):
        foreign = not isinstance(value, np.ndarray) and not is_on_device(value) and is_foreign_tensor(value)
        return from_dlpack(value)._data if foreign else value
    title = call.spec.title
    if is_on_device(value._data) and isinstance(call.program, Executable):
        raise ArgumentError(
            f"an input of {title} is on {value._data.device.name}, but the model was loaded for the CPU",
            remedy=f"load it with graphc.load(path, device={value._data.device.name!r}), or pass x.cpu()",
        )
    if not isinstance(value._data, np.ndarray) and not is_on_device(value._data):
        raise TraceError(
            f"the loaded model {title} cannot be part of a compiled function", remedy="use the original module"
        )
    return value._data
