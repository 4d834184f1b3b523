"""check_op: right ops pass, and of each kind of mistake the error says what differs and where."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc.errors import ArgumentError, DTypeError, GradientError, GraphcError, ShapeError, VerifyError
from graphc.ir.op import Attr, ErrorSample, Halo, Sample, Trait
from graphc.ir.types import TensorType
from graphc.ops.effects import state
from graphc.ops.pointwise import elementwise as e
from graphc.ops.pointwise.elementwise import ELEMENTWISE, lowered, mul
from graphc.ops.rules import elementwise

pytestmark = pytest.mark.usefixtures("own_ops")

X = np.linspace(-2, 2, 6).reshape(2, 3)
WIDE = TensorType(gc.float32, (2, 3))


def square(**rules: Any) -> Any:
    """x * x, with some rules replaced."""
    given = {
        "reference": lambda x: x * x,
        "vjp": (lambda g, result, x: mul(g, mul(x, 2.0)),),
        "lower": lowered(lambda nest, x: nest.op("mul", x, x)),
        "traits": ELEMENTWISE,
    }
    return gc.define_op("my_square", "x^2.", "x", elementwise("my_square", "f"), **(given | rules))


def test_a_right_op_passes_on_its_own_samples_and_on_those_given():
    f = square(
        samples=lambda: [Sample((X,)), Sample((X.astype(np.float32),), differentiable=False)],
        error_samples=(ErrorSample((WIDE, WIDE), "takes 1 operands, got 2", error=ArgumentError),),
    )
    report = gc.check_op(f, (X[0],), ([0.5, 1.5],))
    assert (report.samples, report.differentiated, report.refused) == (4, 3, 1)
    assert str(report) == "my_square: 4 samples, 3 with derivatives, 1 errors"


def test_ops_of_graphc_pass():
    assert gc.check_op(e.div).samples > 1
    assert gc.check_op(state.state_write).samples > 1


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        (lambda x, dtype: (2 * x).astype(np.float32), "the result differs by up to 2"),
        (lambda x, dtype: np.round(x).astype(np.float32), "the result differs by up to 0.4"),
    ],
)
def test_a_conversion_that_changes_elements_is_none(reference: Any, message: str):
    f = gc.define_op(
        "my_conversion",
        "x as f32.",
        "x",
        lambda x, dtype: TensorType(dtype, x.shape),
        attrs=(Attr("dtype", "dtype"),),
        reference=reference,
        lower=e.cast.op.lower,
        traits=ELEMENTWISE | Trait.CONVERSION,
    )
    with pytest.raises(VerifyError, match=f"Trait.CONVERSION does not hold: {message}"):
        gc.check_op(f, Sample((X,), {"dtype": gc.float32}))


@pytest.mark.parametrize(
    ("rules", "kind", "message"),
    [
        ({"reference": lambda x: x * x * 1.01}, VerifyError, r"the lowered program differs .* by up to 0.04"),
        ({"reference": lambda x: x}, VerifyError, "memory of an operand, but the op is not a VIEW"),
        ({"reference": lambda x: (x * x).astype(np.float32)}, VerifyError, r"gives f32\[2,3\], the type rule f64"),
        ({"reference": lambda x: np.multiply(x, x, out=x)}, VerifyError, "the reference raises ValueError"),
        ({"vjp": (lambda g, result, x: mul(g, x),)}, GradientError, "first derivative: the difference quotient"),
        ({"vjp": ()}, GradientError, "0 gradient rules for 1 operands"),
        ({"traits": ELEMENTWISE | Trait.IDENTITY}, VerifyError, "Trait.IDENTITY does not hold"),
        ({"traits": ELEMENTWISE | Trait.CONVERSION}, VerifyError, "CONVERSION does not hold: no attribute 'dtype'"),
        ({"halo": lambda attrs: Halo((1, 0), (0, 0), 0)}, VerifyError, r"halo does not hold: it says \[3,3\]"),
        ({"permutes": lambda attrs: (0, 1)}, VerifyError, "permutes does not hold: the result differs by up to 6"),
        ({"parts": lambda types, attrs: ((0, 0),)}, VerifyError, "parts does not hold"),
    ],
)
def test_what_is_wrong_is_named_with_the_sample(rules: dict[str, Any], kind: type[GraphcError], message: str):
    with pytest.raises(kind, match=f"(?s)my_square, sample 0: .*{message}.*where  my_square") as caught:
        gc.check_op(square(**rules), (X,))
    assert len(str(caught.value).splitlines()) <= 4


def test_a_wrong_second_derivative_is_named():
    def rule(g: Any, result: Any, x: Any) -> Any:
        return mul(g, state.stop_gradient(mul(x, 2.0)))

    with pytest.raises(GradientError, match="my_square, sample 0: second derivative"):
        gc.check_op(square(vjp=(rule,)), (X,))


def test_an_op_without_f64_says_how_to_leave_derivatives_out():
    def infer(x: Any) -> Any:
        if x.dtype is not gc.float32:
            raise DTypeError(f"my_narrow takes f32, got {x.dtype.name}")
        return x

    f = gc.define_op(
        "my_narrow",
        "-x.",
        "x",
        infer,
        reference=lambda x: -x,
        vjp=(lambda g, result, x: e.neg(g),),
        lower=lowered(lambda nest, x: nest.op("neg", x)),
        traits=ELEMENTWISE,
    )
    x = X.astype(np.float32)
    with pytest.raises(DTypeError, match="finite differences need f64"):
        gc.check_op(f, (x,))
    assert gc.check_op(f, Sample((x,), differentiable=False)).differentiated == 0


def test_error_samples_must_raise_what_they_name():
    with pytest.raises(VerifyError, match="ShapeError was expected, but nothing was raised"):
        gc.check_op(square(error_samples=(ErrorSample((WIDE,), "some", error=ShapeError),)), (X,))
    with pytest.raises(VerifyError, match=r"an error says .*, not 'some'"):
        gc.check_op(square(error_samples=(ErrorSample((WIDE, WIDE), "some"),)), (X,))


def test_attributes_and_what_is_nothing_to_check():
    power = gc.define_op(
        "my_power",
        "x to an integer power.",
        "x",
        lambda x, n: x,
        attrs=(Attr("n", "int", "the power"),),
        reference=lambda x, n: x**n,
        decompose=lambda x, n: mul(x, 1.0) if n == 1 else mul(x, power(x, n=n - 1)),
        vjp=(lambda g, result, x, n: mul(g, mul(power(x, n=n - 1), float(n))),),
    )
    assert gc.check_op(power, Sample((X,), {"n": 4})).differentiated == 1
    with pytest.raises(ArgumentError, match="my_power has no samples"):
        gc.check_op(power)
    with pytest.raises(ArgumentError, match="is not an op"):
        gc.check_op(lambda x: x, (X,))  # type: ignore[arg-type]
