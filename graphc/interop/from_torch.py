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
    """Convert a ``torch.nn.Module`` or ExportedProgram to a Module of graphc, by ``torch.export``.

    Parameters and buffers are copies with the same names; tied ones stay tied. docs/from_pytorch.md shows its use.

    Args:
        source: a ``torch.nn.Module``, or an ExportedProgram, which keeps the mode it was exported in.
        args, kwargs: example arguments of the module, tensors of PyTorch.
        dynamic_shapes: sizes that vary, as for ``torch.export.export``.

    Returns:
        A Module that takes and returns tensors of graphc, nested and named as in the export. It trains, is exported,
        and
        compiles: ``graphc.compile(module, dims=module.dims)``. ``train`` and ``eval`` work for a ``torch.nn.Module``.

    Raises:
        ModuleNotFoundError: PyTorch is not installed.
        UnsupportedError: a model that ``torch.export`` rejects, or an operator or element type that graphc lacks.

    Example:
        >>> import graphc as gc
        >>> import torch
        >>> model = gc.from_torch(torch.nn.Softmax(dim=-1), (torch.zeros(2),))
        >>> model(gc.zeros(2))
        tensor([0.5000, 0.5000])
    """
    if find_spec("torch") is None:
        raise ModuleNotFoundError(f"from_torch needs PyTorch: {install_command('torch')}", name="torch")
    return _read(source, args, kwargs, dynamic_shapes)
