"""PyTorch's import path for GPUs: devices, memory, synchronization."""

from graphc.calls.gpus import *
from graphc.calls.gpus import __all__ as __all__
