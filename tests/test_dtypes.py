"""Element types: names, sizes, identity, and promotion as PyTorch promotes."""

from __future__ import annotations

import copy
import itertools
import pickle

import numpy as np
import pytest

from graphc import dtypes
from graphc.dtypes import DType, dtype_of, promote, python_scalar_type, scalar_type
from graphc.errors import DTypeError


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_every_name_leads_to_the_one_instance(dtype: DType):
    for name in (dtype, dtype.name, dtype.long_name, dtype.numpy, dtype.numpy.type):
        assert dtype_of(name) is dtype
    for other in (copy.copy(dtype), copy.deepcopy(dtype), pickle.loads(pickle.dumps(dtype))):
        assert other is dtype
    assert repr(dtype) == f"graphc.{dtype.long_name}"


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_properties_are_those_of_numpy(dtype: DType):
    assert dtype.itemsize == dtype.numpy.itemsize
    assert dtype.kind == dtype.numpy.kind
    assert dtype.is_floating_point == np.issubdtype(dtype.numpy, np.floating)
    assert dtype.is_integer == np.issubdtype(dtype.numpy, np.integer)


@pytest.mark.parametrize("value", ["f16", "complex64", np.dtype(np.uint16), np.complex128, "no type", object()])
def test_foreign_types_are_refused_with_the_known_names(value: object):
    with pytest.raises(DTypeError, match="is not supported") as caught:
        dtype_of(value)
    assert caught.value.remedy == "use one of f64, f32, i64, i32, i8, u8, bool"


def test_promotion_is_symmetric_and_keeps_equal_types():
    for a, b in itertools.product(dtypes.ALL, repeat=2):
        assert promote(a, b) is promote(b, a)
    for a in dtypes.ALL:
        assert promote(a, a) is a


@pytest.mark.torch
@pytest.mark.parametrize(("a", "b"), [*itertools.combinations_with_replacement(dtypes.ALL, 2)], ids=str)
def test_promotion_as_torch(a: DType, b: DType):
    torch = pytest.importorskip("torch")
    expected = torch.promote_types(getattr(torch, a.long_name), getattr(torch, b.long_name))
    if expected is torch.int16:
        expected = torch.int32
    assert f"torch.{promote(a, b).long_name}" == str(expected)


@pytest.mark.torch
@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
@pytest.mark.parametrize("scalar", [True, 2, 2.5])
def test_scalars_beside_tensors_as_torch(dtype: DType, scalar: bool | int | float):
    torch = pytest.importorskip("torch")
    expected = torch.result_type(torch.ones(2, dtype=getattr(torch, dtype.long_name)), scalar)
    assert f"torch.{promote(dtype, scalar_type(scalar, dtype)).long_name}" == str(expected)


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (True, dtypes.bool_),
        (np.bool_(False), dtypes.bool_),
        (3, dtypes.int64),
        (np.int8(3), dtypes.int64),
        (0.5, dtypes.float32),
    ],
)
def test_lone_scalars(value: bool | int | float, dtype: DType):
    assert python_scalar_type(value) is dtype
