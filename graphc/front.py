"""Names of the package loaded together: tensors, their constructors, and functions of them."""

import math as _math

from graphc.base import lazy as _lazy
from graphc.base.device import device
from graphc.base.dtypes import *
from graphc.base.dtypes import DType as dtype
from graphc.base.dtypes import promote as promote_types
from graphc.base.memory_format import *
from graphc.base.sizes.extents import Size
from graphc.base.sizes.named_dims import Dim
from graphc.base.switches import *
from graphc.eager import dispatcher as _dispatcher
from graphc.ir.graph import graph as _graph
from graphc.tape.autocast import autocast, get_autocast_dtype, is_autocast_enabled
from graphc.tape.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from graphc.tensors import sources as _sources
from graphc.tensors.complex_numbers import *
from graphc.tensors.complex_numbers import complex as _complex
from graphc.tensors.copies import *
from graphc.tensors.creation import *
from graphc.tensors.free_functions import *
from graphc.tensors.functions import *
from graphc.tensors.limits import *
from graphc.tensors.printing import *
from graphc.tensors.random.generator import (
    Generator,
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)
from graphc.tensors.sources import *
from graphc.tensors.tensor import Tensor, is_tensor
from graphc.tensors.typed import *

assert _dispatcher.EAGER
Graph = _graph.Graph
_lazy.collect(__name__)

# PyTorch's names, as `graphc.float` and so on; `from graphc import *` does not import them.
float, double, half = float32, float64, float16
int, long, short, bool = int32, int64, int16, bool_
cfloat, cdouble, complex = complex64, complex128, _complex
inf, nan, pi, e = _math.inf, _math.nan, _math.pi, _math.e
newaxis = None
range = _sources.range

_graph.set_html_printer(_lazy.deferred("graphc.pages.show:notebook"))
