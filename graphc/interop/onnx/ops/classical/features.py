"""Rules of ai.onnx.ml operators that map, scale and select features, and of linear models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphc.base.errors import AttributeValueError, UnsupportedError
from graphc.interop.onnx.call import Call
from graphc.interop.onnx.elements import FLOAT, INT64, Element, element_of_array
from graphc.interop.onnx.graph import TensorAttribute
from graphc.interop.onnx.ops.classical.texts import text_of, translated
from graphc.interop.onnx.registry import op, text
from graphc.interop.onnx.values import Value
from graphc.nn import functional as F
from graphc.ops.selection.index import gather
from graphc.tensors.creation import from_numpy, tensor
from graphc.tensors.free_functions import cat, where
from graphc.tensors.tensor import Tensor

DOMAIN = "ai.onnx.ml"


@op("ArrayFeatureExtractor", domain=DOMAIN, values=True)
def array_feature_extractor(X: Value, Y: Value) -> Value:
    if X.element.carrier is None:
        return Value(X.element, None, np.atleast_2d(X.array)[..., Y.array.reshape(-1).astype(np.int64)])
    rows = X.tensor.unsqueeze(0) if len(X.shape) == 1 else X.tensor
    return Value(X.element, rows[..., Y.tensor.reshape(-1).to("int64")])


@op("Binarizer", domain=DOMAIN)
def binarizer(X: Tensor, *, threshold: float = 0) -> Tensor:
    return (threshold < X).to(X.dtype)


@op("Scaler", domain=DOMAIN, values=True)
def scaler(X: Value, *, offset: Sequence[float] = (0.0,), scale: Sequence[float] = (1.0,)) -> Value:
    shifted = X.tensor.to("float32") - tensor(list(offset))
    return Value(FLOAT, shifted * tensor(list(scale)))


@op("Normalizer", domain=DOMAIN, values=True)
def normalizer(X: Value, *, norm: str = "MAX") -> Value:
    """Divide rows by their largest element (MAX), their L1 norm or their L2 norm. Rows with norm 0 stay."""
    x = X.tensor.to("float32")
    norms = {"MAX": lambda: x.amax(-1, True), "L1": lambda: x.abs().sum(-1, True), "L2": lambda: _length(x)}
    if norm not in norms:
        raise AttributeValueError(f"Normalizer: norm {norm!r}", remedy="use MAX, L1 or L2")
    by = norms[norm]()
    return Value(FLOAT, x / where(by.eq(0), 1.0, by))


def _length(x: Tensor) -> Tensor:
    return (x * x).sum(-1, True).sqrt()


@op("Imputer", domain=DOMAIN)
def imputer(
    X: Tensor,
    *,
    imputed_value_floats: Sequence[float] = (),
    imputed_value_int64s: Sequence[int] = (),
    replaced_value_float: float = 0,
    replaced_value_int64: int = 0,
) -> Tensor:
    """Replace one value, which may be NaN, by the value of each feature or of all features."""
    real = X.dtype.is_floating_point
    new = tensor(list(imputed_value_floats if real else imputed_value_int64s)).to(X.dtype)
    old = replaced_value_float if real else replaced_value_int64
    return where(X.ne(X) if old != old else X.eq(old), new, X)


@op("FeatureVectorizer", domain=DOMAIN, values=True)
def feature_vectorizer(*inputs: Value, inputdimensions: Sequence[int] = ()) -> Value:
    features = [v.tensor.to("float32") for v in inputs]
    return Value(FLOAT, cat([p.unsqueeze(0) if p.ndim == 1 else p for p in features], 1))


@op("OneHotEncoder", domain=DOMAIN, values=True)
def one_hot_encoder(
    X: Value, *, call: Call, cats_int64s: Sequence[int] = (), cats_strings: Sequence[str] = (), zeros: int = 1
) -> Value:
    """Return 1 at the index of each element's category, along a new last axis."""
    if cats_strings:
        return translated(X, call)
    encoded = X.tensor.to("int64").unsqueeze(-1).eq(tensor(list(cats_int64s))).to("float32")
    if not zeros and not bool(encoded.any(-1).all()):
        raise AttributeValueError(_NO_CATEGORY)
    return Value(FLOAT, encoded)


_NO_CATEGORY = "OneHotEncoder: an element belongs to no category, and zeros=0 forbids that"


