"""Namespace of the array API standard over tensors, for libraries that work with any array type."""

from math import e, inf, nan, pi

from graphc.array_api.array import Array
from graphc.array_api.creation import *
from graphc.array_api.data_types import *
from graphc.array_api.elementwise import *
from graphc.array_api.inspection import __array_api_version__, __array_namespace_info__
from graphc.array_api.manipulation import *
from graphc.array_api.products import *
from graphc.array_api.searching import *
from graphc.array_api.statistics import *
from graphc.base.dtypes import bool_ as bool
from graphc.base.dtypes import (
    complex64,
    complex128,
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
from graphc.base.lazy import collect

from . import fft, linalg

newaxis = None
collect(__name__, "fft", "linalg", "__array_api_version__", "__array_namespace_info__")
