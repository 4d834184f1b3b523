"""Operators that run graphs: branches, loops and scans, as Python and as parts of compiled programs."""

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


def test_stacks_of_unknown_length_are_there_eagerly_alone() -> None:
    body = WHILE.replace("w) {", "w, float[N, 4] q) { q = Neg(w)", 1).replace("q = Neg(w)", "", 1)
    body = body.replace("on = Less(m, most)", "on = Less(m, most) q = Neg(w)")
    module = module_of(_loop("n = Constant<value_int=400>()", body, "float[N, 4] y, float[K, N, 4] s", "y, s"))
    assert module(X)[1].shape[0] == 65
    with pytest.raises(gc.errors.ValueNeededError, match="only calls know"):
        gc.compile(module)(X)


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
