"""Ops of a user: eager, traced, compiled, differentiated, mapped, stored; defined again; never in another's place."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc.compiler import compile as compiling
from graphc.errors import ArgumentError, ArtifactError, PassError, ShapeError, VerifyError
from graphc.ir.kernel.statements import Bound
from graphc.ir.op import REGISTRY, Attr, Halo, Trait
from graphc.ir.types import TensorType
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise.elementwise import ELEMENTWISE, lowered, mul
from graphc.ops.rules import elementwise
from graphc.passes.pipeline import optimize

pytestmark = pytest.mark.usefixtures("own_ops")

X = np.linspace(-2, 2, 7, dtype=np.float32)


def cubic(name: str = "my_cubic", factor: float = 1.0) -> Any:
    """factor * x^3 with every rule."""

    def lower(nest: Any, x: Any) -> Any:
        return nest.op("mul", nest.op("mul", nest.op("mul", x, x), x), nest.const(factor, x.dtype))

    return gc.define_op(
        name,
        "The cube of x.",
        "x",
        elementwise(name, "f"),
        reference=lambda x: (x * x * x * factor).astype(x.dtype),
        vjp=(lambda g, result, x: mul(g, mul(mul(x, x), 3.0 * factor)),),
        lower=lowered(lower),
        traits=ELEMENTWISE,
    )


def test_it_computes_eagerly_and_compiled_and_has_derivatives_of_both_modes():
    f = cubic()
    x = gc.tensor(X, requires_grad=True)
    np.testing.assert_allclose(f(x).tolist(), X**3, rtol=1e-6)
    compiled = gc.compile(lambda t: f(t) + 1.0)
    y = compiled(x)
    y.sum().backward()
    np.testing.assert_allclose(y.tolist(), X**3 + 1, rtol=1e-6)
    np.testing.assert_allclose(x.grad.tolist(), 3 * X**2, rtol=1e-6)  # type: ignore[union-attr]
    tangent = gc.func.jvp(f, (gc.tensor(X),), (gc.ones(7),))[1]
    np.testing.assert_allclose(tangent.tolist(), 3 * X**2, rtol=1e-6)
    np.testing.assert_allclose(gc.vmap(f)(gc.tensor(X)).tolist(), X**3, rtol=1e-6)
    assert [n.op.name for n in gc.trace(f, gc.tensor(X)).nodes()] == ["my_cubic"]


def test_it_fuses_with_its_neighbours():
    f = cubic()
    graph = gc.trace(lambda t: gc.exp(f(t) + 1.0), gc.tensor(X))
    assert len(compiling.compile_graph(graph).stages.lowered.kernels) == 1


def test_one_by_other_ops_with_an_attribute():
    power = gc.define_op(
        "my_power",
        "x to an integer power.",
        "x",
        lambda x, n: x,
        attrs=(Attr("n", "int", "the power"),),
        reference=lambda x, n: x**n,
        decompose=lambda x, n: x if n == 1 else mul(x, power(x, n=n - 1)),
        vjp=(lambda g, result, x, n: mul(g, mul(power(x, n=n - 1), float(n))),),
    )
    x = gc.tensor(X, requires_grad=True)
    y = gc.compile(lambda t: power(t, n=4))(x)
    y.sum().backward()
    np.testing.assert_allclose(y.tolist(), X**4, rtol=1e-5)
    np.testing.assert_allclose(x.grad.tolist(), 4 * X**3, rtol=1e-5)  # type: ignore[union-attr]


def test_a_module_that_runs_again_replaces_its_own():
    x = gc.tensor(X)
    first = cubic()
    compiled, graph = gc.compile(first), gc.trace(first, x)
    np.testing.assert_allclose(compiled(x).tolist(), X**3, rtol=1e-6)
    second = cubic(factor=2.0)
    np.testing.assert_allclose(gc.compile(second)(x).tolist(), 2 * X**3, rtol=1e-6)
    np.testing.assert_allclose(compiled(x).tolist(), X**3, rtol=1e-6)
    with pytest.raises(VerifyError, match="op my_cubic was defined again since the graph was made"):
        gc.compile(graph)


def test_the_name_of_another_is_refused():
    with pytest.raises(VerifyError, match="op tanh is defined twice"):
        cubic("tanh")
    cubic()
    code = "gc.define_op('my_cubic', '', 'x', rule, reference=abs, decompose=abs)"
    with pytest.raises(VerifyError, match=r"op my_cubic is defined twice, the first time in tests.ops.test_define_op"):
        exec(code, {"gc": gc, "rule": elementwise("my_cubic", "f"), "__name__": "elsewhere"})


@pytest.mark.parametrize(
    ("name", "rules", "message"),
    [
        ("my op", {}, "'my op' is not a valid name"),
        ("my_op", {}, "my_op has no reference"),
        ("my_op", {"reference": np.tanh}, "none of lower, lower_nest, decompose"),
    ],
)
def test_what_could_not_run_is_refused(name: str, rules: dict[str, Any], message: str):
    with pytest.raises(ArgumentError, match=message):
        gc.define_op(name, "", "x", elementwise(name, "f"), **rules)


def test_its_type_rule_is_asked():
    def same_square(x: Any) -> Any:
        if x.rank != 2 or x.shape[0] != x.shape[1]:
            raise ShapeError(f"my_square takes a square, got {x}")
        return x

    square = gc.define_op("my_square", "", "x", same_square, reference=np.copy, decompose=lambda x: mul(x, 1.0))
    with pytest.raises(ShapeError, match=r"takes a square, got f32\[7\]"):
        square(gc.tensor(X))
    with pytest.raises(ShapeError, match=r"takes a square, got f32\[7\]"):
        gc.compile(square)(gc.tensor(X))


def test_a_model_file_needs_the_op_and_says_so(tmp_path: Path):
    f = cubic()
    gc.export(lambda t: f(t), gc.tensor(X), path=tmp_path / "net.gcm")
    np.testing.assert_allclose(gc.load(tmp_path / "net.gcm")(X), X**3, rtol=1e-6)
    del REGISTRY["my_cubic"]
    with pytest.raises(ArtifactError, match=r"uses my_cubic, which this graphc does not know\n.*graphc.define_op"):
        gc.load(tmp_path / "net.gcm")


def test_code_in_the_cache_is_that_of_the_rules_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GRAPHC_CACHE", "on")
    monkeypatch.setenv("GRAPHC_CACHE_DIR", str(tmp_path / "cache"))
    f = cubic()
    gc.export(lambda t: f(t), gc.tensor(X), path=tmp_path / "net.gcm")
    built = []
    build = compiling.compile_stages
    monkeypatch.setattr(compiling, "compile_stages", lambda stages: built.append(stages) or build(stages))
    for factor, count in ((1.0, 1), (1.0, 1), (2.0, 2), (1.0, 2)):
        g = cubic(factor=factor)
        np.testing.assert_allclose(gc.compile(lambda t, g=g: g(t))(gc.tensor(X)).tolist(), factor * X**3, rtol=1e-6)
        np.testing.assert_allclose(gc.load(tmp_path / "net.gcm")(X), factor * X**3, rtol=1e-6)
        assert len(built) == count


def test_one_that_states_to_be_an_identity_or_a_halo_is_treated_as_one():
    def lower(c: Any, index: Any, x: Any) -> Any:
        return c.load(x, [i - 1 for i in index], tuple(Bound(i - 1, 0, n) for i, n in zip(index, x.shape, strict=True)))

    mark = gc.define_op(
        "my_mark",
        "x.",
        "x",
        lambda x: x,
        reference=lambda x: x,
        lower=lambda c, index, x: c.load(x, index),
        traits=Trait.PURE | Trait.VIEW | Trait.IDENTITY,
    )
    ring = gc.define_op(
        "my_ring",
        "x with zeros around it.",
        "x",
        lambda x: TensorType(x.dtype, tuple(n + 2 for n in x.shape)),
        reference=lambda x: np.pad(x, 1),
        lower=lower,
        traits=Trait.PURE | Trait.VIEW,
        halo=lambda attrs: Halo((1, 1), (1, 1), 0),
    )
    x = gc.arange(20.0).reshape(4, 5)
    graph = gc.trace(lambda t: ring(mark(t @ t.T)), x)
    stages = compiling.compile_graph(graph).stages
    assert [n.op.name for n in stages.optimized.nodes()] == ["matmul", "my_ring"]
    assert len(stages.lowered.kernels) == 1, "the product writes into what the ring lies around"
    compiled = gc.compile(lambda t: ring(mark(t @ t.T)))
    np.testing.assert_array_equal(compiled(x).numpy(), np.pad(x.numpy() @ x.numpy().T, 1))


def test_canonical_forms_of_elementwise_ops_are_those_of_ones_own_too():
    def mean(nest: Any, x: Any, y: Any) -> Any:
        return nest.op("mul", nest.op("add", x, y), nest.const(0.5, x.dtype))

    middle = gc.define_op(
        "my_middle",
        "(x + y) / 2.",
        "x y",
        elementwise("my_middle", "f"),
        reference=lambda x, y: (x + y) * x.dtype.type(0.5),
        lower=lowered(mean),
        traits=ELEMENTWISE | Trait.COMMUTATIVE,
    )
    row = gc.tensor(X[:3])
    graph = gc.trace(lambda t: (middle(t, row.expand(4, 3)), middle(row, t)), gc.ones(4, 3))
    optimized = optimize(graph)
    assert "broadcast_to" in [n.op.name for n in graph.nodes()]
    (node,) = [n for n in optimized.nodes() if n.op.name == "my_middle"]
    assert [v.shape for v in node.operands] == [(4, 3), (3,)], "no broadcast, the constant last, both the same"


def test_an_elementwise_op_takes_operands_that_broadcast():
    def same(x: Any, y: Any) -> Any:
        if x.shape != y.shape:
            raise ShapeError(f"my_strict: {x.shape} and {y.shape}")
        return x

    rules = {"reference": lambda x, y: x + y, "lower": lowered(lambda nest, x, y: nest.op("add", x, y))}
    with pytest.raises(VerifyError, match=r"my_strict: an elementwise op takes \[2,3\] and \[3\]"):
        gc.define_op("my_strict", "x + y.", "x y", same, **rules, traits=ELEMENTWISE)
    with pytest.raises(VerifyError, match=r"of \[2,3\] and \[3\] is \[2,3\], not f32\[3\]"):
        gc.define_op("my_last", "x + y.", "x y", lambda x, y: y, **rules, traits=ELEMENTWISE)


@pytest.mark.parametrize(
    ("rule", "used", "remedy"),
    [
        (lambda x: x.abs(), "x.abs", "from graphc.ops.pointwise.elementwise import abs, then abs(x)"),
        (lambda x: 1.0 + x, "the operator +", "from graphc.ops.pointwise.elementwise import add, then add(x, y)"),
        (lambda x: x**2, "the operator **", "from graphc.ops.pointwise.math import pow, then pow(x, y)"),
        (lambda x: -x, "the operator -", "from graphc.ops.pointwise.elementwise import neg, then neg(x)"),
        (
            lambda x: x > 0,
            "the operator >",
            "from graphc.ops.pointwise.elementwise import gt, then gt(x, y)",
        ),
        (lambda x: x.view_as(x), "x.view_as", "docs/ops.md lists them"),
    ],
)
def test_rules_with_methods_of_tensors_name_the_op(rule: Any, used: str, remedy: str):
    def defined(**rules: Any) -> Any:
        rules = {"reference": np.abs, "decompose": ew.abs} | rules
        return gc.define_op("of_tensors", "Test.", "x", elementwise("of_tensors", "f"), **rules)

    message = re.escape(f"of_tensors uses {used}, which values of graphs do not have")
    with pytest.raises(PassError, match=f"rule decompose of {message}") as caught:
        gc.check_op(defined(decompose=rule), ([1.0, 2.0],))
    assert caught.value.remedy == f"write it in ops: {remedy}"
    with pytest.raises(ArgumentError, match=f"rule vjp of {message}"):
        gc.check_op(defined(vjp=(lambda g, result, x: mul(g, rule(x)),)), ([1.0, 2.0],))


def test_other_errors_of_rules_stay_what_they_are():
    op = gc.define_op(
        "with_a_bug", "Test.", "x", elementwise("with_a_bug", "f"), reference=np.abs, decompose=lambda x: len(None)
    )
    with pytest.raises(TypeError, match="NoneType"):
        gc.compile(op)(gc.ones(2))