@text("OneHotEncoder", domain=DOMAIN)
class OneHotTexts:
    """OneHotEncoder of texts as a function of arrays: a lookup of each text, and a row of numbers for each category."""

    def __init__(self, *, cats_strings: Sequence[str], zeros: int = 1):
        self._rows = np.zeros((len(cats_strings) + 1, len(cats_strings)), np.float32)
        """Results by category; the last one is that of other texts."""
        self._positions: dict[str, int] = {}
        for i, name in enumerate(cats_strings):
            self._rows[self._positions.setdefault(name, i), i] = 1
        self._takes_others = bool(zeros)

    def __call__(self, array: np.ndarray) -> np.ndarray:
        """Return 1 at the index of each element's category. Raises AttributeValueError for an element without one."""
        get, other = self._positions.get, len(self._rows) - 1
        texts = array.reshape(-1).tolist()
        rows = [get(text, other) for text in texts]
        if other in rows:
            rows = [get(text_of(text), other) for text in texts]
            if not self._takes_others and other in rows:
                raise AttributeValueError(_NO_CATEGORY)
        return self._rows.take(rows, 0).reshape(*array.shape, other)


# ---- labels


@op("LabelEncoder", domain=DOMAIN, values=True)
def label_encoder(X: Value, *, call: Call, **attributes: Any) -> Any:
    """Return the value of each key, or the default. ``classes_strings`` maps strings to their indices and back."""
    if "classes_strings" in attributes:
        return translated(X, call)
    keys, values = _listed(attributes, "keys"), _listed(attributes, "values")
    if X.element.carrier is None or values.element.carrier is None:
        return translated(X, call, values.element)
    default, numbers = _default(attributes, values.element), Value(values.element, None, values.array).tensor
    chosen_of = _by_table if keys.array.dtype.kind in "iu" and not X.element.is_floating_point else _by_comparison
    return Value(values.element, chosen_of(X.tensor, keys.array, numbers, default))


@text("LabelEncoder", domain=DOMAIN)
def label_lookup(**attributes: Any) -> Lookup:
    """Return the function of arrays of a LabelEncoder from or to texts."""
    if "classes_strings" in attributes:
        names = attributes["classes_strings"]
        numbers = np.arange(len(names))
        return Lookup(names, numbers, attributes["default_int64"], attributes["default_string"])
    keys, values = _listed(attributes, "keys"), _listed(attributes, "values")
    return Lookup(keys.array, values.array, _default(attributes, values.element))


class Lookup:
    """A table from texts to values, or from values to texts."""

    def __init__(self, keys: Any, values: Any, default: Any, default_key: Any = None):
        """With ``default_key`` arrays of values give keys."""
        self._tables = [_Table(keys, values, default)]
        if default_key is not None:
            self._tables.append(_Table(values, keys, default_key))

    def __call__(self, array: np.ndarray) -> np.ndarray:
        """Return the value of each element, or the default."""
        is_text = array.dtype.kind in "OUST"
        table = next((t for t in self._tables if t.takes_text is is_text), self._tables[0])
        return table.values_of(array)


class _Table:
    """A table in one direction."""

    def __init__(self, keys: Any, values: Any, default: Any):
        keys, values = (v if isinstance(v, np.ndarray) else np.array(v, object) for v in (keys, values))
        self._values, self._dtype, self._default = (
            dict(zip(keys.tolist(), values.tolist(), strict=True)),
            values.dtype,
            default,
        )
        self.takes_text = keys.dtype == object

    def values_of(self, array: np.ndarray) -> np.ndarray:
        """Return the value of each element of an array."""
        keys = array.reshape(-1).tolist()
        if self.takes_text:
            keys = [key if key.__class__ is str else text_of(key) for key in keys]
        get, default = self._values.get, self._default
        result = np.empty(len(keys), self._dtype)
        result[:] = [get(key, default) for key in keys]
        return result.reshape(array.shape)


_KINDS = {"tensor": None, "strings": "string", "int64s": "int64", "floats": "float"}
"""Suffixes of attributes with several elements, and of the attribute with the default."""


def _listed(attributes: Mapping[str, Any], name: str) -> TensorAttribute:
    for ending in _KINDS:
        value = attributes.get(f"{name}_{ending}")
        if isinstance(value, TensorAttribute):
            return value
        if value is not None:
            array = np.array(value, {"strings": object, "int64s": np.int64, "floats": np.float32}[ending])
            return TensorAttribute(array, element_of_array(array.dtype))
    raise AttributeValueError(f"LabelEncoder without {name}")


def _default(attributes: Mapping[str, Any], element: Element) -> Any:
    default = attributes.get("default_tensor")
    if isinstance(default, TensorAttribute) and default.array.size:
        return default.array.reshape(-1)[0]
    kind = "string" if element.carrier is None else "float" if element.is_floating_point else "int64"
    return attributes.get(f"default_{kind}", {"string": "_Unused", "float": -0.0, "int64": -1}[kind])


