"""The import path that users know for checkpoints and files of weights."""

from graphc.checkpoints import (
    load_pt,
    load_safetensors,
    load_state,
    load_weights,
    save,
    save_safetensors,
    save_state,
)

__all__ = ["load_pt", "load_safetensors", "load_state", "load_weights", "save", "save_safetensors", "save_state"]
