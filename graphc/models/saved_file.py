"""Files of any kind that ``graphc.load`` reads: model files become callables, checkpoints their saved objects."""

from __future__ import annotations

import os
from typing import Any

from graphc.base.errors import ArgumentError
from graphc.base.lazy import deferred
from graphc.calls.machine import HOST
from graphc.files.container import is_container
from graphc.models import model_file


def _is_host(map_location: Any) -> bool:
    """Return whether ``map_location`` places tensors of any device in host memory.

    This holds for None, the name of the CPU, a dictionary from device names to such names, and a function of memory and
    name that returns the memory as it is.
    """
    if isinstance(map_location, dict):
        return all(str(target) == "cpu" for target in map_location.values())
    if callable(map_location):
        memory = object()
        return map_location(memory, "cpu") in (memory, None)
    return map_location is None or str(map_location) == "cpu"


_read_weights = deferred("graphc.checkpoints.weight_file:read_weights")


def load(
    path: str | os.PathLike[str],
    trust: bool = False,
    *,
    map_location: Any = None,
    weights_only: bool = True,
    target: str = HOST,
    device: Any = None,
    strict_order: bool = False,
    trainable: bool = False,
    weights: Any = None,
    map: bool | None = None,
) -> Any:
    """Load a model file, a checkpoint or a file of weights; the content, not the name, decides which.

    Nothing in a file is executed without ``trust``. docs/deploy.md shows model files, docs/data.md checkpoints.

    Args:
        path: file to read.
        trust: run object code in a model file, where it fits this machine and version.
        map_location: ``"cpu"`` or None; loaded tensors are in host memory.
        weights_only: accepted; classes in a checkpoint are refused in any case.
        target, device, strict_order: as for ``compile``; for model files.
        trainable: give the parameters of a model file gradients; the file holds a derivative.
        weights: file, or tensors by name, to use instead of the model file's weights.
        map: memory-map a model file. None maps large read-only files. Never write to a mapped file in place.

    Returns:
        A LoadedModel for a model file. For a checkpoint, the saved object, with shared memory, strides and
        ``requires_grad``; for ``.safetensors`` and ``.npz``, a dictionary of tensors by name.

    Raises:
        ArtifactError: a damaged, foreign or newer file, or one that names classes or functions.
        ArgumentError: an option that this kind of file does not take.
        CompileError: the model cannot be compiled for ``target``.
        OSError: the file cannot be read.

    Example:
        >>> import graphc as gc
        >>> gc.save({"weight": gc.tensor([1.0, 2.0]), "epoch": 3}, "checkpoint.pt")
        >>> gc.load("checkpoint.pt")
        {'weight': tensor([1., 2.]), 'epoch': 3}
    """
    if not isinstance(trust, bool):
        raise ArgumentError(f"load: trust is a bool, got {trust!r}", remedy="pass map_location='cpu' by its name")
    if not _is_host(map_location):
        raise ArgumentError(
            f"load: map_location={map_location!r}, but loaded tensors are in host memory",
            remedy="call tensor.to(device) afterwards; for a model file use graphc.load(path, device=...)",
        )
    own: dict[str, Any] = {"strict_order": strict_order, "trainable": trainable, "weights": weights, "map": map}
    if is_container(path):
        return model_file.load(path, trust, target=target, device=device, **own)
    placed = target != HOST or device is not None
    if trust or placed or weights is not None or strict_order or trainable or map:
        raise ArgumentError(
            f"load: {os.fspath(path)} is not a model file, which these options need", remedy="call graphc.load(path)"
        )
    return _read_weights(path).tree
