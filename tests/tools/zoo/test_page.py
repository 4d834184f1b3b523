"""Words and summary of the results of public model files."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("onnx")
from tools.zoo import page


def _row(**ways: Any) -> dict[str, Any]:
    good = {"difference": 1e-7, "same": True, "programs": 1}
    return {
        "first_s": 1.0,
        "onnxruntime_first_s": 0.1,
        "ratios": [2.0, 4.0, 1.0],
        **dict.fromkeys(page.WAYS, good),
        **ways,
    }


FAR = {"difference": 0.1, "same": True, "programs": 1}


@pytest.mark.parametrize(
    ("row", "word"),
    [
        (_row(), "takes"),
        (_row(compile={"error": "case 1: ShapeError"}), "refused"),
        (_row(compile={"difference": 1e-7, "same": True, "programs": 3}), "one a size"),
        (_row(compile={"difference": 1e-2, "same": True, "programs": 1}), "differs"),
        (_row(compile={"difference": 1e-7, "same": False, "programs": 1}), "decides otherwise"),
        (_row(compile={"difference": 1e-2, "same": True, "programs": 1}, kind="int8"), "takes"),
        (_row(compile=FAR, kind="int8", own={"difference": 0.2, "same": True}), "rounds otherwise"),
        (_row(compile=FAR, kind="int8", own={"difference": 0.05, "same": True}), "differs"),
        (_row(compile=FAR, kind="int8", own={"difference": 0.2, "same": True}, codes=(9, 1)), "differs"),
        (_row(compile=FAR | {"same": False}, own={"difference": 0.2, "same": True}), "decides otherwise"),
        (_row(compile=FAR | {"same": False}, own={"difference": 0.2, "same": False}), "rounds otherwise"),
        ({"failed": "killed"}, "refused"),
        ({"read": "UnsupportedError"}, "refused"),
    ],
)
def test_an_outcome_is_one_word(row: dict[str, Any], word: str):
    assert page.outcome(row)[0] == word
    assert page.is_fault(row) == (word not in ("takes", "rounds otherwise", "one a size"))


def test_the_summary_counts_files_and_takes_the_geometric_mean():
    rows = {"a": _row(), "b": _row(ratios=[0.5]), "c": {"read": "UnsupportedError: no rule"}}
    assert page.summary(rows) == (
        "3 files: 1 refused, 0 with a program for each size, 0 with other results, "
        "0 that round otherwise; "
        "1.00 times ONNX Runtime (geometric mean of 2), 1 below 1"
    )
    assert page.reason(rows["c"]) == "UnsupportedError: no rule" and "| `c` | refused | refused |" in page.table(rows)
