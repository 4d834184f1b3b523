"""Names of the package loaded together: tensors, their constructors, and functions of them."""

from __future__ import annotations

import math

from graphc.base import memory_format as formats
from graphc.base import switches
from graphc.base.device import device
from graphc.base.dtypes import DType as dtype
from graphc.base.dtypes import (
    bfloat16,
    bool_,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from graphc.base.dtypes import promote as promote_types
from graphc.base.lazy import deferred
from graphc.base.memory_format import *  # noqa: F403
from graphc.base.sizes.extents import Size
from graphc.base.sizes.named_dims import Dim
from graphc.base.switches import *  # noqa: F403
from graphc.eager import dispatcher
from graphc.ir.graph.graph import Graph, set_html_printer
from graphc.tape.autocast import autocast, get_autocast_dtype, is_autocast_enabled
from graphc.tape.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from graphc.tensors import (
    complex_numbers,
    copies,
    creation,
    free_functions,
    functions,
    limits,
    printing,
    sources,
    typed,
)
from graphc.tensors.complex_numbers import *  # noqa: F403
from graphc.tensors.copies import *  # noqa: F403
from graphc.tensors.creation import *  # noqa: F403
from graphc.tensors.free_functions import *  # noqa: F403
from graphc.tensors.functions import *  # noqa: F403
from graphc.tensors.limits import *  # noqa: F403
from graphc.tensors.printing import *  # noqa: F403
from graphc.tensors.random.generator import (
    Generator,
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)
from graphc.tensors.sources import *  # noqa: F403
from graphc.tensors.spectra import short_time, windows
from graphc.tensors.spectra.short_time import *  # noqa: F403
from graphc.tensors.spectra.windows import *  # noqa: F403
from graphc.tensors.tensor import Tensor, is_tensor
from graphc.tensors.typed import *  # noqa: F403

assert dispatcher.EAGER
__all__ = [
    "Dim",
    "Generator",
    "Graph",
    "Size",
    "Tensor",
    "autocast",
    "bfloat16",
    "bool_",
    "complex64",
    "complex128",
    "default_generator",
    "device",
    "dtype",
    "enable_grad",
    "float16",
    "float32",
    "float64",
    "get_autocast_dtype",
    "get_rng_state",
    "inference_mode",
    "initial_seed",
    "int8",
    "int16",
    "int32",
    "int64",
    "is_autocast_enabled",
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
    "uint16",
    "uint32",
    "uint64",
]
for _module in (
    *(complex_numbers, copies, creation, formats, free_functions, functions, limits, printing, short_time, sources),
    *(switches, typed, windows),
):
    __all__ += _module.__all__  # pyright: ignore[reportUnsupportedDunderAll]

# PyTorch's names, as `graphc.float` and so on; `from graphc import *` does not import them.
float, double, half = float32, float64, float16
int, long, short, bool = int32, int64, int16, bool_
cfloat, cdouble, complex = complex64, complex128, complex_numbers.complex
inf, nan, pi, e = math.inf, math.nan, math.pi, math.e
newaxis = None
range = sources.range

set_html_printer(deferred("graphc.pages.show:notebook"))
