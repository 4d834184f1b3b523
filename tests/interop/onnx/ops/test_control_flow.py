"""Operators that run graphs: branches, loops and scans, as Python and as parts of compiled programs."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx")
import graphc as gc
from tests.interop.onnx.alike import check, module_of

X = np.arange(12, dtype=np.float32).reshape(3, 4)
IF = """(float[N, 4] x, bool c) => (float[N, 4] y) {
    z = Neg(x)
    y = If(c) <
        then_branch = t () => (float[N, 4] a) { a = Mul(x, z) },
        else_branch = e () => (float[N, 4] b) { k = Constant<value_float=2.0>() b = Add(x, k) }
    >
}"""


@pytest.mark.parametrize("chosen", [True, False])
def test_a_value_chooses_a_branch(chosen: bool) -> None:
    check(IF, X, np.array(chosen), expected=[-X * X if chosen else X + 2])


def test_one_program_holds_both_branches() -> None:
    program = gc.compile(module_of(IF.replace("[N", "[3")))
    for chosen in (True, False, True):
        np.testing.assert_array_equal(program(X, np.array(chosen)).numpy(), -X * X if chosen else X + 2)


def test_gradients_go_through_the_branch_that_is_taken() -> None:
    x = gc.tensor(X.tolist(), requires_grad=True)
    module_of(IF)(x, gc.tensor(True)).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), -2 * X)


def test_a_known_condition_leaves_one_branch_whose_shape_may_differ() -> None:
    text = """(float[N, 4] x) => (float y) {
        c = Constant<value = bool {0}>()
        y = If(c) <
            then_branch = t () => (float[N, 4] a) { a = Identity(x) },
            else_branch = e () => (float[4, N] b) { b = Transpose(x) }
        >
    }"""
    check(text, X, expected=[X.T])


UNLIKE = """(float[N, M] x, int64 rate) => (float[N, K] y) {
    high = Constant<value_int=16000>() c = Equal(rate, high)
    y = If(c) <
        then_branch = t () => (float[N, 2] a) { w = ConstantOfShape<value = float[1] {1.0}>(s) a = MatMul(x, w) },
        else_branch = e () => (float[N, 3] b) { v = ConstantOfShape<value = float[1] {2.0}>(r) b = MatMul(x, v) }
    >
}""".replace("c = Eq", "s = Constant<value_ints=[6, 2]>() r = Constant<value_ints=[3, 3]>() c = Eq")
RATES = (
    (16000, np.ones((1, 6), np.float32), np.full((1, 2), 6)),
    (8000, np.ones((1, 3), np.float32), np.full((1, 3), 6)),
)


@pytest.mark.parametrize("named", [False, True])
def test_a_rate_chooses_the_only_branch_that_fits_its_shapes(named: bool) -> None:
    module = module_of(UNLIKE)
    program = gc.compile(module, dims=module.dims if named else None)
    for rate, x, expected in (*RATES, *RATES):
        np.testing.assert_array_equal(program(x, np.array(rate)).numpy(), expected)


def test_a_rate_that_is_a_constant_of_the_trace_leaves_one_branch() -> None:
    module = module_of(UNLIKE)
    for rate, x, expected in RATES:
        np.testing.assert_array_equal(gc.compile(lambda v, r=rate: module(v, r))(x).numpy(), expected)


def test_a_file_has_the_branch_of_its_example_and_refuses_others(tmp_path: Path) -> None:
    rate, x, expected = RATES[1]
    gc.export(module_of(UNLIKE), x, np.array(rate), path=tmp_path / "net.gcm")
    model = gc.load(tmp_path / "net.gcm")
    np.testing.assert_array_equal(model(x, np.array(rate)), expected)
    with pytest.raises(gc.errors.ConditionError, match="the condition of If was False for the example arguments"):
        model(x, np.array(16000))


def test_branches_of_different_shapes_are_a_program_each() -> None:
    text = IF.replace("[N, 4] y", " y").replace("[N", "[3").replace("b = Add(x, k)", "b = ReduceSum<keepdims=0>(k)")
    text = text.replace("bool c)", "float[1] p)").replace(
        "z = Neg(x)", "o = Constant<value_float=0.0>() c = Less(o, p) z = Neg(x)"
    )
    program = gc.compile(module_of(text))
    for p in (1, -1, 2, -2):
        expected = -X * X if p > 0 else 2
        np.testing.assert_array_equal(program(X, np.float32([p])).numpy(), expected)
    assert len(program.programs) == 3  # the condition, and each branch


def _loop(count: str, body: str, results: str = "float[N, 4] y", names: str = "y") -> str:
    return f"""(float[N, 4] x) => ({results}) {{
        {count} c = Constant<value = bool {{1}}>()
        {names} = Loop(n, c, x) <body = b (int64 i, bool go, float[N, 4] v) => {body}>
    }}"""


@pytest.mark.parametrize("steps", [0, 1, 5, 1500])
def test_a_loop_of_known_length_stacks_what_its_steps_give(steps: int) -> None:
    body = """(bool on, float[N, 4] w, float[N, 4] q) {
        on = Identity(go) k = Constant<value_float=0.01>() s = Cast<to=1>(i) d = Mul(s, k) w = Add(v, d) q = Neg(w)
    }"""
    text = _loop(f"n = Constant<value_int={steps}>()", body, "float[N, 4] y, float[K, N, 4] s", "y, s")
    states = [X]
    for i in range(steps):
        states.append(states[-1] + np.float32(0.01) * np.float32(i))
    stacked = np.stack([-s for s in states[1:]]) if steps else np.zeros((0, 0, 4), np.float32)
    check(text, X, expected=[states[-1], stacked])


WHILE = """(bool on, float[N, 4] w) {
    k = Constant<value_float=1.5>() w = Add(v, k)
    flat = Constant<value_ints=[-1]>() r = Reshape(w, flat) j = Constant<value_int=3>() m = Gather(r, j)
    most = Constant<value_float=100.0>() on = Less(m, most)
}"""


@pytest.mark.parametrize("count", ["n = Constant<value_int=1000>()", "n = Constant<value_int=40>()"])
def test_a_loop_ends_when_its_condition_is_false(count: str) -> None:
    expected = X
    for _ in range(int(count.partition("=")[2].split("=")[1].strip(">()"))):
        expected = expected + np.float32(1.5)
        if not expected.reshape(-1)[3] < 100:
            break
    check(_loop(count, WHILE), X, expected=[expected])


def test_the_number_of_steps_may_be_an_input() -> None:
    text = """(float[N, 4] x, int64 n) => (float[N, 4] y) {
        y = Loop(n, , x) <body = b (int64 i, bool go, float[N, 4] v) => (bool on, float[N, 4] w) {
            on = Identity(go) w = Add(v, x)
        }>
    }"""
    check(text, X, np.array(6), expected=[X * 7])


def test_a_loop_has_as_many_steps_as_a_named_dimension_says() -> None:
    text = """(float[N, 4] x) => (float y, float[N, 4] s) {
        all = Shape(x) z = Constant<value_int=0>() n = Gather(all, z) first = Gather(x, z)
        y, s = Loop(n, , first) <body = b (int64 i, bool go, float[4] v) => (bool on, float[4] w, float[4] q) {
            on = Identity(go) row = Gather(x, i) w = Add(v, row) q = Mul(w, row)
        }>
    }"""
    module, steps = module_of(text), X[0] + X.cumsum(0)
    check(text, X, expected=[steps[-1], steps * X])
    program = gc.compile(module, dims=module.dims)
    for n in (2, 9):
        x = np.ones((n, 4), np.float32)
        np.testing.assert_array_equal(program(x)[1].numpy(), 1 + x.cumsum(0))


def test_a_short_loop_may_make_its_state_longer() -> None:
    body = "(bool on, float[K, 4] w) { on = Identity(go) w = Concat<axis=0>(v, x) }"
    check(_loop("n = Constant<value_int=3>()", body, "float[K, 4] y"), X, expected=[np.concatenate([X] * 4)])


def test_stacks_are_as_long_as_a_condition_says() -> None:
    body = WHILE.replace("w) {", "w, float[N, 4] q) { q = Neg(w)", 1).replace("q = Neg(w)", "", 1)
    body = body.replace("on = Less(m, most)", "on = Less(m, most) q = Neg(w)")
    module = module_of(_loop("n = Constant<value_int=400>()", body, "float[N, 4] y, float[K, N, 4] s", "y, s"))
    program = gc.compile(module)
    for x in (X, X + 30):
        for result, expected in zip(program(x), module(x), strict=True):
            np.testing.assert_array_equal(result.detach().numpy(), expected.detach().numpy())
    assert len(module(X)[1]) == 65
    with pytest.raises(gc.errors.ValueNeededError, match="the number of steps of Loop"):
        gc.trace(module, X)


def test_stacks_are_as_long_as_an_input_says() -> None:
    text = """(float[N, 4] x, int64 n) => (float[N, 4] y, float[K, N, 4] s) {
        y, s = Loop(n, , x) <body = b (int64 i, bool go, float[N, 4] v) => (bool on, float[N, 4] w, float[N, 4] q) {
            on = Identity(go) w = Add(v, x) q = Mul(w, w)
        }>
    }"""
    module = module_of(text)
    program = gc.compile(module)
    for n in (3, 1, 8, -1):
        stack = np.array([(X * i) ** 2 for i in range(2, max(n, 0) + 2)])
        np.testing.assert_array_equal(program(X, np.array(n))[0].numpy(), X * (max(n, 0) + 1))
        np.testing.assert_array_equal(program(X, np.array(n))[1].numpy().reshape(-1), stack.reshape(-1))


def test_gradients_go_through_loops() -> None:
    body = "(bool on, float[N, 4] w) { on = Identity(go) w = Mul(v, x) }"
    module = module_of(_loop("n = Constant<value_int=2000>()", body))
    x = gc.ones(2, 4, requires_grad=True)
    gc.compile(module)(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.full((2, 4), 2001.0))


SCAN = """(float[2] s, float[{sizes}] x) => (float[2] y, float z) {{
    y, z = Scan<num_scan_inputs=1, {options} body = b (float[2] a, float[2] e) => (float[2] o, float[2] p) {{
        o = Add(a, e) p = Mul(o, e)
    }}>(s, x)
}}"""


def test_a_graph_is_applied_along_a_sequence() -> None:
    check(SCAN.format(sizes="T, 2", options=""), np.ones(2, np.float32), np.arange(10, dtype=np.float32).reshape(5, 2))


def test_axes_and_directions_of_sequences_are_those_that_attributes_say() -> None:
    options = "scan_input_axes=[1], scan_input_directions=[1], scan_output_axes=[1], scan_output_directions=[1],"
    x, state, rows = np.arange(10, dtype=np.float32).reshape(2, 5), np.ones(2, np.float32), []
    for column in x.T[::-1]:
        state = state + column
        rows.append(state * column)
    expected = [state, np.stack(rows[::-1], 1)]
    check(SCAN.format(sizes="2, T", options=options), np.ones(2, np.float32), x, expected=expected)


def test_a_scan_of_version_8_has_a_batch() -> None:
    text = """(float[2, 2] s, float[2, T, 2] x) => (float y, float z) {
        y, z = Scan<num_scan_inputs=1, body = b (float[2] a, float[2] e) => (float[2] o, float[2] p) {
            o = Add(a, e) p = Identity(o)
        }>(, s, x)
    }"""
    x = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    check(text, np.zeros((2, 2), np.float32), x, expected=[x.sum(1), x.cumsum(1)], opset=8)


def test_a_graph_is_applied_to_each_element_of_a_list() -> None:
    text = """(float[N, 4] x) => (float y) {
        s = SplitToSequence<axis=0>(x)
        m = SequenceMap(s, x) <body = b (float[1, 4] a, float[N, 4] all) => (float[N, 4] r) { r = Mul(a, all) }>
        y = ConcatFromSequence<axis=0>(m)
    }"""
    check(text.replace("N", "3"), X, expected=[np.concatenate([row * X for row in X])])
