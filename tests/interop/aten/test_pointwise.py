"""Rules of what is computed element by element."""

from __future__ import annotations

import pytest

from tests.interop.aten.compare import Sample, check, torch

pytest.importorskip("torch._inductor.inductor_prims")

X, PLACES = torch.linspace(-2, 2, 24).reshape(2, 3, 4), torch.tensor([[0, 2, 1], [1, 0, 2]])
SAMPLES: list[Sample] = [
    *[(name, X) for name in ("isfinite", "positive", "square", "absolute", "relu6", "selu", "log_sigmoid")],
    ("fmod.Scalar", X, 0.7),
    ("prims.fma.default", X, X + 1, X[0]),
    *[(f"bitwise_{name}.Scalar", PLACES, 3) for name in ("and", "or", "xor")],
    *[(f"__{name}__.Scalar", PLACES, 3) for name in ("and", "or", "xor")],
    *[(f"__{name}__.Tensor", PLACES, PLACES.flip(0)) for name in ("and", "or", "xor")],
    *[(f"bitwise_{name}_shift.Tensor_Scalar", PLACES, 1) for name in ("left", "right")],
    ("copysign.Scalar", X, -2.0),
    ("div.Scalar_mode", X, 0.3, {"rounding_mode": "floor"}),
    ("div.Scalar_mode", PLACES, 2, {"rounding_mode": "trunc"}),
    ("prelu", X, torch.tensor([0.1, 0.2, 0.3])),
    ("clamp_max", X, 0.5),
    ("true_divide.Scalar", PLACES, 2),
    ("floor_divide.Scalar", X, 0.7),
    ("where.ScalarOther", X > 0, X, 3.0),
    ("where.ScalarSelf", X > 0, 2, X),
    ("where.Scalar", X > 0, 2.5, -1.0),
    ("fill.Tensor", PLACES, torch.tensor(7)),
    ("copy", X, PLACES[:, :, None]),
    ("softmax.int", X, 1),
    ("softmax.int", X, 1, torch.float64),
    ("special_softmax", X, -1),
    ("log_softmax.int", X, 2),
    ("special_log_softmax", X, 0, {"dtype": torch.float64}),
    ("true_divide.Tensor", PLACES, X[0, 0, :3].clone()),
    ("gelu", X, {"approximate": "tanh"}),
    ("_softmax", X, -1, False),
    ("pow.Scalar", 2, X),
    ("__and__.Tensor", PLACES, PLACES + 1),
    ("__or__.Scalar", PLACES, 1),
    ("__xor__.Tensor", X > 0, X > 1),
]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample[0])
def test_an_operator_gives_what_pytorch_gives(sample: Sample):
    check(sample)


EAGER: list[Sample] = [("where", X > 0)]


@pytest.mark.parametrize("sample", EAGER, ids=lambda sample: sample[0])
def test_an_operator_whose_result_has_a_size_that_depends_on_values(sample: Sample):
    check(sample, compiled=False)
