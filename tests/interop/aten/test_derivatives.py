"""Rules of backward passes."""

from __future__ import annotations

from typing import Any

import pytest

import graphc
from graphc.interop.aten.table import TABLE
from tests.interop.aten.compare import Sample, check, target_of, torch

aten: Any = torch.ops.aten
_numbers: Any = torch.Generator().manual_seed(0)


def some(*sizes: int) -> Any:
    return torch.randn(sizes, generator=_numbers)


G, X = some(2, 4, 5), some(2, 4, 5)
EDGES = torch.tensor([[-4.0, -3.0, -1.0, -0.5, -0.0], [0.0, 0.5, 1.0, 3.0, 4.0]])
GE = some(2, 5)
IMAGE, KERNEL = some(2, 4, 6, 5), some(6, 2, 3, 3)
MASK3, MASK2 = [True, True, True], [True, True]
QUERY, KEY, VALUE, OUT = (some(1, 2, 4, 8) for _ in range(4))
ATTENTION = "_scaled_dot_product_flash_attention_for_cpu"
ROWS = torch.tensor([[0, 2, 1], [1, 0, 2]])
TIES = torch.relu(some(1, 2, 6, 6))


def _pool(x: Any) -> Any:
    return aten.max_pool2d_with_indices(x, [3, 3], [2, 2], [1, 1])


def _layer_norm(mask: Any, weight: Any = True) -> Sample:
    w, b = (some(5), some(5)) if weight else (None, None)
    _, mean, rstd = aten.native_layer_norm(X, [5], w, b, 1e-5)
    return ("native_layer_norm_backward", G, X, [5], mean, rstd, w, b, mask)


def _group_norm(mask: Any, weight: Any = True) -> Sample:
    w = some(4) if weight else None
    _, mean, rstd = aten.native_group_norm(X, w, None, 2, 4, 5, 2, 1e-5)
    return ("native_group_norm_backward", G, X, mean, rstd, w, 2, 4, 5, 2, mask)


def _batch_norm(train: bool, mask: Any = MASK3) -> Sample:
    w, mean, var = some(4), some(4), some(4).abs() + 0.5
    result = aten._native_batch_norm_legit.no_stats(X, w, None, True, 0.1, 1e-5)
    return ("native_batch_norm_backward", G, X, w, mean, var, result[1], result[2], train, 1e-5, mask)


def _convolution(mask: Any, padding: list[int], transposed: bool = False) -> Sample:
    x, w = IMAGE, KERNEL if not transposed else some(4, 3, 3, 3)
    settings = ([2, 1], padding, [1, 1], transposed, [0, 0], 2)
    grad = some(*aten.convolution(x, w, None, *settings).shape)
    return ("convolution_backward", grad, x, w, [grad.shape[1]], *settings, mask)


def _upsampled(name: str, size: list[int], *rest: Any) -> Sample:
    return (f"{name}_backward", some(2, 4, *size), size, list(IMAGE.shape), *rest)


