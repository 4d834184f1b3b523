"""Attention of ONNX, against its evaluator, eagerly and compiled, with known and with open sizes."""

from __future__ import annotations

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper  # noqa: E402

import graphc as gc  # noqa: E402
from graphc.base.errors import AttributeValueError  # noqa: E402
from graphc.nn import functional as F  # noqa: E402
from tests.interop.onnx.one_node import check, floats, model_of  # noqa: E402

Q, K, V = floats(2, 4, 5, 8), floats(2, 2, 7, 8, seed=1), floats(2, 2, 7, 6, seed=2)
PAST = (floats(2, 2, 3, 8, seed=3), floats(2, 2, 3, 6, seed=4))
OPEN = {0: ("b", 4, "q", 8), 1: ("b", 2, "k", 8), 2: ("b", 2, "k", 6)}
BOOLS = floats(2, 1, 5, 7, seed=5) > 0
MASKS = {"none": None, "bools": BOOLS, "numbers": floats(4, 5, 7, seed=6), "short": floats(5, 4, seed=7)}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("is_causal", [0, 1])
@pytest.mark.parametrize("softcap", [0.0, 2.0])
def test_masks_combine(mask, is_causal, softcap):
    arrays = (Q, K, V, MASKS[mask]) if MASKS[mask] is not None else (Q, K, V)
    options = {"is_causal": is_causal, "softcap": softcap, "opset": 24, "tolerance": 1e-4}
    check("Attention", *arrays, open_sizes=OPEN if mask == "none" else None, **options)


@pytest.mark.parametrize("queries", [1, 5])
def test_the_past_stands_before_keys_and_values(queries):
    q, k, v = Q[:, :, :queries], K[:, :, :queries], V[:, :, :queries]
    sizes = {i: ("b", h, n, e) for i, (h, n, e) in enumerate([(4, queries, 8), (2, queries, 8), (2, queries, 6)])}
    sizes |= {4: ("b", 2, "p", 8), 5: ("b", 2, "p", 6)}
    options = {"is_causal": 1, "outputs": 3, "opset": 24, "tolerance": 1e-4}
    check("Attention", q, k, v, None, *PAST, open_sizes=sizes, **options)


def test_heads_may_stand_beside_each_other():
    q, k, v = (a.transpose(0, 2, 1, 3).reshape(2, a.shape[2], -1) for a in (Q, K, V))
    options = {"q_num_heads": 4, "kv_num_heads": 2, "opset": 23, "tolerance": 1e-4}
    check("Attention", q, k, v, open_sizes={0: ("b", "q", 32), 1: ("b", "k", 16), 2: ("b", "k", 12)}, **options)


@pytest.mark.parametrize("mode", [0, 1, 2, 3])
def test_a_step_on_the_way_is_shown(mode):
    options = {"softcap": 2.0, "outputs": ["y", "", "", "s"], "qk_matmul_output_mode": mode, "opset": 24}
    found = check("Attention", Q, K, V, BOOLS, tolerance=1e-4, expected=_shown(mode), **options)
    assert found[1].shape == (2, 4, 5, 7)


def _shown(mode: int) -> list[np.ndarray]:
    k, v = K.repeat(2, 1), V.repeat(2, 1)
    steps = [Q @ k.swapaxes(2, 3) / np.sqrt(8)]
    steps.append(np.tanh(steps[0] / 2) * 2)
    steps.append(np.where(BOOLS, steps[1], -np.inf))
    raised = np.exp(steps[2] - np.where(BOOLS, steps[1], -9).max(-1, keepdims=True))
    steps.append(raised / np.maximum(raised.sum(-1, keepdims=True), 1e-30))
    return [steps[3] @ v, steps[mode]]


@pytest.mark.parametrize("options", [{"is_causal": 1}, {"is_causal": 0}, {"is_causal": 1, "left_window_size": 1}])
def test_keys_behind_the_ends_of_items_are_not_seen(options):
    ends = np.array([5, 6], np.int64)
    check("Attention", Q, K, V, None, None, None, ends, opset=25, tolerance=1e-4, **options)


