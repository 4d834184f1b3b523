"""Operands that are easily forgotten: empty, scalar, of every element type, expanded, infinite; as in PyTorch.

Whatever both libraries offer is called. Where PyTorch has a result, graphc has the same.
"""

from __future__ import annotations

import contextlib
import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import graphc
from graphc.errors import GraphcError
from graphc.nn import functional
from tests.conformance.compare import equal, gradients, leaves, strided

torch = pytest.importorskip("torch")

SHAPES = ((), (1,), (0,), (3,), (2, 3), (3, 1), (0, 3), (2, 1, 3), (2, 0, 3))
FLOATS = ("float64", "float32")
TYPES = (*FLOATS, "int64", "int32", "uint8", "int8", "bool")
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 2.5)

IMPURE = """backward bernoulli bernoulli_ cauchy_ data_ptr exponential_ geometric_ grad_fn log_normal_ normal_ numpy random_
    refine_names requires_grad_ retain_grad share_memory_ stride type uniform_ detach_ adjoint""".split()
"""Methods that draw numbers, or are about memory and history rather than values."""
LEFT_OUT = """alpha_dropout dropout dropout1d dropout2d dropout3d feature_alpha_dropout rrelu rrelu_ gumbel_softmax
    pdist""".split()
"""Functions that draw numbers; the gradient of torch's pdist of one row ends the process."""
FACTORS: dict[str, Callable[[Any, Any], Any]] = {
    "cholesky": lambda x, lower: lower,
    "lu": lambda x, found: found,
    "pinverse": lambda x, inverse: (inverse, x @ inverse @ x),
    "qr": lambda x, found: (found[0] @ found[1], found[0].mT @ found[0], found[1].abs()),
    "svd": lambda x, found: (found[1], (found[0] * found[1].unsqueeze(-2)) @ found[2].mT),
}
"""What is compared of factors of matrices, which may have other signs. Where entries repeat, matrices have not full rank:
their factors are a choice, and PyTorch's gradients are no numbers."""
ONCE = {"dim_order": "dimensions without a step have no place among the others", **dict.fromkeys(FACTORS, "as above")}
"""What is not compared where entries repeat without a copy."""
UNDEFINED = {
    "short": "the conversion of numbers out of range",
    "byte": "the conversion of numbers out of range",
    "char": "the conversion of numbers out of range",
    "int": "the conversion of numbers out of range",
    "long": "the conversion of numbers out of range",
    "type_as": "the conversion of numbers out of range",
    "gelu": "the value at infinity",
    "mode": "with NaN",
    "median": "the gradient of equal elements, and elements of expanded tensors",
    "nanmedian": "the gradient of equal elements, and elements of expanded tensors",
    "kthvalue": "which of equal elements is named",
    "topk": "which of equal elements is named",
    "logit": "the gradient outside of 0..1",
    "logit_": "the gradient outside of 0..1",
    "histc": "borders of bins in f32",
    "histogram": "borders of bins in f32, and the gradient, which PyTorch has not",
    "corrcoef": "0 divided by 0 after rounding",
    "atan2": "the gradient beside unsigned integers",
    "std": "the gradient without degrees of freedom",
    "var": "the gradient without degrees of freedom",
    "logical_not_": "the gradient, which PyTorch passes on as it is",
    "copysign": "whether the sign has a gradient (of 0)",
}
"""What is compared without gradients and for dense f64 only, because the rest is chance in one of the libraries."""


