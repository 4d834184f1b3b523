"""Operators on codes have the results of PyTorch's, eagerly and compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphc
from graphc.interop.aten.registry import TABLE

torch = pytest.importorskip("torch")
pytest.importorskip("torch.ao.quantization.fx._decomposed", reason="PyTorch registers the operators there")

X = torch.from_numpy(np.random.default_rng(0).standard_normal((3, 4, 8)).astype(np.float32)) * 3
SCALES = torch.tensor([0.02, 0.01, 0.03, 0.05])
ZEROS = torch.tensor([3, 0, -5, 7])
ROWS = torch.from_numpy(np.random.default_rng(1).random((3, 4, 1))) * 0.02 + 0.01
ROW_ZEROS = torch.arange(12).reshape(3, 4, 1) - 6
CODES = torch.from_numpy(np.random.default_rng(2).integers(-128, 128, (3, 4, 8)).astype(np.int8))
GROUP_SCALES = torch.from_numpy(np.random.default_rng(3).random((12, 2)).astype(np.float32)) * 0.02 + 0.01
GROUP_ZEROS = (torch.arange(24).reshape(12, 2) % 9 - 4).to(torch.int32)
S8, U8 = (-128, 127, torch.int8), (0, 255, torch.uint8)
SCALE, ZERO = torch.tensor([0.0173], dtype=torch.float64), torch.tensor([121])
WIDE = torch.tensor([1.0e-30, 2.0e38, -3.0e38, float("inf"), -float("inf"), 0.0])

CODES_SAMPLES: list[tuple[str, tuple[Any, ...]]] = [
    ("quantized_decomposed.quantize_per_tensor.default", (X, 0.0173, 121, *U8)),
    ("quantized_decomposed.quantize_per_tensor.default", (X.to(torch.bfloat16), 0.03, -4, -127, 127, torch.int8)),
    ("quantized_decomposed.quantize_per_tensor.default", (WIDE, 0.0173, 121, *U8)),
    ("quantized_decomposed.quantize_per_tensor.tensor", (X, SCALE, ZERO, *U8)),
    (
        "quantized_decomposed.quantize_per_tensor.tensor2",
        (X, SCALE, ZERO, torch.tensor(0), torch.tensor(255), torch.uint8),
    ),
    ("quantized_decomposed.dequantize_per_tensor.default", (CODES, 0.0173, -4, *S8)),
    ("quantized_decomposed.dequantize_per_tensor.tensor", (CODES, SCALE, ZERO, *S8)),
    ("quantized_decomposed.dequantize_per_tensor.tensor2", (CODES, SCALE, ZERO, ZERO, ZERO, torch.int8)),
    ("quantized_decomposed.quantize_per_channel.default", (X, SCALES, ZEROS, 1, *S8)),
    ("quantized_decomposed.dequantize_per_channel.default", (CODES, SCALES, ZEROS, 1, *S8)),
    ("quantized_decomposed.dequantize_per_channel.default", (CODES, SCALES, None, 1, *S8)),
    ("quantized_decomposed.choose_qparams.tensor", (X, 0, 255, 1e-5, torch.uint8)),
    ("quantized_decomposed.choose_qparams.tensor", (X.abs(), -128, 127, 1e-5, torch.int8)),
    ("quantized_decomposed.choose_qparams.tensor", (X * 0, -128, 127, 1e-5, torch.int8)),
    ("quantized_decomposed.choose_qparams_symmetric.tensor", (X, -127, 127, 1e-5, torch.int8)),
    ("quantized_decomposed.choose_qparams_per_token.default", (X, torch.int8)),
    ("quantized_decomposed.choose_qparams_per_token_asymmetric.default", (X, torch.int8)),
    ("quantized_decomposed.choose_qparams_per_token_asymmetric.default", (X.abs(), torch.int8)),
    ("quantized_decomposed._choose_qparams_per_token_asymmetric_impl.default", (X, torch.int8)),
    ("quantized_decomposed.quantize_per_token.default", (X, ROWS, ROW_ZEROS, *S8)),
    ("quantized_decomposed.dequantize_per_token.default", (CODES, ROWS, ROW_ZEROS, *S8, torch.float32)),
    (
        "quantized_decomposed.quantize_per_channel_group.default",
        (X.reshape(12, 8), GROUP_SCALES, GROUP_ZEROS, -8, 7, torch.int8, 4),
    ),
    (
        "quantized_decomposed.dequantize_per_channel_group.default",
        (CODES.reshape(12, 8), GROUP_SCALES, GROUP_ZEROS, *S8, 4, torch.float32),
    ),
    (
        "quantized_decomposed.dequantize_per_channel_group.default",
        (CODES.reshape(12, 8), SCALES[:1], None, *S8, 128, torch.float32),
    ),
]


def _of_graphc(argument: Any) -> Any:
    if isinstance(argument, torch.dtype):
        return getattr(graphc, str(argument).removeprefix("torch."))
    if isinstance(argument, torch.Tensor) and argument.dtype is torch.bfloat16:
        return graphc.tensor(argument.float().numpy()).to(graphc.bfloat16)
    return graphc.tensor(argument.numpy()) if isinstance(argument, torch.Tensor) else argument


def _compiled(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """Compile a function of the tensors among the arguments."""
    tensors = [a for a in arguments if isinstance(a, graphc.Tensor)]

    def call(*found: Any) -> Any:
        left = iter(found)
        return function(*(next(left) if isinstance(a, graphc.Tensor) else a for a in arguments))

    return graphc.compile(call)(*tensors)


@pytest.mark.parametrize(("name", "arguments"), CODES_SAMPLES, ids=[name for name, _ in CODES_SAMPLES])
def test_results_are_those_of_pytorch(name: str, arguments: tuple[Any, ...]):
    _, operator, overload = name.split(".")
    expected = getattr(getattr(torch.ops.quantized_decomposed, operator), overload)(*arguments)
    function, converted = TABLE[name], tuple(map(_of_graphc, arguments))
    for results in (function(*converted), _compiled(function, converted)):
        pairs = zip(results, expected, strict=True) if isinstance(expected, tuple) else [(results, expected)]
        for result, one in pairs:
            array = one.numpy()
            assert result.numpy().dtype == array.dtype and result.shape == array.shape
            if array.dtype.kind == "f":
                np.testing.assert_allclose(result.numpy(), array, rtol=3e-7)
            else:
                np.testing.assert_array_equal(result.numpy(), array)


def test_rows_have_codes_of_8_bits():
    with pytest.raises(graphc.errors.UnsupportedError, match="i16 has no codes"):
        TABLE["quantized_decomposed.choose_qparams_per_token.default"](graphc.ones(2, 3), graphc.int16)
