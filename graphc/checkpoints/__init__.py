"""State dictionaries and checkpoints as files; loading never executes anything from a file."""

from graphc.checkpoints.pt_file import load_pt
from graphc.checkpoints.pt_write import save
from graphc.checkpoints.safetensors_file import load_safetensors, save_safetensors
from graphc.checkpoints.state_file import load_state, save_state
from graphc.checkpoints.weights import load_weights

__all__ = ["load_pt", "load_safetensors", "load_state", "load_weights", "save", "save_safetensors", "save_state"]
