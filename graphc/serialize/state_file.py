"""State dictionaries and nested checkpoints in files, whose format follows from the file's suffix."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from graphc.base.dtypes import ALL
from graphc.base.errors import ArgumentError, ArtifactError
from graphc.files.numpy_file import read_npz, write_npz
from graphc.serialize.pt_file import load_pt, state_of
from graphc.serialize.safetensors_file import array_of, read_safetensors, save_safetensors
from graphc.serialize.tree import join, split
from graphc.tensors.creation import from_numpy
from graphc.tensors.tensor import Tensor

TREE = "graphc.tree"
"""Name under which a file says how a checkpoint is nested."""
READABLE = (".safetensors", ".npz", ".pt", ".pth")


def save_state(state: Any, path: str | os.PathLike[str]) -> None:
    """Writes a state dictionary, or a nested checkpoint, to a ``.safetensors`` or ``.npz`` file, atomically.

    A checkpoint nests dictionaries, lists, tuples, numbers, texts, bools and None around tensors, e.g. ``{"model":
    model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}``. Raises ArgumentError for other values and
    other suffixes; OSError.
    """
    tensors, tree = split(state)
    arrays = {name: array_of(name, value) for name, value in tensors.items()}
    suffix = Path(path).suffix
    if suffix == ".safetensors":
        save_safetensors(arrays, path, {TREE: tree} if tree else None)
    elif suffix == ".npz":
        if TREE in arrays:
            raise ArgumentError(f"the name {TREE!r} is taken")
        write_npz(path, arrays | ({TREE: np.frombuffer(tree.encode(), np.uint8)} if tree else {}))
    else:
        raise ArgumentError(f"{os.fspath(path)}: there is no format for {suffix!r}", remedy=".safetensors or .npz")


def load_state(path: str | os.PathLike[str]) -> Any:
    """What ``save_state`` wrote, or the state dictionary of a PyTorch file (``.pt``, ``.pth``).

    Returns a dictionary of names and tensors, or the checkpoint as it was nested. Nothing in the file is executed.
    Raises ArtifactError for a damaged file, ArgumentError for another suffix; OSError.
    """
    suffix, place = Path(path).suffix, os.fspath(path)
    if suffix == ".safetensors":
        tensors, metadata = read_safetensors(path)
        return _joined(tensors, metadata.get(TREE, ""), place)
    if suffix == ".npz":
        arrays = read_npz(path)
        tree = arrays.pop(TREE, np.empty(0, np.uint8)).tobytes().decode("utf-8", "replace")
        return _joined({name: _tensor(f"{place}: {name!r}", a) for name, a in arrays.items()}, tree, place)
    if suffix in (".pt", ".pth"):
        return dict(state_of(load_pt(path), place))
    remedy = f"one of {', '.join(READABLE)}" + ("; graphc.load reads model files" if suffix == ".gcm" else "")
    raise ArgumentError(f"{place}: there is no format for {suffix!r}", remedy=remedy)


def _joined(tensors: dict[str, Tensor], tree: str, place: str) -> Any:
    try:
        return join(tensors, tree)
    except ArtifactError as error:
        error.what = f"{place}: {error.what}"
        raise


def _tensor(place: str, array: np.ndarray) -> Tensor:
    if array.dtype not in [d.numpy for d in ALL]:
        raise ArtifactError(f"{place} has element type {array.dtype}", remedy="numpy.float32, for example")
    return from_numpy(array)