def test_a_query_that_sees_nothing_gives_zeros():
    found = check("Attention", Q, K, V, np.zeros((5, 7), bool), opset=24)
    assert not found[0].any()


def test_weights_may_be_computed_in_a_wider_type():
    check("Attention", Q, K, V, softmax_precision=TensorProto.DOUBLE, opset=24, tolerance=1e-4)


def test_compiled_attention_is_the_program_of_graphc_itself():
    k, v = K.repeat(2, 1), V.repeat(2, 1)
    module = gc.from_onnx(model_of("Attention", (Q, k, v), is_causal=1, opset=24))
    theirs = gc.compile(lambda q, k, v: module(q, k, v))
    ours = gc.compile(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True))
    for function in (theirs, ours):
        function(*(gc.tensor(a) for a in (Q, k, v)))
    (found,), (expected,) = theirs.programs, ours.programs
    assert (found.arena, found.code) == (expected.arena, expected.code)


def test_scores_and_weights_pass_through_graphs_of_the_model():
    value = helper.make_tensor_value_info("s", TensorProto.FLOAT, None)
    result = helper.make_tensor_value_info("t", TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node("Tanh", ["s"], ["t"])], "change", [value], [result])
    k, v = K.repeat(2, 1), V.repeat(2, 1)
    raised = np.exp(np.tanh(Q @ k.swapaxes(2, 3) / np.sqrt(8)))
    expected = np.tanh(raised / raised.sum(-1, keepdims=True)) @ v
    options = {"domain": "ai.onnx.preview", "score_mod": graph, "prob_mod": graph, "tolerance": 1e-4}
    check("FlexAttention", Q, K, V, expected=[expected], open_sizes=OPEN, **options)


@pytest.mark.parametrize("mode", ["linear", "circular"])
def test_rows_are_written_to_caches(mode):
    start = np.array([3, 5] if mode == "circular" else [0, 4], np.int64)
    check("TensorScatter", floats(2, 3, 6, 4), floats(2, 3, 2, 4, seed=1), start, mode=mode, opset=24)


@pytest.mark.parametrize("rule", ["linear", "gated", "delta", "gated_delta"])
def test_queries_read_a_state_that_keys_write(rule):
    decay = -np.abs(floats(2, 5, 2, seed=3)) if "gated" in rule else None
    beta = np.abs(floats(2, 5, 1, seed=4)) if "delta" in rule else None
    arrays = [floats(2, 5, 16), floats(2, 5, 8, seed=1) * 0.3, floats(2, 5, 6, seed=2), floats(2, 2, 4, 3), decay, beta]
    while arrays[-1] is None:
        arrays.pop()
    options = {"q_num_heads": 4, "kv_num_heads": 2, "update_rule": rule, "outputs": 2, "opset": 27}
    check("LinearAttention", *arrays, tolerance=1e-4, **options)


@pytest.mark.parametrize("past", [None, floats(2, 3, 2, seed=3)], ids=["first", "next"])
def test_a_convolution_goes_on_with_the_last_steps(past):
    arrays = [floats(2, 3, 5), floats(3, 1, 3, seed=1), floats(3, seed=2), *([past] if past is not None else [])]
    options = {"activation": "silu", "outputs": 2, "opset": 27, "tolerance": 1e-4}
    check("CausalConvWithState", *arrays, open_sizes={0: ("b", 3, "t")} if past is None else None, **options)


@pytest.mark.parametrize(
    ("op", "arrays", "options"),
    [
        ("Attention", (floats(2, 5, 8),) * 3, {}),
        ("Attention", (Q, Q, Q), {"qk_matmul_output_mode": 7, "outputs": ["y", "", "", "s"]}),
        ("CausalConvWithState", (floats(2, 3, 5), floats(3, 1, 3)), {"activation": "odd", "outputs": 2}),
        ("LinearAttention", (floats(2, 5, 8),) * 3, {"q_num_heads": 2, "kv_num_heads": 2, "outputs": 2}),
    ],
)
def test_what_does_not_fit_is_an_error(op, arrays, options):
    module = gc.from_onnx(model_of(op, arrays, opset=28, **options))
    with pytest.raises(AttributeValueError):
        module(*arrays)
