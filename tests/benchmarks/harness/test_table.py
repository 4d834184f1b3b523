"""The printed table, with absent peers, wrong results and missing times below it."""

from __future__ import annotations

import pytest

from benchmarks.harness.measure import Figures, Row
from benchmarks.harness.table import format_ms, format_table


@pytest.mark.parametrize(
    ("ms", "text"), [(0.00512, "0.0051"), (0.2284, "0.228"), (4.364, "4.36"), (27.51, "27.5"), (1315.4, "1315")]
)
def test_milliseconds_keep_about_three_digits(ms: float, text: str):
    assert format_ms(ms) == text


def test_table_marks_the_best_peer_wrong_numbers_and_what_is_missing():
    rows = [
        Row(
            "a", {"graphc": Figures([2.0], 0.1, 1e-7), "torch": Figures([5.0], 0.1, 0.0), "jax": Figures([3.0], 1, 0.5)}
        ),
        Row("b", {"graphc": Figures(problem="TraceError: no lstm"), "torch": Figures([7.0], 0.1, 0.0)}),
        Row("c", {"graphc": Figures(problem="TraceError: no lstm"), "torch": Figures([7.0], 0.1, float("nan"))}),
    ]
    lines = format_table(rows, ["graphc", "torch", "jax", "openvino"], {"openvino": "not installed"}).splitlines()
    assert lines[0].startswith("| workload | graphc | torch | jax | openvino | best peer / graphc |")
    assert lines[2] == "| a | 2.00 | 5.00 | **3.00!** | - | 1.50 | 1.0e-07 | 0.10 |"
    assert lines[3] == "| b | - | **7.00** | - | - | - | - | - |"
    assert lines[4] == "| c | - | **7.00!** | - | - | - | - | - |"
    assert lines[6:] == ["absent: openvino (not installed)", "graphc: TraceError: no lstm: b, c"]


def test_a_peer_that_uses_more_than_the_target_has_is_marked():
    free = Figures([3.0], 0.1, unlimited="1 of 3 products")
    lines = format_table(
        [Row("a", {"graphc": Figures([2.0]), "openvino": free})], ["graphc", "openvino"], {}
    ).splitlines()
    assert lines[2].startswith("| a | 2.00 | **3.00^** | 1.50 |")
    assert lines[-1] == "^ a, openvino: more instructions than the target's in 1 of 3 products"
