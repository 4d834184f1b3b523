"""``graphc.from_torch``: a model of PyTorch as a module of graphc."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from graphc.base.installation import install_command
from graphc.base.lazy import deferred

_read = deferred("graphc.interop.torch.exported:from_torch")


def from_torch(
    source: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None, *, dynamic_shapes: Any = None
) -> Any:
    """A module that computes what a ``torch.nn.Module`` or an ExportedProgram does, by ``torch.export``.

    ``args`` and ``kwargs`` are example arguments of the module, tensors of PyTorch; ``dynamic_shapes`` says as for
    ``torch.export.export`` which sizes are open. Parameters and buffers are copies with the same names, tied ones stay
    tied. The module takes tensors of graphc, nested and named as in the export, and gives results nested as the model
    nests them. It trains, compiles (``graphc.compile(module, dims=module.dims)`` for open sizes) and is exported.

    ``train`` and ``eval`` work where a ``torch.nn.Module`` is given, which is kept to be exported again. An
    ExportedProgram has the mode in which it was exported.

    Raises ModuleNotFoundError without PyTorch, UnsupportedError for what cannot be exported and for operators and
    element types that graphc does not have, with the line of the model.
    """
    if find_spec("torch") is None:
        raise ModuleNotFoundError(f"from_torch needs PyTorch: {install_command('torch')}", name="torch")
    return _read(source, args, kwargs, dynamic_shapes)