_MEANS = aten.avg_pool2d(IMAGE, [3, 2], [2, 2], [1, 1], True, False)
SAMPLES: list[Sample] = [
    ("reflection_pad2d_backward", some(2, 4, 7, 8), IMAGE, [1, 2, 1, 0]),
    ("reflection_pad3d_backward", some(1, 2, 5, 6, 7), some(1, 2, 4, 4, 5), [1, 1, 2, 0, 0, 1]),
    ("replication_pad3d_backward", some(1, 2, 5, 6, 7), some(1, 2, 4, 4, 5), [1, 1, 2, 0, 0, 1]),
    ("upsample_nearest3d_backward", some(1, 2, 4, 6, 6), [4, 6, 6], [1, 2, 2, 3, 4]),
    ("_upsample_nearest_exact2d_backward", some(2, 4, 9, 8), [9, 8], [2, 4, 6, 5], 1.6, 1.7),
    ("gelu_backward", G, X),
    ("gelu_backward", G, X, {"approximate": "tanh"}),
    ("silu_backward", G, X),
    ("mish_backward", G, X),
    ("softplus_backward", G, X, 2.0, 1.0),
    ("glu_backward", some(2, 2, 5), X, 1),
    ("logit_backward", GE, torch.rand(2, 5, generator=_numbers), 0.1),
    ("log_sigmoid_backward", G, X, torch.exp(-X.abs())),
    ("tanh_backward", G, X.tanh()),
    ("sigmoid_backward", G, X.sigmoid()),
    ("tanh_backward", G + 1j * X, torch.complex(X, G).tanh()),
    ("sigmoid_backward", G + 1j * X, torch.complex(X, G).sigmoid()),
    ("threshold_backward", GE, EDGES, 0),
    ("hardtanh_backward", GE, EDGES, -1, 1),
    ("hardsigmoid_backward", GE, EDGES),
    ("hardswish_backward", GE, EDGES),
    ("hardshrink_backward", GE, EDGES, 0.5),
    ("softshrink_backward", GE, EDGES, 0.5),
    ("leaky_relu_backward", GE, EDGES, 0.1, False),
    ("elu_backward", GE, 1.5, 2.0, 0.5, False, EDGES),
    ("elu_backward", GE, 1.5, 1.0, 1.0, True, EDGES.clamp(min=-1)),
    ("_prelu_kernel", EDGES, some(5)),
    ("_prelu_kernel_backward", GE, EDGES, some(2, 5)),
    ("native_dropout_backward", GE, EDGES > 0, 2.0),
    _convolution(MASK3, [0, 0]),
    _convolution([False, True, False], [1, 0]),
    _convolution([True, True, False], [1, 1]),
    _convolution(MASK3, [1, 1], transposed=True),
    (
        f"{ATTENTION}_backward",
        OUT,
        QUERY,
        KEY,
        VALUE,
        *getattr(aten, ATTENTION)(QUERY, KEY, VALUE, 0.0, True),
        0.0,
        True,
    ),
    *[(ATTENTION, QUERY, KEY, VALUE, 0.0, causal) for causal in (True, False)],
    (ATTENTION, QUERY, KEY, VALUE, 0.0, False, {"attn_mask": some(4, 4), "scale": 0.3}),
    _layer_norm(MASK3),
    _layer_norm([True, False, False], weight=False),
    _layer_norm([False, True, True]),
    _group_norm(MASK3),
    _group_norm([True, False, False], weight=False),
    _batch_norm(True),
    _batch_norm(True, [False, True, False]),
    _batch_norm(False),
    ("embedding_dense_backward", some(2, 3, 4), ROWS, 5, -1, False),
    ("embedding_dense_backward", some(2, 3, 4), ROWS, 5, 2, True),
    ("slice_backward", some(2, 2, 5), [2, 4, 5], 1, 1, 9223372036854775807, 2),
    ("select_backward", some(2, 5), [2, 4, 5], 1, -1),
    ("diagonal_backward", some(5, 2), [2, 5, 3], 1, 0, 2),
    ("unfold_backward", some(2, 4, 4, 2), [2, 4, 5], 2, 2, 1),
    ("reflection_pad1d_backward", some(2, 4, 8), X, [1, 2]),
    ("replication_pad2d_backward", some(2, 4, 7, 8), IMAGE, [1, 2, 1, 0]),
    ("value_selecting_reduction_backward", some(2, 3), 1, ROWS, [2, 4, 3], False),
    ("masked_select_backward", some(int((X > 0).sum())), X, X > 0),
    ("max_pool2d_with_indices_backward", some(1, 2, 3, 3), TIES, [3, 3], [2, 2], [1, 1], [1, 1], False, _pool(TIES)[1]),
    ("avg_pool2d_backward", some(*_MEANS.shape), IMAGE, [3, 2], [2, 2], [1, 1], True, False, None),
    ("_adaptive_avg_pool2d_backward", some(2, 4, 2, 3), IMAGE),
    ("adaptive_max_pool2d_backward", some(2, 4, 2, 3), IMAGE, aten.adaptive_max_pool2d(IMAGE, [2, 3])[1]),
    _upsampled("upsample_nearest2d", [12, 10], 2.0, 2.0),
    _upsampled("upsample_nearest2d", [9, 8], 1.6, 1.7),
    _upsampled("upsample_bilinear2d", [9, 8], False, 1.6, 1.7),
    _upsampled("upsample_bilinear2d", [9, 8], True),
    _upsampled("upsample_bicubic2d", [9, 8], False),
    ("grid_sampler_2d_backward", some(2, 4, 3, 2), IMAGE, some(2, 3, 2, 2), 0, 0, False, MASK2),
]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample[0])
def test_an_operator_gives_what_pytorch_gives(sample: Sample):
    check(sample)


W = some(3, 5)
BY_GRADIENTS: list[Sample] = [
    ("linear_backward", X, some(2, 4, 3), W, MASK3),
    ("_fused_rms_norm_backward", G, X, [5], (X.square().mean(-1, keepdim=True) + 1e-5).rsqrt(), some(5), MASK2),
]
"""Operators that PyTorch has for other devices alone."""


def _differentiated(name: str, args: Any) -> Any:
    if name == "linear_backward":
        x, grad, weight, _ = args
        given, function = (x, weight, torch.zeros(3)), torch.nn.functional.linear
    else:
        grad, x, shape, _, weight, _ = args
        given, function = (x, weight), lambda x, w: torch.nn.functional.rms_norm(x, shape, w, 1e-5)
    leaves = [t.clone().requires_grad_() for t in given]
    return torch.autograd.grad(function(*leaves), leaves, grad)


@pytest.mark.parametrize("sample", BY_GRADIENTS, ids=lambda sample: sample[0])
def test_an_operator_gives_the_gradients_that_pytorch_has(sample: Sample):
    name, *args = sample
    expected, function = _differentiated(name, args), TABLE[target_of(name)]
    result = function(*[graphc.tensor(a.numpy()) if isinstance(a, torch.Tensor) else a for a in args])
    for ours, theirs in zip(result, expected, strict=True):
        torch.testing.assert_close(torch.from_numpy(ours.numpy()), theirs, rtol=1e-4, atol=1e-5)
