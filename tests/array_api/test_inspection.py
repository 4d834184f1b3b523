"""Descriptions of the namespace: dtypes, devices and capabilities."""

from __future__ import annotations

import subprocess
import sys

import pytest

import graphc as gc
import graphc.array_api as xp
from graphc.array_api import inspection
from graphc.base.errors import AttributeValueError, DTypeError


def test_tensors_and_arrays_name_the_namespace():
    assert gc.ones(1).__array_namespace__() is xp is gc.array_api
    assert xp.ones(1).__array_namespace__(api_version="2024.12") is xp
    assert xp.__array_api_version__ in inspection.VERSIONS
    with pytest.raises(AttributeValueError, match=r"2021\.12"):
        gc.ones(1).__array_namespace__(api_version="2021.12")


def test_what_there_is():
    info = xp.__array_namespace_info__()
    assert info.capabilities()["boolean indexing"] is True and info.capabilities()["max dimensions"] > 0
    assert info.default_device() in info.devices()
    assert info.default_dtypes() == {
        **{"real floating": gc.float32, "complex floating": gc.complex64},
        **{"integral": gc.int64, "indexing": gc.int64},
    }


def test_the_largest_number_of_dimensions_is_there():
    most = xp.__array_namespace_info__().capabilities()["max dimensions"]
    assert xp.sum(xp.ones((1,) * most)).item() == 1.0


def test_the_element_types_that_there_are():
    info = xp.__array_namespace_info__()
    whole = {f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)}
    assert info.dtypes().keys() == {"bool", "float32", "float64", "complex64", "complex128", *whole}
    assert all(getattr(xp, name) is dtype for name, dtype in info.dtypes().items())
    assert info.dtypes(kind="real floating").keys() == {"float32", "float64"}
    unsigned = {name for name in whole if name.startswith("u")}
    assert info.dtypes(kind=("bool", "unsigned integer"), device="cpu").keys() == {"bool", *unsigned}
    assert info.dtypes(kind="complex floating").keys() == {"complex64", "complex128"}
    with pytest.raises(DTypeError):
        info.dtypes(kind="real")


def test_extensions_that_are_not_there_are_no_attributes():
    assert hasattr(xp, "fft") and not hasattr(xp, "bfloat16")


def test_every_name_is_there():
    assert len(set(xp.__all__)) == len(xp.__all__)
    assert all(hasattr(xp, name) for name in xp.__all__)


def test_graphc_is_imported_without_it():
    program = (
        "import sys, graphc; print('graphc.array_api' in sys.modules, graphc.array_api.sum(graphc.ones(2)).item())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "2.0"]
