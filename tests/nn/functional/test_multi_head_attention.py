"""Multi-head attention as a function, compared with PyTorch; what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc
from graphc.errors import AttributeValueError, ShapeError
from graphc.nn import functional as F
from tests.nn.compare import agree, floats, tensor

NAMES = ("in_proj_weight", "in_proj_bias", "bias_k", "bias_v", "out_proj_weight", "out_proj_bias")
PARAMETERS = {
    "in_proj_weight": floats(18, 6),
    "in_proj_bias": floats(18, seed=1),
    "bias_k": floats(1, 1, 6, seed=2),
    "bias_v": floats(1, 1, 6, seed=3),
    "out_proj_weight": floats(6, 6, seed=4),
    "out_proj_bias": floats(6, seed=5),
}
QKV = (floats(4, 2, 6, seed=6), floats(5, 2, 6, seed=7), floats(5, 2, 6, seed=8))


def call(library: Any, options: dict[str, Any]) -> Any:
    """A function of query, key, value and the parameters."""
    forward = library.nn.functional.multi_head_attention_forward
    make = library.from_numpy
    given = {k: make(v.copy()) if isinstance(v, np.ndarray) else v for k, v in options.items()}

    def run(query: Any, key: Any, value: Any, *parameters: Any) -> Any:
        named = dict(zip(NAMES, parameters, strict=True)) | given
        found = forward(query, key, value, 6, 3, add_zero_attn=True, dropout_p=0.0, **named)
        return [t for t in found if t is not None]

    return run


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"attn_mask": floats(4, 5, seed=9), "need_weights": False},
        {"key_padding_mask": floats(2, 5, seed=9) > 0.5, "average_attn_weights": False},
        {"use_separate_proj_weight": True}
        | {f"{n}_proj_weight": floats(6, 6, seed=10 + i) for i, n in enumerate("qkv")},
        {"static_k": floats(6, 5, 2, seed=14), "static_v": floats(6, 5, 2, seed=15), "bias_k": None, "bias_v": None},
    ],
)
def test_as_torch(torch, options: dict[str, Any]):
    agree(call(graphc, options), call(torch, options), *QKV, *PARAMETERS.values())


def test_without_a_batch_as_torch(torch):
    agree(call(graphc, {}), call(torch, {}), *(x[:, 0] for x in QKV), *PARAMETERS.values())


def test_compiled_as_eager():
    run, arrays = call(graphc, {}), [tensor(x) for x in (*QKV, *PARAMETERS.values())]
    for a, b in zip(graphc.compile(run)(*arrays), run(*arrays), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-9)


def test_wrong_uses():
    parameters = [tensor(v) for v in PARAMETERS.values()]
    x = tensor(QKV[0])
    for options, error, text in (
        ({"is_causal": True}, AttributeValueError, "is_causal needs attn_mask"),
        ({"static_k": floats(1, 5, 2)}, ShapeError, r"static key or value \[1, 5, 2\] is not \[6, S, 2\]"),
        ({"key_padding_mask": np.zeros((3, 3), bool)}, ShapeError, "key_padding_mask is"),
    ):
        with pytest.raises(error, match=text):
            call(graphc, options)(x, x, x, *parameters)
    with pytest.raises(ShapeError, match="does not fit embed_dim 6 and 3 heads"):
        F.multi_head_attention_forward(
            tensor(floats(2, 1, 5)), x, x, 6, 3, *parameters[:4], False, 0.0, *parameters[4:]
        )


@pytest.mark.parametrize("need_weights", [True, False])
def test_a_query_without_keys_gives_zeros_unless_the_weights_are_shown(need_weights: bool):
    weights = {"in_proj_weight": floats(18, 6), "out_proj_weight": floats(6, 6, seed=4)}
    hidden = np.array([[True] * 5, [False, True, False, False, True]])

    def attention(library: Any) -> Any:
        make, forward = library.from_numpy, library.nn.functional.multi_head_attention_forward

        def run(query: Any, key: Any, value: Any, in_proj_weight: Any, out_proj_weight: Any) -> Any:
            found = forward(
                *(query, key, value, 6, 3, in_proj_weight, None, None, None, False, 0.0, out_proj_weight, None),
                key_padding_mask=make(hidden),
                need_weights=need_weights,
            )
            return [t for t in found if t is not None]

        return run

    agree(attention(graphc), attention(pytest.importorskip("torch")), *QKV, *weights.values())
    given = [tensor(x) for x in (*QKV, *weights.values())]
    eager = attention(graphc)(*given)[0].numpy()
    compiled = graphc.compile(attention(graphc))(*given)[0].numpy()
    np.testing.assert_allclose(compiled, eager, rtol=1e-12, atol=1e-12)
    assert np.isnan(eager[:, 0]).all() == need_weights
