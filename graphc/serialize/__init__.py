"""State dictionaries and checkpoints as files; nothing that a file holds is ever executed."""

from graphc.serialize.pt_file import load_pt
from graphc.serialize.pt_write import save
from graphc.serialize.safetensors_file import load_safetensors, save_safetensors
from graphc.serialize.state_file import load_state, save_state
from graphc.serialize.weights import load_weights

__all__ = ["load_pt", "load_safetensors", "load_state", "load_weights", "save", "save_safetensors", "save_state"]
