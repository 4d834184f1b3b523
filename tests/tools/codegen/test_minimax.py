"""The derivation of the coefficients of vector math."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

from tools.codegen import minimax
from tools.codegen.minimax import FITS, STORED, Fit, solve

QUICK = ("exp_f32", "expm1_f32", "sin_f32", "cos_f32", "atan_f32")


def test_best_line_for_the_square_is_the_known_one():
    coefficients, error = solve(Fit(lambda x: x**2, 0.0, 1.0, 1, bits=64))
    assert np.allclose(coefficients, [-1 / 8, 1], atol=1e-5)
    assert error == pytest.approx(1 / 8, abs=1e-5)


def test_coefficients_are_rounded_to_their_type():
    coefficients, _ = solve(Fit(mp.exp, -1.0, 1.0, 3))
    assert all(c == float(np.float32(c)) for c in coefficients)


def test_a_weight_moves_the_error():
    plain = Fit(mp.exp, 0.0, 1.0, 2, bits=64)
    weighted = Fit(mp.exp, 0.0, 1.0, 2, lambda x: mp.exp(-4 * x), 64)

    def at_start(fit: Fit) -> float:
        return abs(solve(fit)[0][0] - 1)

    assert at_start(weighted) < at_start(plain) / 2


@pytest.mark.parametrize("name", QUICK)
def test_the_code_holds_what_the_tool_derives(name: str, capsys: pytest.CaptureFixture[str]):
    assert minimax.main([name]) == 0
    assert "as stored" in capsys.readouterr().out


@pytest.mark.slow
def test_the_code_holds_all_that_the_tool_derives():
    assert minimax.main([]) == 0


def test_other_numbers_are_noticed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setitem(STORED, "sin_f32", (1.0, *STORED["sin_f32"][1:]))
    assert minimax.main(["sin_f32"]) == 1
    assert "differs from the code" in capsys.readouterr().out


def test_every_fit_is_stored():
    assert set(FITS) == set(STORED)
