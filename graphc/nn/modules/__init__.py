"""Every layer, loss and container: ``import graphc.nn.modules as M``."""

from graphc.base.lazy import collect, known_as
from graphc.nn.module import *
from graphc.nn.modules.activation import *
from graphc.nn.modules.adaptive_softmax import *
from graphc.nn.modules.attention import *
from graphc.nn.modules.container import *
from graphc.nn.modules.convolution import *
from graphc.nn.modules.distance import *
from graphc.nn.modules.dropout import *
from graphc.nn.modules.flatten import *
from graphc.nn.modules.lazy import *
from graphc.nn.modules.linear import *
from graphc.nn.modules.loss import *
from graphc.nn.modules.normalization import *
from graphc.nn.modules.parameter_container import *
from graphc.nn.modules.pooling import *
from graphc.nn.modules.recurrent import *
from graphc.nn.modules.sparse import *
from graphc.nn.modules.transformer import *
from graphc.nn.modules.unpooling import *
from graphc.nn.modules.vision import *
from graphc.nn.modules.volume import *

collect(__name__)

_SPATIAL = "graphc.nn.functional.spatial"
_PRIVATE = {
    "activation": {},
    "adaptive": {},
    "batchnorm": {name: f"{__name__}.normalization:_BatchNorm" for name in ("_BatchNorm", "_NormBase")},
    "channelshuffle": {},
    "conv": {
        "_ConvNd": f"{__name__}.convolution:_Conv",
        "_ConvTransposeNd": f"{__name__}.convolution:_ConvTranspose",
    },
    "dropout": {"_DropoutNd": f"{__name__}.dropout:_Dropout"},
    "fold": {},
    "instancenorm": {"_InstanceNorm": f"{__name__}.normalization:_InstanceNorm"},
    "linear": {},
    "loss": {},
    "padding": {},
    "pixelshuffle": {},
    "pooling": {},
    "rnn": {},
    "upsampling": {},
    "utils": {f"_{name}": f"{_SPATIAL}:{name}" for name in ("single", "pair", "triple", "quadruple")}
    | {"_ntuple": f"{_SPATIAL}:repeated"},
}
"""The files in which PyTorch keeps its layers, where users import these from, with the bases that they ask for."""
_OLD = {name: {} for name in ("folding", "loss_multilabel", "shrinkage", "sync_batch_norm")}
"""Files of graphc 0.2.0, which pickles name."""
for _file, _names in (_PRIVATE | _OLD).items():
    # PyTorch's paths hand on all layers, also those that are files here.
    vars(known_as(f"{__name__}.{_file}", "graphc.nn", **_names)).pop("__all__", None)
