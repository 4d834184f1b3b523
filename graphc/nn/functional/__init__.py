"""Stateless functions of layers and losses, for use without a module: ``import graphc.nn.functional as F``."""

from graphc.base.lazy import collect
from graphc.nn.functional.activation import *
from graphc.nn.functional.attention import *
from graphc.nn.functional.convolution import *
from graphc.nn.functional.distance import *
from graphc.nn.functional.dropout import *
from graphc.nn.functional.folding import *
from graphc.nn.functional.linear import *
from graphc.nn.functional.loss import *
from graphc.nn.functional.loss_ctc import *
from graphc.nn.functional.loss_linear import *
from graphc.nn.functional.loss_multilabel import *
from graphc.nn.functional.loss_regression import *
from graphc.nn.functional.multi_head_attention import *
from graphc.nn.functional.normalization import *
from graphc.nn.functional.pooling import *
from graphc.nn.functional.sampling_grid import *
from graphc.nn.functional.shrinkage import *
from graphc.nn.functional.sparse import *
from graphc.nn.functional.unpooling import *
from graphc.nn.functional.vision import *
from graphc.nn.functional.volume import *
from graphc.nn.functional.with_indices import *

collect(__name__)
