"""Stateless functions of layers and losses, for use without a module: ``import graphc.nn.functional as F``."""

from graphc.base.lazy import collect, known_as
from graphc.nn.functional.activation import *
from graphc.nn.functional.attention import *
from graphc.nn.functional.convolution import *
from graphc.nn.functional.distance import *
from graphc.nn.functional.dropout import *
from graphc.nn.functional.linear import *
from graphc.nn.functional.loss import *
from graphc.nn.functional.loss_ctc import *
from graphc.nn.functional.loss_multilabel import *
from graphc.nn.functional.loss_regression import *
from graphc.nn.functional.multi_head_attention import *
from graphc.nn.functional.normalization import *
from graphc.nn.functional.pooling import *
from graphc.nn.functional.sampling_grid import *
from graphc.nn.functional.sparse import *
from graphc.nn.functional.unpooling import *
from graphc.nn.functional.vision import *
from graphc.nn.functional.volume import *
from graphc.nn.functional.with_indices import *

__all__: list[str]
collect(__name__)
# Files of graphc 0.2.0, which pickles name.
for _old, _file in (("folding", "vision"), ("loss_linear", "loss"), ("shrinkage", "activation")):
    known_as(f"{__name__}.{_old}", f"{__name__}.{_file}")
