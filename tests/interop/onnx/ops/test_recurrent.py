"""Recurrent networks of ONNX, against onnxruntime and ONNX's evaluator, eagerly and compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

import graphc as gc  # noqa: E402
from graphc.base.errors import UnsupportedError  # noqa: E402
from tests.interop.onnx.one_node import check, floats, model_of, needs_runtime  # noqa: E402

TIME, BATCH, SIZE, HIDDEN = 5, 3, 4, 6
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
LENS = np.array([5, 2, 3], np.int32)
KINDS = pytest.mark.parametrize("op", GATES)


def _arrays(op: str, directions: int = 1, layout: int = 0, lens: Any = None, peepholes: bool = False) -> list[Any]:
    gates = GATES[op] * HIDDEN
    x = floats(TIME, BATCH, SIZE) if not layout else floats(BATCH, TIME, SIZE)
    state = (directions, BATCH, HIDDEN) if not layout else (BATCH, directions, HIDDEN)
    arrays = [x, floats(directions, gates, SIZE, seed=1) * 0.5, floats(directions, gates, HIDDEN, seed=2) * 0.5]
    arrays += [floats(directions, 2 * gates, seed=3), lens, floats(*state, seed=4)]
    if op == "LSTM":
        arrays += [floats(*state, seed=5), *([floats(directions, 3 * HIDDEN, seed=6)] if peepholes else [])]
    return arrays


def _check(op: str, arrays: list[Any], **options: Any) -> list[np.ndarray]:
    constants = [i for i in (1, 2, 3, 7) if i < len(arrays)]
    outputs = 3 if op == "LSTM" else 2
    return check(op, *arrays, hidden_size=HIDDEN, outputs=outputs, constants=constants, tolerance=1e-4, **options)


@KINDS
def test_networks_run_over_sequences_of_any_length(op):
    arrays = _arrays(op)[:4]
    _check(op, arrays, open_sizes={0: ("t", "b", SIZE)})


@KINDS
def test_batches_may_come_first(op):
    arrays = _arrays(op, 1, 1)
    _check(op, arrays, layout=1)


@needs_runtime
@KINDS
@pytest.mark.parametrize("direction", ["reverse", "bidirectional"])
@pytest.mark.parametrize("lens", [None, LENS], ids=["whole", "lengths"])
def test_networks_run_backwards_from_the_end_of_each_sequence(op, direction, lens):
    _check(op, _arrays(op, 2 if direction == "bidirectional" else 1, 0, lens), direction=direction, runtime=True)


@needs_runtime
@KINDS
def test_arguments_of_activations_may_be_clipped(op):
    _check(op, _arrays(op), clip=0.4, runtime=True)


@needs_runtime
@pytest.mark.parametrize(
    ("op", "names"),
    [
        ("RNN", ["LeakyRelu"]),
        ("RNN", ["Relu"]),
        ("RNN", ["Softplus"]),
        ("RNN", ["ThresholdedRelu"]),
        ("RNN", ["Affine"]),
        ("GRU", ["HardSigmoid", "Softsign"]),
        ("LSTM", ["HardSigmoid", "ScaledTanh", "Elu"]),
    ],
)
def test_activations_take_their_numbers_in_turn(op, names):
    numbers = {"activation_alpha": [0.3, 0.7, 0.9][: len(names)], "activation_beta": [0.4, 0.6, 0.5][: len(names)]}
    _check(op, _arrays(op), activations=names, runtime=True, **numbers)


@needs_runtime
def test_a_reset_may_come_behind_the_product():
    _check("GRU", _arrays("GRU", 2, 0, LENS), direction="bidirectional", linear_before_reset=1, runtime=True)


@needs_runtime
@pytest.mark.parametrize("options", [{}, {"clip": 0.5}])
def test_gates_may_see_the_cell(options):
    _check("LSTM", _arrays("LSTM", peepholes=True), runtime=True, **options)


@needs_runtime
def test_what_is_kept_may_be_what_is_not_taken():
    _check("LSTM", _arrays("LSTM"), input_forget=1, runtime=True)


def test_gradients_reach_all_weights():
    module = gc.from_onnx(model_of("LSTM", _arrays("LSTM")[:4], hidden_size=HIDDEN, constants=(1, 2, 3)))
    module(floats(TIME, BATCH, SIZE)).sum().backward()
    assert all(p.grad is not None and np.abs(p.grad.numpy()).max() > 0 for p in module.parameters())


@pytest.mark.parametrize("options", [{"activations": ["Odd"]}, {"direction": "odd"}])
def test_what_is_not_known_is_an_error(options):
    arrays = _arrays("RNN")[:3]
    module = gc.from_onnx(model_of("RNN", arrays, hidden_size=HIDDEN, **options))
    with pytest.raises(UnsupportedError, match=r"(?i)odd"):
        module(*arrays)
