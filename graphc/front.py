"""The names of the package that are there together: tensors, what makes them, and functions of them."""

from __future__ import annotations

import math

from graphc.base import memory_format as formats
from graphc.base import switches
from graphc.base.device import device
from graphc.base.dtypes import DType as dtype
from graphc.base.dtypes import bool_, float32, float64, int8, int32, int64, uint8
from graphc.base.dtypes import promote as promote_types
from graphc.base.extents import Size
from graphc.base.lazy import deferred
from graphc.base.memory_format import *  # noqa: F403
from graphc.base.named_dims import Dim
from graphc.base.switches import *  # noqa: F403
from graphc.eager import dispatcher
from graphc.ir.graph.graph import Graph, set_html_printer
from graphc.tape.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from graphc.tensors import copies, creation, free_functions, functions, limits, printing, sources, typed
from graphc.tensors.copies import *  # noqa: F403
from graphc.tensors.creation import *  # noqa: F403
from graphc.tensors.free_functions import *  # noqa: F403
from graphc.tensors.functions import *  # noqa: F403
from graphc.tensors.generator import (
    Generator,
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)
from graphc.tensors.limits import *  # noqa: F403
from graphc.tensors.printing import *  # noqa: F403
from graphc.tensors.sources import *  # noqa: F403
from graphc.tensors.tensor import Tensor, is_tensor
from graphc.tensors.typed import *  # noqa: F403

assert dispatcher.EAGER
__all__ = [
    "Dim",
    "Generator",
    "Graph",
    "Size",
    "Tensor",
    "bool_",
    "default_generator",
    "device",
    "dtype",
    "enable_grad",
    "float32",
    "float64",
    "get_rng_state",
    "inference_mode",
    "initial_seed",
    "int8",
    "int32",
    "int64",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "is_tensor",
    "manual_seed",
    "no_grad",
    "promote_types",
    "seed",
    "set_grad_enabled",
    "set_rng_state",
    "uint8",
]
for _module in (copies, creation, formats, free_functions, functions, limits, printing, sources, switches, typed):
    __all__ += _module.__all__  # pyright: ignore[reportUnsupportedDunderAll]

# As PyTorch names them; only `graphc.float` and so on, not what `from graphc import *` brings.
float, double, int, long, bool = float32, float64, int32, int64, bool_
inf, nan, pi, e = math.inf, math.nan, math.pi, math.e
newaxis = None
range = sources.range

set_html_printer(deferred("graphc.drawing.show:notebook"))