def _array(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
    random = np.random.default_rng([seed, *shape])
    if dtype == "bool":
        return random.random(shape) < 0.5
    if dtype in FLOATS:
        return np.asarray(random.uniform(0.1, 0.9, shape), dtype)
    return np.asarray(random.integers(0 if dtype == "uint8" else -5, 6, shape), dtype)


def _layouts(array: np.ndarray) -> Iterator[Callable[[Any], Any]]:
    """Ways to make a tensor of the array; the last one repeats its first entry without copying."""
    yield lambda make: make(array.copy())
    if array.ndim:
        yield lambda make: make(strided(array))
        if array.shape[0]:
            yield lambda make: make(array[:1].copy()).expand(*array.shape)


def _outcome(library: Any, function: Callable[..., Any], makers: Any, order: int) -> tuple[list[Any], list[Any]]:
    inputs = [make(library.from_numpy) for make in makers]
    for x in inputs:
        if order and x.is_floating_point():
            x.requires_grad_()
    used = [x.clone() for x in inputs] if order == 2 else inputs
    results = leaves(function(library, *used)) + (used if order == 2 else [])
    return results, gradients(library, results, inputs, False, 0) if order else []


def _compare(function: Callable[..., Any], makers: Any, order: int, single: bool, what: str) -> None:
    """``order`` 0: results; 1: and gradients; 2: of an operation that may write to its operands."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            expected, slopes = _outcome(torch, function, makers, order)
        except Exception:
            _refuses_clearly(function, makers, order)
            return
        results, mine = _outcome(graphc, function, makers, order)
    tolerance = 2e-4 if single else 1e-8
    assert len(results) == len(expected), what
    for a, b in zip(results, expected, strict=True):
        equal(a, b, tolerance, what)
    for a, b in zip(mine, slopes, strict=True):
        if a is None or b is None:
            gradient = b if a is None else a
            assert gradient is None or not np.any(gradient.numpy(force=True)), f"{what}: one library has no gradient"
        else:
            equal(a, b, tolerance * 20, f"{what}: gradient")


def _refuses_clearly(function: Callable[..., Any], makers: Any, order: int) -> None:
    """Check that graphc returns a result or raises its own error, never one of numpy, where PyTorch raises."""
    with contextlib.suppress(GraphcError):
        _outcome(graphc, function, makers, order)


def _every(function: Callable[..., Any], name: str, writes: bool = False) -> None:
    is_undefined = name in UNDEFINED
    kinds = ("float64",) if is_undefined else FLOATS if "softm" in name else TYPES
    for shape, dtype in itertools.product(SHAPES, kinds):
        if name in FACTORS and 0 in shape and (name == "cholesky" or dtype not in FLOATS):
            continue  # Without elements PyTorch looks neither at the type nor at the dimension.
        makers = list(_layouts(_array(shape, dtype, 0)))
        for i, make in enumerate(makers[:1] if is_undefined or writes else makers[:2] if name in ONCE else makers):
            order = 0 if is_undefined else 2 if writes else 1
            _compare(function, (make,), order, dtype != "float64", f"{name} of {dtype}{list(shape)}, layout {i}")


def _method(name: str) -> Callable[..., Any]:
    if name in FACTORS:
        return lambda t, x: FACTORS[name](x, getattr(x, name)())
    return lambda t, x, *rest: getattr(x, name)(*rest)


def _methods() -> list[str]:
    cases = []
    for name in dir(graphc.Tensor):
        if name.startswith("_") or name in IMPURE or not callable(getattr(graphc.Tensor, name)):
            continue
        for sample in (torch.full((2, 2), 0.5), torch.ones(2, 2, dtype=torch.int64)):
            try:
                leaves(getattr(sample, name)())
            except Exception:
                continue
            cases.append(name)
            break
    return cases


def _functions() -> list[str]:
    cases = []
    for name in functional.__all__:
        if name in LEFT_OUT or not hasattr(torch.nn.functional, name):
            continue
        with warnings.catch_warnings(), contextlib.suppress(Exception):
            warnings.simplefilter("ignore")
            getattr(torch.nn.functional, name)(torch.full((3, 4), 0.5))
            cases.append(name)
    return cases


@pytest.mark.sampled(50)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", _methods())
def test_methods_without_arguments(name):
    _every(_method(name), name, writes=name.endswith("_"))


@pytest.mark.parametrize("name", _functions())
def test_functions_of_one_tensor(name):
    _every(lambda t, x: getattr(t.nn.functional, name)(x), name, writes=name.endswith("_"))


def test_that_much_is_compared():
    assert len(_methods()) > 150 and len(_functions()) > 25


@pytest.mark.parametrize("name", [n for n in _methods() if n not in UNDEFINED and not n.endswith("_")])
def test_special_values(name):
    for dtype in FLOATS:
        array = np.array(SPECIAL, dtype).reshape(3, 3)
        if name in ("qr", "geqrf"):
            array[:2] = 0  # of NaN and infinities LAPACK gives some for numbers, and numbers for some
        for shaped in (array, array[0], array[1, 0]):
            _compare(
                _method(name), (lambda make, a=shaped: make(np.array(a)),), 0, dtype == "float32", f"{name} {dtype}"
            )


BINARY = """add sub mul div floor_divide remainder fmod maximum minimum fmax fmin eq ne lt le gt ge logical_and logical_or
    logical_xor bitwise_and bitwise_or bitwise_xor atan2 hypot copysign logaddexp logaddexp2 xlogy float_power inner outer
    dot mv mm bmm matmul kron cross equal dist masked_select take""".split()


@pytest.mark.parametrize("name", BINARY)
def test_of_two(name):
    random = np.random.default_rng(0)
    for first_shape, right in itertools.product(SHAPES, SHAPES):
        first, second = random.choice(TYPES, 2)
        x, y = _array(first_shape, first, 0), _array(right, second, 1)
        if y.dtype.kind in "iu":
            y = np.asarray(np.abs(y) + 1, y.dtype)
        single = not (x.dtype == y.dtype == np.float64)
        order = 0 if name in UNDEFINED else 1
        for a, b in zip(_layouts(x), _layouts(y), strict=False):
            _compare(
                _method(name), (a, b), order, single, f"{name} of {first}{list(first_shape)}, {second}{list(right)}"
            )


NUMBERS = "add sub mul div eq lt ge remainder fmod pow bitwise_and bitwise_or float_power clamp_min clamp_max".split()


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("number", [2, -1, 2.5, True])
def test_with_a_number(name, number):
    for shape, dtype in itertools.product(((), (3,), (0, 2)), TYPES):
        if (name, dtype) == ("pow", "bool"):
            continue  # The power of booleans is not defined in graphc.
        x = _array(shape, dtype, 0)
        x = x if x.dtype.kind not in "iu" else np.asarray(np.abs(x) + 1, dtype)
        what = f"{name} of {dtype}{list(shape)} and {number}"
        _compare(
            lambda t, a: getattr(a, name)(number), (lambda make, x=x: make(x.copy()),), 1, dtype != "float64", what
        )


ALONG = """sum mean prod amax amin max min argmax argmin any all median logsumexp nansum nanmean softmax log_softmax cumsum
    cumprod cummax cummin logcumsumexp count_nonzero aminmax unbind unsqueeze squeeze flip diff split chunk
    narrow select roll tensor_split unflatten""".split()
MORE: dict[str, tuple[Any, ...]] = {"narrow": (0, 1), "select": (0,), "unflatten": ((1, -1),)}
"""What comes behind the dimension."""
BEFORE: dict[str, tuple[Any, ...]] = {"diff": (1,), "split": (2,), "chunk": (2,), "roll": (1,), "tensor_split": (2,)}


@pytest.mark.sampled(50)
@pytest.mark.parametrize("name", ALONG)
@pytest.mark.parametrize("dim", [0, -1, 1, 2, (0, 1), ()], ids=str)
def test_along_a_dimension(name, dim):
    def function(t: Any, x: Any) -> Any:
        if name == "aminmax":
            return x.aminmax(dim=dim)
        return getattr(x, name)(*BEFORE.get(name, ()), dim, *MORE.get(name, ()))

    for shape, dtype in itertools.product(SHAPES, ("float64", "int64", "uint8", "bool")):
        if ("softmax" in name and dtype != "float64") or (0 in shape and name in ("cummax", "cummin", "roll")):
            continue  # Without elements PyTorch looks neither at the type nor at the dimension.
        is_undefined = name in UNDEFINED
        for i, make in enumerate(list(_layouts(_array(shape, dtype, 0)))[: 1 if is_undefined else None]):
            _compare(
                function,
                (make,),
                0 if is_undefined else 1,
                dtype != "float64",
                f"{name} of {dtype}{list(shape)}, layout {i}",
            )
