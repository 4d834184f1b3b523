"""Everything in ``nn.functional`` that draws no random numbers against PyTorch, with first and second gradients."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conformance.compare import Case, cases, check, normal, positive, spread, truth, whole

X = normal(3, 6)
SEQUENCE, IMAGE, ODD = normal(2, 4, 7), normal(2, 4, 6, 5), normal(1, 3, 7, 9)
SIGNS = np.where(truth(4), 1.0, -1.0)
SPECIAL = np.array([-np.inf, -50.0, -1.5, -0.5, -0.0, 0.0, 0.3, 1.0, 3.0, 6.0, 40.0, np.inf])
ACTIVATIONS = "relu relu6 leaky_relu elu selu celu gelu silu mish softplus softsign tanh sigmoid logsigmoid hardtanh"
ACTIVATIONS += " hardsigmoid hardswish hardshrink softshrink tanhshrink rrelu"


@pytest.mark.parametrize("name", ACTIVATIONS.split())
@pytest.mark.parametrize(
    "x",
    [spread(3, 5) + 0.013, 12 * normal(3, 5), normal(2, 0), normal()],
    ids=["matrix", "large numbers", "empty", "scalar"],
)
def test_activations(name, x):
    # PyTorch differentiates the kinks of these only once.
    order = 1 if name in ("hardswish", "hardsigmoid", "rrelu", "hardshrink", "softshrink") else 2
    check(Case(name, lambda t, v: getattr(t.nn.functional, name)(v), (x,), 1e-8, order))


@pytest.mark.parametrize("name", ACTIVATIONS.split())
def test_activations_at_special_values(name):
    x = SPECIAL if name not in ("softsign", "tanhshrink", "hardswish", "silu", "mish", "gelu") else SPECIAL[1:-1]
    check(Case(name, lambda t, v: getattr(t.nn.functional, name)(v), (x,), 1e-7, 0))


@pytest.mark.parametrize("name", ["relu", "leaky_relu", "elu", "selu", "celu", "hardtanh", "rrelu"])
def test_activations_in_place(name):
    check(Case(name, lambda t, v: getattr(t.nn.functional, name + "_")(v * 1.0), (X,), 1e-9, 1))
    check(Case(name, lambda t, v: getattr(t.nn.functional, name)(v * 1.0, inplace=True), (X,), 1e-9, 1))


@pytest.mark.parametrize(
    "case",
    cases(
        ("leaky slope", lambda t, x: t.nn.functional.leaky_relu(x, 0.3), (X,)),
        ("elu alpha", lambda t, x: (t.nn.functional.elu(x, 0.7), t.nn.functional.celu(x, 0.7)), (X,), 1e-7),
        ("hardtanh range", lambda t, x: t.nn.functional.hardtanh(x, -0.3, 0.4), (X,)),
        ("softplus beta", lambda t, x: t.nn.functional.softplus(x, 3.0, 2.0), (X,)),
        ("gelu tanh", lambda t, x: t.nn.functional.gelu(x, approximate="tanh"), (X,)),
        ("options of large numbers", lambda t, x: [t.nn.functional.leaky_relu(x, 0.3), t.nn.functional.elu(x, 0.5), t.nn.functional.celu(x, 2.0), t.nn.functional.gelu(x, approximate="tanh"), t.nn.functional.softplus(x, 3.0, 2.0), t.nn.functional.hardtanh(x, -0.5, 0.7)], (12 * X,), 1e-8),
        ("rows of large numbers", lambda t, x: [t.nn.functional.glu(x), t.nn.functional.softmax(x, 1), t.nn.functional.log_softmax(x, 0), t.nn.functional.softmin(x, 1), t.nn.functional.normalize(x, 3.0, -1)], (12 * X,), 1e-8),
        ("threshold", lambda t, x: (t.nn.functional.threshold(x, 0.1, 20.0), t.nn.functional.threshold_(x * 1, 0.1, -1.0)), (X,)),
        ("shrink limits", lambda t, x: (t.nn.functional.hardshrink(x, 0.3), t.nn.functional.softshrink(x, 0.3), t.nn.functional.softshrink(x, 0.0)), (X,), 1e-9, 1),
        ("slopes outside of training", lambda t, x: t.nn.functional.rrelu(x, 0.1, 0.2), (X,), 1e-9, 1),
        ("glu", lambda t, x: (t.nn.functional.glu(x), t.nn.functional.glu(x.t(), 0)), (X,)),
        ("prelu", lambda t, x, w, v: (t.nn.functional.prelu(x, w), t.nn.functional.prelu(x, v)), (IMAGE, normal(4), normal(1))),
        ("prelu of a vector", lambda t, x, w: t.nn.functional.prelu(x, w), (normal(5), normal(1))),
        ("softmax", lambda t, x: (t.nn.functional.softmax(x, 1), t.nn.functional.log_softmax(x, dim=0), t.nn.functional.softmin(x, dim=-1)), (X,)),
        ("softmax dtype", lambda t, x: t.nn.functional.softmax(x, 1, dtype=t.float64), (X,)),
        ("implicit dimension", lambda t, x, y: (t.nn.functional.log_softmax(x), t.nn.functional.softmax(y), t.nn.functional.softmin(x[0])), (X, IMAGE)),
        ("softmax of large numbers", lambda t, x: (t.nn.functional.softmax(x, 0), t.nn.functional.log_softmax(x, 0)), (np.array([1e4, -1e4, 0.0, -np.inf]),), 1e-9, 0),
        ("normalize", lambda t, x: (t.nn.functional.normalize(x), t.nn.functional.normalize(x, p=1, dim=0), t.nn.functional.normalize(x, dim=-1, eps=10.0)), (X,)),
        ("linear", lambda t, x, w, b: (t.nn.functional.linear(x, w, b), t.nn.functional.linear(x[0], w), t.nn.functional.linear(x.reshape(3, 1, 6), w, b), t.nn.functional.linear(x, w[0])), (X, normal(4, 6), normal(4))),
        ("linear of nothing", lambda t, x, w, b: t.nn.functional.linear(x, w, b), (normal(0, 6), normal(4, 6), normal(4)), 1e-9, 1),
        ("bilinear", lambda t, x, y, w, b: (t.nn.functional.bilinear(x, y, w, b), t.nn.functional.bilinear(x, y, w), t.nn.functional.bilinear(x[None], y[None], w, b)), (X, normal(3, 4), normal(2, 6, 4), normal(2))),
        ("embedding", lambda t, i, w: (t.nn.functional.embedding(i, w), t.nn.functional.embedding(i[0], w, padding_idx=2), t.nn.functional.embedding(i[0, 0], w, padding_idx=-1)), (whole(7, 3, 4), normal(7, 5))),
        ("embedding scaled by counts", lambda t, i, w: (t.nn.functional.embedding(i, w, scale_grad_by_freq=True), t.nn.functional.embedding(i, w, padding_idx=1, scale_grad_by_freq=True)), (whole(4, 3, 4), normal(7, 5)), 1e-9, 1),
        ("embedding max_norm", lambda t, i, w: t.nn.functional.embedding(i, w.detach().clone(), max_norm=1.0), (whole(7, 3), normal(7, 5)), 1e-6, 0),
        ("one_hot", lambda t, i: (t.nn.functional.one_hot(i), t.nn.functional.one_hot(i, 9), t.nn.functional.one_hot(i, num_classes=7)), (whole(7, 3, 4),)),
        ("embedding_bag sum", lambda t, i, w, p: (t.nn.functional.embedding_bag(i, w, mode="sum"), t.nn.functional.embedding_bag(i, w, mode="sum", per_sample_weights=p)), (whole(7, 3, 4), normal(7, 5), normal(3, 4)), 1e-9, 1),
        ("embedding_bag mean", lambda t, i, o, w: (t.nn.functional.embedding_bag(i, w, o), t.nn.functional.embedding_bag(i, w, o, include_last_offset=True), t.nn.functional.embedding_bag(i, w, o, padding_idx=3)), (whole(7, 9), np.array([0, 2, 2, 9]), normal(7, 5)), 1e-9, 1),
        ("embedding_bag max", lambda t, i, o, w: (t.nn.functional.embedding_bag(i, w, o, mode="max"), t.nn.functional.embedding_bag(i.reshape(3, 3), w, mode="max", padding_idx=1)), (whole(7, 9), np.array([0, 2, 2]), spread(7, 5)), 1e-9, 1),
        ("cosine_similarity", lambda t, x, y: (t.nn.functional.cosine_similarity(x, y), t.nn.functional.cosine_similarity(x, y[:1], dim=0, eps=1e-6)), (X, normal(3, 6, seed=1))),
        ("pairwise_distance", lambda t, x, y: (t.nn.functional.pairwise_distance(x, y), t.nn.functional.pairwise_distance(x, y, p=1, keepdim=True), t.nn.functional.pairwise_distance(x[0], y[0], p=3)), (X, normal(3, 6, seed=1)), 1e-8),
        ("pdist", lambda t, x: (t.nn.functional.pdist(x), t.nn.functional.pdist(x, p=1)), (X,), 1e-9, 1),
        ("dropout outside of training", lambda t, x: (t.nn.functional.dropout(x, training=False), t.nn.functional.dropout2d(x[None, None], 0.0), t.nn.functional.alpha_dropout(x, training=False), t.nn.functional.dropout(x, 1.0)), (X,)),
    ),
)  # fmt: skip
def test_activations_and_maps(case):
    check(case)


CONVOLUTIONS = [
    ((2, 3, 7, 8), (4, 3, 3, 3), {}),
    ((2, 3, 7, 8), (4, 3, 3, 2), {"stride": 2}),
    ((1, 4, 9, 8), (6, 2, 3, 3), {"padding": 1, "groups": 2}),
    ((2, 4, 9, 8), (4, 1, 3, 3), {"padding": (2, 1), "groups": 4, "stride": (2, 3)}),
    ((1, 2, 11, 9), (3, 2, 3, 2), {"dilation": (2, 3), "padding": 2}),
    ((2, 2, 6, 7), (3, 2, 4, 3), {"padding": "same"}),
    ((2, 2, 6, 7), (3, 2, 2, 3), {"padding": "same", "dilation": 2}),
    ((2, 2, 6, 7), (3, 2, 4, 3), {"padding": "valid"}),
    ((3, 7, 8), (5, 3, 3, 3), {}),
    ((2, 8, 1, 1), (4, 8, 1, 1), {}),
    ((2, 3, 12), (4, 3, 3), {}),
    ((2, 4, 12), (4, 2, 3), {"stride": 2, "padding": 2, "groups": 2}),
    ((4, 12), (4, 4, 3), {"dilation": 2}),
    ((2, 3, 10), (4, 3, 4), {"padding": "same"}),
]
TRANSPOSED = [
    ((2, 3, 4, 5), (3, 4, 3, 3), {}),
    ((2, 3, 4, 5), (3, 4, 3, 2), {"stride": 2, "padding": 1}),
    ((2, 3, 4, 5), (3, 4, 3, 3), {"stride": (3, 2), "output_padding": (2, 1), "padding": (1, 0)}),
    ((2, 4, 4, 5), (4, 3, 2, 3), {"groups": 2, "dilation": 2, "stride": 2}),
    ((3, 4, 5), (3, 5, 3, 3), {}),
]
SIZES = [{"size": 9}, {"size": 3}, {"scale_factor": 2}, {"scale_factor": 1.5}, {"scale_factor": 0.6}]


@pytest.mark.parametrize(
    "case",
    cases(
        ("conv1d", lambda t, x, w, b: (t.nn.functional.conv1d(x, w, b), t.nn.functional.conv1d(x, w, stride=2, padding=1), t.nn.functional.conv1d(x[0], w, b, dilation=2)), (SEQUENCE, normal(6, 4, 3), normal(6))),
        ("conv2d", lambda t, x, w, b: (t.nn.functional.conv2d(x, w, b), t.nn.functional.conv2d(x, w, b, (2, 1), (1, 2), (1, 2)), t.nn.functional.conv2d(x[0], w)), (IMAGE, normal(5, 4, 3, 2), normal(5))),
        *((f"{'conv1d' if len(w) == 3 else 'conv2d'} {list(w)} {o}", lambda t, x, w, b, o=o: [getattr(t.nn.functional, f"conv{w.ndim - 2}d")(x, w, c, **o) for c in (b, None)], (normal(*x), normal(*w), normal(w[0]))) for x, w, o in CONVOLUTIONS),
        *((f"conv_transpose2d {list(w)} {o}", lambda t, x, w, b, o=o: t.nn.functional.conv_transpose2d(x, w, b, **o), (normal(*x), normal(*w), normal(w[1] * o.get("groups", 1)))) for x, w, o in TRANSPOSED),
        ("conv_transpose1d groups", lambda t, x, w, b: t.nn.functional.conv_transpose1d(x, w, b, 3, 1, 1, 2), (normal(2, 4, 7), normal(4, 3, 4), normal(6))),
        ("conv2d groups", lambda t, x, w, v: (t.nn.functional.conv2d(x, w, groups=2, padding=1), t.nn.functional.conv2d(x, v, groups=4, stride=2)), (IMAGE, normal(6, 2, 3, 3), normal(8, 1, 2, 2))),
        ("conv2d padding by name", lambda t, x, w: (t.nn.functional.conv2d(x, w, padding="same"), t.nn.functional.conv2d(x, w, padding="valid")), (IMAGE, normal(5, 4, 3, 2))),
        ("conv2d pointwise", lambda t, x, w: t.nn.functional.conv2d(x, w, stride=2), (ODD, normal(5, 3, 1, 1))),
        ("conv2d of nothing", lambda t, x, w: t.nn.functional.conv2d(x, w), (normal(0, 3, 7, 9), normal(5, 3, 3, 3)), 1e-9, 1),
        ("conv_transpose1d", lambda t, x, w, b: (t.nn.functional.conv_transpose1d(x, w, b), t.nn.functional.conv_transpose1d(x, w, stride=3, padding=1, output_padding=1, dilation=2)), (SEQUENCE, normal(4, 5, 3), normal(5))),
        ("conv_transpose2d", lambda t, x, w, b: (t.nn.functional.conv_transpose2d(x, w, b), t.nn.functional.conv_transpose2d(x, w, b, 2, 1, 1), t.nn.functional.conv_transpose2d(x, w, None, (1, 2), (0, 1), dilation=2)), (IMAGE, normal(4, 3, 3, 3), normal(3))),
        ("conv_transpose2d groups", lambda t, x, w: t.nn.functional.conv_transpose2d(x, w, groups=2, stride=2), (IMAGE, normal(4, 3, 2, 3))),
        ("max_pool1d", lambda t, x: (t.nn.functional.max_pool1d(x, 3), t.nn.functional.max_pool1d(x, 3, 2, 1, dilation=2, ceil_mode=True)), (spread(2, 4, 9),), 1e-9, 1),
        ("max_pool2d", lambda t, x: (t.nn.functional.max_pool2d(x, 2), t.nn.functional.max_pool2d(x, 2, 1, dilation=(3, 2)), t.nn.functional.max_pool2d(x, (3, 2), stride=(2, 1), padding=1), t.nn.functional.max_pool2d(x[0], 3, ceil_mode=True)), (spread(2, 3, 7, 6),)),
        ("max_pool2d indices", lambda t, x: (t.nn.functional.max_pool2d(x, 2, return_indices=True), t.nn.functional.max_pool2d(x, (3, 2), (2, 1), (1, 0), return_indices=True), t.nn.functional.max_pool2d(x, 3, 2, 1, return_indices=True)), (spread(2, 3, 7, 6),), 1e-9, 1),
        ("avg_pool1d", lambda t, x: (t.nn.functional.avg_pool1d(x, 3), t.nn.functional.avg_pool1d(x, 3, 2, 1, True), t.nn.functional.avg_pool1d(x, 3, padding=1, count_include_pad=False)), (SEQUENCE,)),
        ("avg_pool2d", lambda t, x: (t.nn.functional.avg_pool2d(x, 2), t.nn.functional.avg_pool2d(x, 3, 2, 1, ceil_mode=True), t.nn.functional.avg_pool2d(x, (2, 3), padding=(1, 0), count_include_pad=False), t.nn.functional.avg_pool2d(x, 2, divisor_override=3), *[t.nn.functional.avg_pool2d(x, 3, 2, 1, c, divisor_override=5) for c in (False, True)]), (IMAGE,)),
        ("avg_pool3d", lambda t, x: (t.nn.functional.avg_pool3d(x, 2, divisor_override=3), t.nn.functional.avg_pool3d(x, (2, 3, 2), 2, 1, True, True, 5), t.nn.AvgPool3d(2, 1, 1, divisor_override=7)(x)), (normal(1, 2, 4, 5, 6),)),
        ("max_pool3d indices", lambda t, x: (t.nn.functional.max_pool3d(x, 2, return_indices=True), t.nn.functional.max_pool3d(x[0], 3, 2, 1, return_indices=True), t.nn.MaxPool3d(2, 1, dilation=2, return_indices=True)(x)), (spread(1, 2, 4, 5, 6),), 1e-9, 1),
        ("adaptive_avg_pool", lambda t, x, y: (t.nn.functional.adaptive_avg_pool2d(x, (3, 2)), t.nn.functional.adaptive_avg_pool2d(x, 1), t.nn.functional.adaptive_avg_pool2d(x, (None, 4)), t.nn.functional.adaptive_avg_pool1d(y, 3)), (IMAGE, SEQUENCE)),
        ("adaptive_max_pool", lambda t, x, y: (t.nn.functional.adaptive_max_pool2d(x, (3, 2)), t.nn.functional.adaptive_max_pool2d(x, (4, None)), t.nn.functional.adaptive_max_pool1d(y, 3)), (spread(2, 3, 7, 5), spread(2, 4, 7)), 1e-9, 1),
        ("adaptive_max_pool indices", lambda t, x, y: (t.nn.functional.adaptive_max_pool2d(x, (3, 2), return_indices=True), t.nn.functional.adaptive_max_pool1d(y, 3, return_indices=True)), (spread(2, 3, 7, 5), spread(2, 4, 7)), 1e-9, 1),
        ("adaptive pools of every size", lambda t, x: [getattr(t.nn.functional, f"adaptive_{k}_pool2d")(x, s) for k in ("avg", "max") for s in (1, (1, 1), 3, (3, 4), (2, None), (6, 8), (5, 3), (7, 9))], (spread(2, 3, 6, 8),), 1e-9, 1),
        ("lp_pool3d", lambda t, x: t.nn.functional.lp_pool3d(x, 2, (2, 1, 2)), (positive(2, 3, 4, 4, 5),), 1e-8),
        ("adaptive_max_pool3d positions", lambda t, x: t.nn.functional.adaptive_max_pool3d(x, (2, None, 3), return_indices=True), (normal(2, 3, 4, 3, 5),), 1e-8, 1),
        ("lp_pool", lambda t, x, y: (t.nn.functional.lp_pool2d(x, 2, 2), t.nn.functional.lp_pool2d(x, 3, (2, 3), stride=1), t.nn.functional.lp_pool1d(y, 2, 3, ceil_mode=True)), (positive(2, 4, 6, 5), positive(2, 4, 7)), 1e-8),
        ("unfold", lambda t, x: (t.nn.functional.unfold(x, 2), t.nn.functional.unfold(x, (3, 2), dilation=(1, 2), padding=1, stride=2), t.nn.functional.unfold(x[0], 3)), (IMAGE,)),
        ("fold", lambda t, x: (t.nn.functional.fold(x, (4, 5), 2), t.nn.functional.fold(x[:, :, :6], (5, 4), 2, stride=(2, 1))), (normal(2, 8, 12),)),
        ("fold dilated", lambda t, x: t.nn.functional.fold(x, (6, 5), (3, 2), (1, 2), 1, 2), (normal(2, 12, 9),)),
        ("pad", lambda t, x: (t.nn.functional.pad(x, (1, 2)), t.nn.functional.pad(x, (1, 0, -1, 2), value=3.0), t.nn.functional.pad(x, (0, 0, 0, 0, 1, 1))), (IMAGE,)),
        ("pad and cut", lambda t, x: [t.nn.functional.pad(x, p, value=v) for p in ((0, 3, 2, 1), (-1, 2), (1, -2, -1, 0), (1, 1, 1, 1, 1, 1)) for v in (None, 2.5)], (IMAGE,)),
        ("pad modes without a batch", lambda t, x: [t.nn.functional.pad(x, p, mode=m) for m in ("reflect", "replicate", "circular") for p in ((1, 2, 3, 1), (3, 0, 2, 4))], (IMAGE[0],)),
        ("pad modes", lambda t, x: [t.nn.functional.pad(x, (2, 1, 1, 3), mode=m) for m in ("reflect", "replicate", "circular")], (IMAGE,)),
        ("pad modes of sequences", lambda t, x: [t.nn.functional.pad(x, (2, 3), mode=m) for m in ("reflect", "replicate", "circular", "constant")], (SEQUENCE,)),
        ("pad integers", lambda t, x: (t.nn.functional.pad(x, (1, 1), value=7), t.nn.functional.pad(x > 2, (1, 0), value=True)), (whole(5, 3, 4),)),
        ("interpolate nearest", lambda t, x, y: (t.nn.functional.interpolate(x, (9, 3)), t.nn.functional.interpolate(x, scale_factor=2), t.nn.functional.interpolate(x, scale_factor=(1.5, 0.7), mode="nearest-exact"), t.nn.functional.interpolate(y, 11)), (IMAGE, SEQUENCE)),
        *((f"interpolate {list(a.shape)} {o}", lambda t, x, o=o: [t.nn.functional.interpolate(x, **o, mode=m) for m in ("nearest", "nearest-exact")], (a,), 1e-6) for o in SIZES for a in (SEQUENCE, normal(2, 3, 5, 7))),
        *((f"interpolate linear {list(a.shape)} {o}", lambda t, x, o=o: [t.nn.functional.interpolate(x, **o, mode="linear" if x.ndim == 3 else "bilinear", align_corners=c) for c in (False, True)], (a,), 1e-6) for o in (*SIZES, {"size": 1}, {"scale_factor": 1.5, "recompute_scale_factor": True}) for a in (SEQUENCE, normal(2, 3, 5, 7))),
        ("interpolate bilinear", lambda t, x: [t.nn.functional.interpolate(x, (9, 3), mode="bilinear", align_corners=a) for a in (False, True)] + [t.nn.functional.interpolate(x, scale_factor=1.7, mode="bilinear", align_corners=a) for a in (False, True)], (IMAGE,), 1e-6),
        ("interpolate linear", lambda t, x: [t.nn.functional.interpolate(x, 12, mode="linear", align_corners=a) for a in (False, True)], (SEQUENCE,), 1e-6),
        ("interpolate trilinear", lambda t, x: [t.nn.functional.interpolate(x, (3, 5, 2), mode="trilinear", align_corners=a) for a in (False, True)] + [t.nn.functional.interpolate(x, scale_factor=1.5, mode="trilinear")], (normal(2, 3, 2, 4, 3),), 1e-6),
        ("interpolate bicubic", lambda t, x: [t.nn.functional.interpolate(x, (9, 3), mode="bicubic", align_corners=a) for a in (False, True)] + [t.nn.functional.interpolate(x, scale_factor=1.7, mode="bicubic"), t.nn.functional.interpolate(x, (1, 4), mode="bicubic", align_corners=True)], (IMAGE,), 1e-6),
        ("conv_transpose3d", lambda t, x, w, b: (t.nn.functional.conv_transpose3d(x, w, b, 2, (1, 0, 1), 1), t.nn.functional.conv_transpose3d(x, w, dilation=(2, 1, 1))), (normal(2, 3, 2, 3, 2), normal(3, 2, 2, 2, 3), normal(2)), 1e-8, 1),
        ("interpolate recomputed", lambda t, x: t.nn.functional.interpolate(x, scale_factor=1.3, mode="bilinear", recompute_scale_factor=True), (IMAGE,), 1e-6),
        ("interpolate to one", lambda t, x: (t.nn.functional.interpolate(x, 1, mode="bilinear", align_corners=True), t.nn.functional.interpolate(x, (1, 2))), (IMAGE,), 1e-6),
        ("interpolate by areas", lambda t, x, y: (t.nn.functional.interpolate(x, (3, 2), mode="area"), t.nn.functional.interpolate(y, scale_factor=0.5, mode="area")), (IMAGE, SEQUENCE)),
        ("pad in circles of a part", lambda t, x: [t.nn.functional.pad(x, p, mode="circular") for p in ((-1, 2), (2, -1), (-1, -1))], (SEQUENCE,)),
        ("conv_transpose beyond strides", lambda t, x, w, b: [t.nn.functional.conv_transpose1d(x, w, b, s, p, e, dilation=3) for s, p, e in ((1, 0, 1), (1, 1, 2), (1, 2, 2), (2, 1, 2))], (normal(2, 3, 7), normal(3, 2, 2), normal(2))),
        ("upsample", lambda t, x: (t.nn.functional.upsample(x, scale_factor=2), t.nn.functional.upsample_nearest(x, (3, 3)), t.nn.functional.upsample_bilinear(x, scale_factor=2)), (IMAGE,), 1e-6),
        ("pixels", lambda t, x: (t.nn.functional.pixel_shuffle(x, 2), t.nn.functional.pixel_unshuffle(x[..., :4], 2), t.nn.functional.channel_shuffle(x, 2)), (IMAGE,)),
        ("affine_grid", lambda t, x: [t.nn.functional.affine_grid(x, s, align_corners=a) for s in ((2, 3, 4, 5), (2, 1, 1, 2)) for a in (False, True)], (normal(2, 2, 3),)),
        ("grid_sample", lambda t, x, g: [t.nn.functional.grid_sample(x, g, padding_mode=p, align_corners=a) for p in ("zeros", "border", "reflection") for a in (False, True)], (IMAGE, normal(2, 3, 4, 2) * 0.9), 1e-8, 1),
        ("grid_sample nearest", lambda t, x, g: [t.nn.functional.grid_sample(x, g, mode="nearest", padding_mode=p, align_corners=a) for p in ("zeros", "border", "reflection") for a in (False, True)], (IMAGE, normal(2, 3, 4, 2) * 0.9), 1e-8, 1),
        ("grid_sample nearest, of the grid alone", lambda t, x, g: [t.nn.functional.grid_sample(x.detach(), g, "nearest", p, False) for p in ("zeros", "border", "reflection")], (IMAGE, np.where(normal(2, 3, 4, 2) > 1.3, np.nan, normal(2, 3, 4, 2) * 2)), 1e-8, 1),
    ),
)  # fmt: skip
def test_images(case):
    check(case)


@pytest.mark.parametrize(
    "case",
    cases(
        ("batch_norm training", lambda t, x, m, v, w, b: (t.nn.functional.batch_norm(x, m.detach(), v.detach(), w, b, training=True, momentum=0.3), t.nn.functional.batch_norm(x, None, None, training=True), m.detach(), v.detach()), (IMAGE, normal(4), positive(4), normal(4, seed=2), normal(4, seed=3)), 1e-8),
        ("batch_norm evaluation", lambda t, x, m, v, w, b: (t.nn.functional.batch_norm(x, m.detach(), v.detach(), w, b, eps=0.1), t.nn.functional.batch_norm(x[:, :, 0, 0], m.detach(), v.detach())), (IMAGE, normal(4), positive(4), normal(4, seed=2), normal(4, seed=3)), 1e-8, 1),
        ("layer_norm", lambda t, x, w, b: (t.nn.functional.layer_norm(x, (7,), w, b), t.nn.functional.layer_norm(x, (4, 7)), t.nn.functional.layer_norm(x, [7], eps=0.1)), (SEQUENCE, normal(7), normal(7, seed=1)), 1e-8),
        ("group_norm", lambda t, x, w, b: (t.nn.functional.group_norm(x, 2, w, b), t.nn.functional.group_norm(x, 4), t.nn.functional.group_norm(x[:, :, 0], 1, eps=0.1), t.nn.functional.group_norm(x[:, :, 0, 0], 2, w, b)), (IMAGE, normal(4), normal(4, seed=1)), 1e-8),
        ("group_norm of nothing", lambda t, x: t.nn.functional.group_norm(x, 2), (normal(0, 4, 3),)),
        ("instance_norm", lambda t, x, m, v, w, b: (t.nn.functional.instance_norm(x), t.nn.functional.instance_norm(x, weight=w, bias=b), t.nn.functional.instance_norm(x, m.detach(), v.detach(), use_input_stats=False)), (IMAGE, normal(4), positive(4), normal(4, seed=2), normal(4, seed=3)), 1e-8, 1),
        ("rms_norm", lambda t, x, w: (t.nn.functional.rms_norm(x, (7,), w), t.nn.functional.rms_norm(x, (4, 7), eps=0.1)), (SEQUENCE, normal(7)), 1e-8),
        ("local_response_norm", lambda t, x, y: (t.nn.functional.local_response_norm(x, 3), t.nn.functional.local_response_norm(y, 2, 0.1, 0.5, 2.0)), (IMAGE, SEQUENCE), 1e-8),
        ("attention", lambda t, q, k, v: (t.nn.functional.scaled_dot_product_attention(q, k, v), t.nn.functional.scaled_dot_product_attention(q, k, v, scale=0.3)), (normal(2, 3, 4, 6), normal(2, 3, 5, 6, seed=1), normal(2, 3, 5, 7, seed=2)), 1e-8),
        ("attention without a batch", lambda t, q, k, v: [t.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=c, scale=s) for c in (False, True) for s in (None, 0.3)], (normal(4, 6), normal(5, 6, seed=1), normal(5, 7, seed=2)), 1e-8),
        ("attention causal", lambda t, q, k, v: t.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True), (normal(2, 4, 6), normal(2, 5, 6, seed=1), normal(2, 5, 7, seed=2)), 1e-8),
        ("attention masked", lambda t, q, k, v, m, b: (t.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=m), t.nn.functional.scaled_dot_product_attention(q, k, v, b)), (normal(2, 4, 6), normal(2, 5, 6, seed=1), normal(2, 5, 7, seed=2), normal(4, 5), whole(9, 4, 5) > 1), 1e-8),
        ("attention grouped", lambda t, q, k, v: t.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True), (normal(2, 4, 3, 6), normal(2, 2, 5, 6, seed=1), normal(2, 2, 5, 7, seed=2)), 1e-8, 1),
    ),
)  # fmt: skip
def test_normalisation_and_attention(case):
    check(case)


REDUCTIONS = ("mean", "sum", "none")
P, Q = positive(3, 5), positive(3, 5, seed=1)
LOGS = np.log(P / P.sum(1, keepdims=True))


def _each(name, **options):
    return lambda t, *x: [getattr(t.nn.functional, name)(*x, reduction=r, **options) for r in REDUCTIONS]


def _entropies(ignored=-100):
    """Cross entropies with and without weights and smoothing."""

    def losses(t, x, target, weight):
        options = [(v, s, r) for v in (None, weight.detach()) for s in (0.0, 0.2) for r in REDUCTIONS]
        return [
            t.nn.functional.cross_entropy(x, target, v, label_smoothing=s, reduction=r)
            if target.dtype is x.dtype
            else t.nn.functional.cross_entropy(x, target, v, ignore_index=ignored, label_smoothing=s, reduction=r)
            for v, s, r in options
        ]

    return losses


@pytest.mark.parametrize(
    "case",
    cases(
        ("mse", _each("mse_loss"), (X, normal(3, 6, seed=1))),
        ("l1", _each("l1_loss"), (X, normal(3, 6, seed=1))),
        ("smooth l1", _each("smooth_l1_loss", beta=0.7), (X, normal(3, 6, seed=1)), 1e-9, 1),
        ("smooth l1 without beta", _each("smooth_l1_loss", beta=0.0), (X, normal(3, 6, seed=1)), 1e-9, 1),
        *((f"{n} weighted", lambda t, x, y, w, n=n: [getattr(t.nn.functional, n)(x, y, weight=w.detach(), reduction=r) for r in REDUCTIONS], (X, normal(3, 6, seed=1), positive(3, 6)), 1e-9, 1) for n in ("mse_loss", "l1_loss", "huber_loss")),
        *((f"{n} without options", _each(n), (X, normal(3, 6, seed=1)), 1e-9, 1) for n in ("smooth_l1_loss", "huber_loss", "poisson_nll_loss")),
        *((f"{n} of triplets", _each(n, **o), [normal(4, 3, seed=i) for i in range(3)], 1e-6, 1) for n, o in (("triplet_margin_loss", {}), ("triplet_margin_with_distance_loss", {"margin": 0.2, "swap": True}))),
        ("huber", _each("huber_loss", delta=0.6), (X, normal(3, 6, seed=1)), 1e-9, 1),
        *((f"cross_entropy {list(s)}", _entropies(), (normal(*s), np.asarray(whole(5, *s[:-1] if len(s) < 3 else (s[0], *s[2:]))), positive(5))) for s in ((5,), (4, 5), (3, 5, 2), (2, 5, 3, 2))),
        *((f"cross_entropy ignoring {i}", _entropies(i), (normal(6, 5, 4), np.where(whole(5, 6, 4) == 3, i, whole(5, 6, 4)), positive(5))) for i in (-100, -1, 2)),
        *((f"cross_entropy of shares {list(s)}", _entropies(), (normal(*s), positive(*s), positive(5)), 1e-8) for s in ((5,), (4, 5), (2, 5, 3))),
        ("cross_entropy images", _each("cross_entropy", ignore_index=1), (IMAGE, whole(4, 2, 6, 5))),
        ("cross_entropy all ignored", lambda t, x, y: t.nn.functional.cross_entropy(x, y, ignore_index=1, reduction="sum"), (X, np.ones(3, np.int64))),
        ("nll", _each("nll_loss"), (LOGS, whole(5, 3))),
        ("nll of one", lambda t, x, y, w: [t.nn.functional.nll_loss(x, y, v, reduction=r) for v in (None, w.detach()) for r in REDUCTIONS], (LOGS[0], np.asarray(3), positive(5))),
        ("nll weights", lambda t, x, y, w: [t.nn.functional.nll_loss(x, y, w.detach(), ignore_index=0, reduction=r) for r in REDUCTIONS], (LOGS, whole(5, 3), positive(5))),
        ("nll images", lambda t, x, y: [t.nn.functional.nll_loss(x.contiguous(), y, reduction=r) for r in REDUCTIONS], (IMAGE, whole(4, 2, 6, 5))),
        ("bce", _each("binary_cross_entropy"), (P, Q), 1e-8, 1),
        ("bce at the ends", _each("binary_cross_entropy"), (np.array([0.0, 1.0, 0.0, 1.0]), np.array([0.0, 1.0, 1.0, 0.0])), 1e-8, 0),
        ("bce weights", lambda t, x, y, w: [t.nn.functional.binary_cross_entropy(x, y, w.detach(), reduction=r) for r in REDUCTIONS], (P, Q, positive(5)), 1e-8, 1),
        ("bce logits", _each("binary_cross_entropy_with_logits"), (X, positive(3, 6))),
        ("bce logits weights", lambda t, x, y, w, p: [t.nn.functional.binary_cross_entropy_with_logits(z, y, a, pos_weight=b, reduction=r) for z in (x, 50 * x) for a, b in ((None, None), (w.detach(), None), (None, p.detach()), (w.detach(), p.detach())) for r in REDUCTIONS], (X, positive(3, 6), positive(6), 4 * positive(6, seed=1)), 1e-8),
        ("kl", lambda t, x, y: [t.nn.functional.kl_div(x, y, reduction=r) for r in (*REDUCTIONS, "batchmean")], (LOGS, Q)),
        ("kl log target", lambda t, x, y: [t.nn.functional.kl_div(x, y, log_target=True, reduction=r) for r in (*REDUCTIONS, "batchmean")], (LOGS, np.log(Q))),
        ("kl of zeros", lambda t, x, y: t.nn.functional.kl_div(x, y.detach(), reduction="none"), (LOGS[:, :2], np.array([[0.0, 1.0]] * 3)), 1e-9, 1),
        ("gaussian nll", lambda t, x, y, v: [t.nn.functional.gaussian_nll_loss(x, y, v, full=f, reduction=r) for f in (False, True) for r in REDUCTIONS], (X, normal(3, 6, seed=1), positive(3, 6)), 1e-8),
        ("gaussian nll by row", lambda t, x, y, v: t.nn.functional.gaussian_nll_loss(x, y, v), (normal(3, 3), normal(3, 3, seed=1), positive(3))),
        ("hinge of other targets", lambda t, x, y: t.nn.functional.hinge_embedding_loss(x, y, 0.7), (normal(3, 3), whole(2, 3, 3, low=-1))),
        ("poisson nll", lambda t, x, y: [t.nn.functional.poisson_nll_loss(x, y.detach() * 5, log_input=i, full=f) for i in (True, False) for f in (True, False)], (P, Q), 1e-8),
        ("soft margin", lambda t, x, y: [t.nn.functional.soft_margin_loss(x, y.detach(), reduction=r) for r in REDUCTIONS], (normal(4), SIGNS), 1e-8, 1),
        ("hinge embedding", _each("hinge_embedding_loss", margin=0.7), (normal(4), SIGNS), 1e-9, 1),
        ("margin ranking", _each("margin_ranking_loss", margin=0.3), (normal(4), normal(4, seed=1), SIGNS), 1e-9, 1),
        ("cosine embedding", _each("cosine_embedding_loss", margin=0.1), (normal(4, 6), normal(4, 6, seed=1), SIGNS), 1e-8, 1),
        ("triplet", _each("triplet_margin_loss", margin=0.5, swap=True), (X, normal(3, 6, seed=1), normal(3, 6, seed=2)), 1e-8, 1),
        ("triplet p", _each("triplet_margin_loss", p=1), (X, normal(3, 6, seed=1), normal(3, 6, seed=2)), 1e-8, 1),
        ("triplet distance", lambda t, a, p, n: t.nn.functional.triplet_margin_with_distance_loss(a, p, n, distance_function=lambda x, y: ((x - y) ** 2).sum(-1), swap=True), (X, normal(3, 6, seed=1), normal(3, 6, seed=2)), 1e-8, 1),
        ("multi margin", lambda t, x, y, w: [t.nn.functional.multi_margin_loss(x, y, p=p, margin=0.7, weight=v, reduction=r) for p in (1, 2) for v in (None, w.detach()) for r in REDUCTIONS], (X, whole(6, 3), positive(6)), 1e-9, 1),
        ("multi margin of one", lambda t, x, y: t.nn.functional.multi_margin_loss(x, y), (normal(6), np.asarray(2)), 1e-9, 1),
        ("multilabel margin of one", _each("multilabel_margin_loss"), (normal(4), np.array([2, 0, -1, 3])), 1e-9, 1),
        ("multilabel margin", _each("multilabel_margin_loss"), (normal(2, 4), np.array([[3, 0, -1, 1], [2, -1, 0, 0]])), 1e-9, 1),
        ("multilabel soft margin", lambda t, x, y, w: [t.nn.functional.multilabel_soft_margin_loss(x, y.detach(), v, reduction=r) for v in (None, w.detach()) for r in REDUCTIONS], (X, positive(3, 6), positive(6)), 1e-8),
        ("old flags", lambda t, x, y: (t.nn.functional.mse_loss(x, y, size_average=False), t.nn.functional.mse_loss(x, y, reduce=False), t.nn.functional.l1_loss(x, y, size_average=True)), (X, normal(3, 6, seed=1))),
        ("broadcast", lambda t, x, y: t.nn.functional.mse_loss(x, y), (X, normal(6))),
        ("empty batch", lambda t, x, y: (t.nn.functional.mse_loss(x, y, reduction="sum"), t.nn.functional.l1_loss(x, y, reduction="none")), (normal(0, 3), normal(0, 3)), 1e-9, 1),
    ),
)  # fmt: skip
def test_losses(case):
    check(case)