def _by_comparison(x: Tensor, keys: np.ndarray, values: Tensor, default: Any) -> Tensor:
    """Compare each element with all keys."""
    wide, listed = x.unsqueeze(-1), from_numpy(keys)
    hit = wide.eq(listed)
    if keys.dtype.kind == "f":
        hit = hit | (wide.ne(wide) & listed.ne(listed))
    return where(hit.any(-1), values[hit.to("int32").argmax(-1)], tensor(default, dtype=values.dtype))


MOST_SPREAD = 64
"""Largest ratio of the range of integer keys to their number for which a table has an entry for each number."""


def _by_table(x: Tensor, keys: np.ndarray, values: Tensor, default: Any) -> Tensor:
    """Look integers up in a table of all numbers between the smallest and the largest key."""
    low, high = int(keys.min()), int(keys.max())
    if high - low > MOST_SPREAD * len(keys):
        return _by_comparison(x, keys, values, default)
    positions = np.full(high - low + 1, -1, np.int64)
    positions[(keys - low)[::-1]] = np.arange(len(keys))[::-1]
    near = x.to("int64").clamp(low, high)
    position = gather(from_numpy(positions), near - low, axis=0)
    hit, position = position.ge(0) & near.eq(x), position.clamp(0)
    return where(hit, gather(values, position, axis=0), tensor(default, dtype=values.dtype))


@op("CategoryMapper", domain=DOMAIN, values=True)
def category_mapper(X: Value, *, call: Call, **_: Any) -> Value:
    """Map strings to numbers or numbers to strings."""
    return translated(X, call)


@text("CategoryMapper", domain=DOMAIN)
def category_lookup(
    *,
    cats_int64s: Sequence[int],
    cats_strings: Sequence[str],
    default_int64: int = -1,
    default_string: str = "_Unused",
) -> Lookup:
    """Return the function of arrays of a CategoryMapper."""
    return Lookup(cats_strings, np.array(cats_int64s, np.int64), default_int64, default_string)


# ---- linear models


def post_transformed(scores: Tensor, name: str) -> Tensor:
    """Apply the ``post_transform`` of this name to scores [n, classes]. Raises UnsupportedError."""
    if name == "NONE":
        return scores
    if name == "SOFTMAX":
        return F.softmax(scores, -1)
    if name == "LOGISTIC":
        return scores.sigmoid()
    if name == "SOFTMAX_ZERO":
        powers = where(scores.eq(0), 0.0, (scores - scores.amax(-1, True)).exp())
        return powers / powers.sum(-1, True)
    if name == "PROBIT":
        return (scores * 2 - 1).erfinv() * 2**0.5
    raise UnsupportedError(f"post_transform {name!r}")


def labelled(indices: Tensor, texts: Sequence[str], numbers: Sequence[int]) -> Value:
    """Return the labels at indices. String labels need static indices."""
    if texts:
        chosen = np.array(texts, object)[Value.of(indices).array]
        return Value.of(np.asarray(chosen, object))
    return Value(INT64, tensor(list(numbers), dtype="int64")[indices])


@op("LinearRegressor", domain=DOMAIN, values=True)
def linear_regressor(
    X: Value,
    *,
    coefficients: Sequence[float],
    intercepts: Sequence[float] = (),
    post_transform: str = "NONE",
    targets: int = 1,
) -> Value:
    return Value(FLOAT, post_transformed(_linear(X, coefficients, intercepts, targets), post_transform))


def _linear(X: Value, coefficients: Sequence[float], intercepts: Sequence[float], rows: int) -> Tensor:
    x = X.tensor.to("float32")
    weight = tensor(list(coefficients)).reshape(rows, -1)
    bias = tensor(list(intercepts)) if intercepts else None
    return F.linear(x.unsqueeze(0) if x.ndim == 1 else x, weight, bias)


@op("LinearClassifier", domain=DOMAIN, values=True)
def linear_classifier(
    X: Value,
    *,
    coefficients: Sequence[float],
    classlabels_ints: Sequence[int] = (),
    classlabels_strings: Sequence[str] = (),
    intercepts: Sequence[float] = (),
    multi_class: int = 0,
    post_transform: str = "NONE",
) -> tuple[Value, Value]:
    """Return labels and scores of classes. A single row of coefficients scores two classes, with opposite signs."""
    count = len(classlabels_strings or classlabels_ints)
    rows = len(coefficients) // X.shape[-1]
    scores = _linear(X, coefficients, intercepts, rows)
    if rows == 1 and count == 2:
        scores = cat([-scores, scores], 1)
    labels = labelled(scores.argmax(-1), classlabels_strings, classlabels_ints)
    return labels, Value(FLOAT, post_transformed(scores, post_transform))
