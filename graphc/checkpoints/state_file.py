"""State dictionaries and nested checkpoints in files, written by suffix and read by content."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError
from graphc.checkpoints.matching import detached, only_state
from graphc.checkpoints.safetensors_file import array_of, save_safetensors
from graphc.checkpoints.tree import TREE, split
from graphc.checkpoints.weight_file import TORCH, read_weights
from graphc.files.numpy_file import write_npz


def save_state(state: Any, path: str | os.PathLike[str]) -> None:
    """Write a state dictionary, or a nested checkpoint, to a ``.safetensors`` or ``.npz`` file, atomically.

    A checkpoint nests dictionaries, lists, tuples, numbers, strings, bools and None around tensors, e.g. ``{"model":
    model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}``. Raises ArgumentError for other values and
    other suffixes; OSError.

    Example:
        >>> import graphc as gc
        >>> model = gc.nn.Linear(2, 1)
        >>> gc.save_state({"model": model.state_dict(), "epoch": 3}, "checkpoint.safetensors")
        >>> gc.load_state("checkpoint.safetensors")["epoch"]
        3
    """
    tensors, tree = split(state)
    arrays = {name: array_of(name, value) for name, value in tensors.items()}
    suffix = Path(path).suffix
    if suffix == ".safetensors":
        save_safetensors(arrays, path, {TREE: tree} if tree else None)
    elif suffix == ".npz":
        if TREE in arrays:
            raise ArgumentError(f"the name {TREE!r} is reserved")
        write_npz(path, arrays | ({TREE: np.frombuffer(tree.encode(), np.uint8)} if tree else {}))
    else:
        raise ArgumentError(
            f"{os.fspath(path)}: there is no format for {suffix!r}",
            remedy="use .safetensors or .npz; graphc.save writes files for PyTorch",
        )


def load_state(path: str | os.PathLike[str]) -> Any:
    """Load the state dictionary in a file of weights, or a checkpoint of ``save_state`` with its nesting.

    The content determines the format: safetensors, an index of shards (``model.safetensors.index.json``,
    ``pytorch_model.bin.index.json``), a file of ``torch.save``, ``.npz``, a model file of graphc, or a folder with one
    of these. From a checkpoint of PyTorch, the only dictionary of names and tensors in it is returned, or the only one
    named state_dict, model_state_dict or model. Element types are kept. Nothing in the file is executed. Raises
    ArtifactError for a damaged file, and for a checkpoint with no such dictionary or several; OSError.

    Example:
        >>> import graphc as gc
        >>> gc.save_state({"weight": gc.tensor([1.0, 2.0])}, "weights.npz")
        >>> gc.load_state("weights.npz")["weight"]
        tensor([1., 2.])
    """
    file = read_weights(path)
    if file.format != TORCH:
        return file.tree
    return detached(only_state(file.tree, file.path))
