"""Weights of a file for a model: the dictionary that fits it is found, copied, and what was found is said."""

from __future__ import annotations

import os
import warnings

from graphc.base.errors import ArgumentError
from graphc.base.foreign import no_foreign_module
from graphc.checkpoints.matching import Found, state_for
from graphc.checkpoints.weight_file import read_weights
from graphc.nn.module import Module
from graphc.nn.module_state import IncompatibleKeys


def load_weights(
    model: Module, path: str | os.PathLike[str], strict: bool = True, entry: str | None = None
) -> IncompatibleKeys:
    """Copies the weights in a file into a model, as ``model.load_state_dict`` does with a state dictionary.

    The file is any that ``load_state`` reads. The dictionary of names and tensors that fits the model is found in it,
    however it is nested, by the model's names; prefixes that all names have, such as ``module.``, are taken off or put
    before. A warning says what was found so. ``entry`` names the dictionary where several fit, by its path in the
    checkpoint (``"ema"``, ``"ema/state_dict"``). Raises ArtifactError for a damaged file, and where several
    dictionaries fit; StateDictError when names (only when ``strict``) or shapes do not fit; OSError.
    """
    no_foreign_module("load_weights", model)
    if not isinstance(model, Module):
        raise ArgumentError(f"load_weights: expected a module, got {type(model).__name__}")
    found = weights_for(model, path, entry)
    for note in found.notes:
        warnings.warn(note, stacklevel=2)
    return model.load_state_dict(found.state, strict=strict)


def weights_for(model: Module, path: str | os.PathLike[str], entry: str | None = None) -> Found:
    """The state dictionary in a file that fits a model, and what there is to say of it, with the file's name."""
    file = read_weights(path)
    found = state_for(model.state_dict(), file.tree, file.path, entry)
    return Found(found.state, [f"{file.path}: {note}" for note in found.notes])
