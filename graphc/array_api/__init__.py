"""Namespace of the array API standard over tensors, for libraries that work with any array type."""

from math import e, inf, nan, pi

from graphc.array_api import (
    creation,
    data_types,
    elementwise,
    fft,
    linalg,
    manipulation,
    products,
    searching,
    statistics,
)
from graphc.array_api.array import Array
from graphc.array_api.creation import *  # noqa: F403
from graphc.array_api.data_types import *  # noqa: F403
from graphc.array_api.elementwise import *  # noqa: F403
from graphc.array_api.inspection import __array_api_version__, __array_namespace_info__
from graphc.array_api.manipulation import *  # noqa: F403
from graphc.array_api.products import *  # noqa: F403
from graphc.array_api.searching import *  # noqa: F403
from graphc.array_api.statistics import *  # noqa: F403
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

newaxis = None
__all__ = [  # pyright: ignore[reportUnsupportedDunderAll]
    "Array",
    "__array_api_version__",
    "__array_namespace_info__",
    "bool",
    "complex64",
    "complex128",
    "e",
    "fft",
    "float32",
    "float64",
    "inf",
    "int8",
    "int16",
    "int32",
    "int64",
    "linalg",
    "nan",
    "newaxis",
    "pi",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    *creation.__all__,
    *data_types.__all__,
    *elementwise.__all__,
    *manipulation.__all__,
    *products.__all__,
    *searching.__all__,
    *statistics.__all__,
]
