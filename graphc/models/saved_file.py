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
    """Reads a file; its content, not its name, says what it is.

    A model file, which ``graphc.export`` or ``graphc compile`` wrote, becomes callable: a LoadedModel. The graph is
    compiled for this machine, or for what ``target`` names of it, as ``compile`` takes it; or for a ``device``, of
    which no file holds code. There arrays of the host are taken and given as well. Object code in the file is native
    code of whoever wrote it: it runs only with ``trust``, and only where this machine and this version of graphc fit,
    and where it is for the ``target`` if one is named. ``strict_order`` as ``compile`` takes it. With ``trainable``
    its ``parameters()`` get gradients, where the file holds a derivative. ``weights``, a file or tensors by name, are
    taken in the place of the file's (``LoadedModel.swap_weights``).

    ``map=True`` maps the file: its weights are pages that processes share. It may be replaced or removed meanwhile (by
    a rename, as ``export`` does), and must not be written to in place: a process whose file gets shorter is ended by
    SIGBUS. None maps a large file that nobody may write to, False none.

    A checkpoint, which ``graphc.save`` or ``torch.save`` wrote, gives what was saved: dictionaries, lists, tuples,
    numbers and texts around tensors, which share memory where they did, with types, strides and ``requires_grad`` as
    they were. Parameters are ``nn.Parameter``. safetensors files, indexes of shards, and ``.npz`` give their tensors by
    name. Nothing in a file is executed, even if ``weights_only=False``
    allows it, and tensors lie in the memory of the host, which is all that ``map_location`` may ask for.

    Raises ArtifactError for a damaged, foreign or newer file, or one that names classes or functions; ArgumentError for
    what the kind of file does not take; OSError; CompileError.
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
