"""Loading of weights into a model: find the matching dictionary in a file, copy it, report the changes of names."""

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
    """Copy the weights in a file into a model, like ``model.load_state_dict`` with a state dictionary.

    ``load_state`` lists the formats. The dictionary of names and tensors that matches the model's names is found in the
    file, however nested; common prefixes of names such as ``module.`` are removed or added. A warning reports that.
    ``entry`` selects the dictionary if several match, by its path in the checkpoint (``"ema"``, ``"ema/state_dict"``).
    Raises ArtifactError for a damaged file, and if several dictionaries match; StateDictError if names (only if
    ``strict``) or shapes do not match; OSError.

    Example:
        >>> import graphc as gc
        >>> trained, model = gc.nn.Linear(2, 1), gc.nn.Linear(2, 1)
        >>> gc.save_state(trained.state_dict(), "weights.safetensors")
        >>> result = gc.load_weights(model, "weights.safetensors")
        >>> gc.equal(model.weight, trained.weight)
        True
    """
    no_foreign_module("load_weights", model)
    if not isinstance(model, Module):
        raise ArgumentError(f"load_weights: expected a module, got {type(model).__name__}")
    match = weights_for(model, path, entry)
    for note in match.notes:
        warnings.warn(note, stacklevel=2)
    return model.load_state_dict(match.state, strict=strict)


def weights_for(model: Module, path: str | os.PathLike[str], entry: str | None = None) -> Found:
    """Return the state dictionary in a file that matches a model, with notes that name the file."""
    file = read_weights(path)
    match = state_for(model.state_dict(), file.tree, file.path, entry)
    return Found(match.state, [f"{file.path}: {note}" for note in match.notes])
