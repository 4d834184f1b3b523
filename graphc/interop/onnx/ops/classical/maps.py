"""Rules of ai.onnx.ml operators that make and read maps, which are dictionaries and exist in Python only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphc.base.errors import AttributeValueError
from graphc.interop.onnx.elements import FLOAT, INT64, STRING, element_of_array
from graphc.interop.onnx.ops.classical.features import DOMAIN
from graphc.interop.onnx.registry import op
from graphc.interop.onnx.values import Value
from graphc.tensors.tensor_base import front
from graphc.tracing.tracer import Tracer

_CAST = {"TO_FLOAT": (FLOAT, np.float32), "TO_INT64": (INT64, np.int64), "TO_STRING": (STRING, object)}


@op("ZipMap", domain=DOMAIN, values=True)
def zip_map(X: Value, *, classlabels_int64s: Sequence[int] = (), classlabels_strings: Sequence[str] = ()) -> Any:
    """Return a dictionary from class to score for each row. A trace returns the scores as they are, one column a
    class."""
    if isinstance(front(), Tracer):
        return X
    labels = list(classlabels_strings or classlabels_int64s)
    rows = X.array.reshape(-1, X.shape[-1]).tolist()
    if X.shape[-1] != len(labels):
        raise AttributeValueError(f"ZipMap: {len(labels)} classes for {X.shape[-1]} columns")
    return [dict(zip(labels, row, strict=True)) for row in rows]


@op("DictVectorizer", domain=DOMAIN, values=True)
def dict_vectorizer(
    X: Mapping[Any, Any], *, int64_vocabulary: Sequence[int] = (), string_vocabulary: Sequence[str] = ()
) -> Value:
    """Return the values of the keys of a vocabulary in one row, 0 for missing keys."""
    keys = string_vocabulary or int64_vocabulary
    sample = np.asarray(list(X.values()))
    if sample.dtype.kind in "OU":
        return Value(STRING, None, np.array([[X.get(key, "") for key in keys]], object))
    dtype = sample.dtype if sample.dtype.kind == "i" else np.float32
    row = np.array([[X.get(key, 0) for key in keys]], dtype)
    return Value(element_of_array(row.dtype), None, row)


@op("CastMap", domain=DOMAIN, values=True)
def cast_map(X: Mapping[int, Any], *, cast_to: str = "TO_FLOAT", map_form: str = "DENSE", max_map: int = 1) -> Value:
    """Return the values of a map in the order of their keys. The SPARSE form has a column for each key below
    ``max_map``."""
    if cast_to not in _CAST or map_form not in ("DENSE", "SPARSE"):
        raise AttributeValueError(f"CastMap: cast_to {cast_to!r}, map_form {map_form!r}")
    element, dtype = _CAST[cast_to]
    items = dict(sorted(X.items()))
    if map_form == "SPARSE":
        if items and not 0 <= min(items) <= max(items) < max_map:
            raise AttributeValueError(f"CastMap: the keys are {min(items)} to {max(items)}, max_map is {max_map}")
        missing = "" if dtype is object else 0
        items = {key: items.get(key, missing) for key in range(max_map)}
    convert = str if dtype is object else float if dtype is np.float32 else int
    return Value(element, None, np.array([[convert(value) for value in items.values()]], dtype))
