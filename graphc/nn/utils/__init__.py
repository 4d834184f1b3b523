"""Utilities on parameters under PyTorch's import path: clipping, vectors, norms, pruning, sequences."""

from graphc.base.lazy import collect, known_as
from graphc.nn.clip_grad import *
from graphc.nn.utils.creation import *
from graphc.nn.utils.fusion import *
from graphc.nn.utils.normed_weight import *

from . import parametrizations, parametrize, prune, rnn, stateless

collect(__name__, "parametrizations", "parametrize", "prune", "rnn", "stateless")

for _file in ("clip_grad", "convert_parameters", "weight_norm", "spectral_norm"):
    known_as(f"{__name__}.{_file}", __name__)
