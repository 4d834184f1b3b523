"""Reports of arrays: ranges of what is finite, and counts of what is not."""

from __future__ import annotations

import json

import numpy as np
import pytest

from graphc.base.dtypes import bfloat16, elements
from graphc.tensors.array_report import ArrayReport, report_of


@pytest.mark.parametrize(
    ("values", "report", "text"),
    [
        ([1.0, -2.0], ("f32", (2,), -2.0, 1.0, 0, 0), "f32[2] -2..1"),
        ([1.0, np.nan, np.inf], ("f32", (3,), 1.0, 1.0, 1, 1), "f32[3] 1..1 1 NaN 1 inf"),
        ([-np.inf, 3.0], ("f32", (2,), 3.0, 3.0, 0, 1), "f32[2] 3..3 1 inf"),
        ([np.nan], ("f32", (1,), None, None, 1, 0), "f32[1] 1 NaN"),
        ([], ("f32", (0,), None, None, 0, 0), "f32[0]"),
        (2.5, ("f32", (), 2.5, 2.5, 0, 0), "f32[] 2.5"),
    ],
)
def test_what_is_said_of_an_array(values, report, text):
    found = report_of(np.array(values, np.float32))
    assert found == ArrayReport(*report) and str(found) == text
    assert json.loads(json.dumps(found.to_dict()))["shape"] == list(report[1])
    assert found.is_finite == (not report[4] and not report[5])


def test_other_element_types():
    assert str(report_of(np.array([True, False]))) == "bool[2] 0..1"
    assert str(report_of(np.arange(6).reshape(2, 3))) == "i64[2,3] 0..5"
    assert str(report_of(elements([0.5, np.nan], bfloat16))) == "bf16[2] 0.5..0.5 1 NaN"
