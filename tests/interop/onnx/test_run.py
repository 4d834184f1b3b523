"""Graphs that run node by node."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("onnx")
import graphc as gc
from graphc.interop.onnx.run import Runner
from graphc.interop.onnx.values import Value
from tests.interop.onnx.alike import check, module_of, onnx

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_operators_without_a_rule_are_all_named() -> None:
    with pytest.raises(gc.errors.UnsupportedError) as raised:
        module_of("(float[2] x) => (float y) { a = ai.onnx.ml.NoSuch(x) y = ai.onnx.ml.NorThis(a) }")
    assert "ai.onnx.ml.NoSuch (version 3), ai.onnx.ml.NorThis (version 3)" in str(raised.value)


def test_an_error_says_which_operator_it_is_of() -> None:
    module = module_of("(float[2, 3] x) => (float y) { s = Constant<value_ints=[4, 2]>() y = Reshape(x, s) }")
    with pytest.raises(gc.errors.ShapeError, match="where  Reshape"):
        module(X)


def test_an_operator_that_reads_values_of_a_trace_is_named() -> None:
    module = module_of("(float[2, 3] x, int64[2] s) => (float y) { y = Reshape(x, s) }")
    with pytest.raises(gc.errors.ValueNeededError) as raised:
        gc.trace(module, X, np.array([3, 2]))
    text = str(raised.value)
    assert text.startswith("Reshape: an input needs the values of a traced tensor, which has none: i64[2]")
    assert "where  Reshape Reshape_1" in text and "make the input an initializer" in text


def test_an_operator_of_an_inner_graph_that_reads_values_is_named() -> None:
    text = """(float[2, 3] x, int64[2] s, bool c) => (float y) { y = If(c) <
        then_branch = t () => (float a) { a = Reshape(x, s) }, else_branch = e () => (float b) { b = Reshape(x, s) }
    > }"""
    with pytest.raises(gc.errors.ValueNeededError) as raised:
        gc.trace(module_of(text), X, np.array([3, 2]), np.array(True))
    assert str(raised.value).startswith("Reshape: an input needs") and "where  Reshape" in str(raised.value)


def test_results_that_are_left_out_are_dropped() -> None:
    check("(float[6, 2] x) => (float y) { , y = Split<axis=0, num_outputs=2>(x) }", X.reshape(-1, 1).repeat(2, 1))


def test_values_that_no_later_operator_needs_are_let_go() -> None:
    module = module_of("(float[2, 3] x) => (float y) { a = Neg(x) b = Neg(a) y = Neg(b) }")
    step = Runner._applied
    held: list[int] = []

    class Watching(Runner):
        def _applied(self, node, entry, scope):  # type: ignore[no-untyped-def]
            held.append(len(scope))
            return step(self, node, entry, scope)

    runner = Watching(module.graph)
    runner.run({}, [Value.of(gc.tensor(X.tolist()))])
    assert held == [1, 1, 1]


def test_results_of_functions_of_arrays_are_known() -> None:
    module = module_of("(float[2, 3] x) => (int64 y) { s = Shape(x) i = Constant<value_int=1>() y = Gather(s, i) }")
    (found,) = module.run([X], {})
    assert found.is_known and found.number == 3


def test_long_arrays_are_computed_as_tensors() -> None:
    module = module_of(
        "() => (int64 y) { s = Constant<value_ints=[5000]>() o = ConstantOfShape(s) y = Concat<axis=0>(o) }"
    )
    (found,) = module.run([], {})
    assert not found.is_known and tuple(found.shape) == (5000,)


def test_functions_of_a_model_run_on_their_inputs_alone() -> None:
    text = """<ir_version: 10, opset_import: ["": 21, "own": 1]>
    g (float[2, 3] x) => (float[2, 3] y) { y = own.twice<k = 2.0>(x) }
    <domain: "own", opset_import: ["": 21]> twice <k> (a) => (b) {
        c = Constant<value_float: float = @k>() b = Mul(a, c)
    }
    """
    module = gc.from_onnx(onnx.parser.parse_model(text))
    np.testing.assert_array_equal(module(X).numpy(), 2 * X)
    np.testing.assert_array_equal(gc.compile(module)(X).numpy(), 2 * X)


def test_graphs_inside_read_values_from_around_them() -> None:
    text = """(float[2, 3] x, bool c) => (float y) {
        z = Neg(x)
        y = If(c) <
            then_branch = t () => (float a) { a = If(c) <
                then_branch = u () => (float b) { b = Add(z, x) }, else_branch = v () => (float d) { d = Identity(x) }
            > },
            else_branch = e () => (float f) { f = Identity(z) }
        >
    }"""
    for chosen in (True, False):
        check(text, X, np.array(chosen), expected=[X * 0 if chosen else -X])


def test_an_operator_remembers_from_call_to_call() -> None:
    module = module_of("() => (float y) { y = RandomUniform<shape=[3], seed=1.0>() }")
    assert module().tolist() != module().tolist()


def test_a_fault_in_a_rule_is_not_blamed_on_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    module = module_of("(float[2, 3] x) => (float y) { y = Neg(x) }")

    def rule(x: gc.Tensor) -> gc.Tensor:
        return x.negated_by_mistake()

    runner = Runner(module.graph)
    ((node, entry),) = runner._steps
    assert entry is not None
    runner._steps[0] = (node, replace(entry, rule=rule))
    with pytest.raises(AttributeError, match="negated_by_mistake"):
        runner.run({}, [Value.of(gc.tensor(X.tolist()))])


LENGTHS = {
    "Range": "(int64 n) => (int64 y) { z = Constant<value_int=0>() o = Constant<value_int=1>() y = Range(z, n, o) }",
    "ConstantOfShape": "(int64[2] n) => (float y) { a = ConstantOfShape(n) y = Exp(a) }",
    "Expand": "(int64[2] n) => (float y) { c = Constant<value_float=3.0>() a = Expand(c, n) y = Exp(a) }",
}


@pytest.mark.parametrize("operator", LENGTHS)
def test_numbers_of_calls_are_sizes_of_compiled_code(operator: str) -> None:
    module = module_of(LENGTHS[operator])
    program = gc.compile(module)
    for n in (3, 8, 1):
        number = np.array(n) if operator == "Range" else np.array([n, 2 * n])
        np.testing.assert_array_equal(program(number).numpy(), module(number).numpy())
    assert len(program.variants[0].paths) == 1
    with pytest.raises(gc.errors.ShapeError, match=f"an input of {operator}, a number of 0 or more, is a size of -1"):
        program(np.array(-1) if operator == "Range" else np.array([2, -1]))


def test_a_trace_that_fails_for_the_expected_size_has_that_of_the_call() -> None:
    module = module_of("(float[9] x, int64[1] k) => (float y) { e = Exp(x) y, i = TopK(e, k) }")
    program, x = gc.compile(module), np.arange(9, dtype=np.float32)
    for k in (3, 1, 9):
        np.testing.assert_allclose(program(x, np.array([k])).numpy(), np.exp(x[::-1][:k]), rtol=1e-6)


@pytest.mark.parametrize(
    ("domain", "op", "remedy"),
    [
        ("com.microsoft.nchwc", "ReorderInput", "up to ORT_ENABLE_EXTENDED only"),
        ("com.microsoft", "QOrderedMatMul", "quantize_static"),
        ("com.microsoft", "QuantizeWithOrder", "quantize_static"),
        ("com.microsoft", "NoSuchOperator", "docs/onnx_ops.md"),
    ],
)
def test_operators_without_a_rule_have_a_remedy(domain: str, op: str, remedy: str):
    ports = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2, 2]) for name in ("x", "y")]
    graph = onnx.helper.make_graph([onnx.helper.make_node(op, ["x"], ["y"], domain=domain)], "g", ports[:1], ports[1:])
    imports = [onnx.helper.make_opsetid("", 21), onnx.helper.make_opsetid(domain, 1)]
    with pytest.raises(gc.errors.UnsupportedError, match=f"no rule for these operators: {domain}.{op}") as raised:
        gc.from_onnx(onnx.helper.make_model(graph, opset_imports=imports, ir_version=10))
    assert remedy in str(raised.value)
