"""Loops whose condition compares a counter with a bound: one program, without a read of the number of steps."""

import numpy as np
import pytest

pytest.importorskip("onnx")
import graphc as gc
from graphc.interop.onnx.ops import trip_count
from tests.interop.onnx.alike import check, module_of

X = np.arange(12, dtype=np.float32).reshape(6, 2)
# Body text (from counter j, bound n), first value and growth of the counter, steps for six rows.
CONDITIONS = {
    "less": ("after = Add(j, one) on = Less(after, n)", 0, 6),
    "at most": ("after = Add(j, one) on = LessOrEqual(after, n)", 0, 7),
    "from the other side": ("after = Add(one, j) on = Greater(n, after)", 1, 5),
    "in steps of two": ("after = Add(j, two) on = Less(after, n)", 0, 3),
    "in steps of two, odd": ("after = Add(j, two) on = Less(after, n)", 1, 3),
    "down": ("after = Sub(j, one) on = GreaterOrEqual(after, two)", 6, 5),
    "by the step's number": ("after = Identity(j) k = Add(i, two) on = Less(k, n)", 0, 5),
    "both": ("after = Add(j, one) a = Less(after, n) k = Add(i, two) b = Less(k, n) on = And(a, b)", 0, 5),
    "in floats of a cast": ("after = Add(j, one) f = Cast<to=6>(after) m = Cast<to=6>(n) on = Less(f, m)", 0, 6),
    "false at once": ("after = Add(j, one) on = Less(n, after)", 0, 1),
}


def _loop(condition: str, first: int) -> str:
    constants = f"int64[1] axis = {{0}}, int64 one = {{1}}, int64 two = {{2}}, int64 j0 = {{{first}}}"
    return f"""(float[N, 2] x) => (float[2] y, float[K, 2] s) <{constants}> {{
        sizes = Shape(x) z = Constant<value_int=0>() n = Gather(sizes, z) go0 = Less(z, n)
        row = ReduceSum<keepdims=0>(x, axis)
        last, y, s = Loop(, go0, j0, row) <body = b (int64 i, bool go, int64 j, float[2] v) =>
            (bool on, int64 after, float[2] w, float[2] q) {{
            {condition} w = Add(v, row) q = Neg(w)
        }}>
    }}"""


@pytest.mark.parametrize("name", CONDITIONS)
def test_steps_until_a_comparison_fails(name: str) -> None:
    condition, first, steps = CONDITIONS[name]
    text, row = _loop(condition, first), X.sum(0)
    states = [row * k for k in range(2, steps + 2)]
    check(text, X, expected=[states[-1], -np.stack(states)])


@pytest.mark.parametrize("name", ["less", "both", "by the step's number", "in floats of a cast"])
def test_one_program_serves_all_sizes(name: str) -> None:
    condition, first, steps = CONDITIONS[name]
    module = module_of(_loop(condition, first))
    program = gc.compile(module, dims=module.dims)
    for rows in (6, 9, 4):
        assert program(np.ones((rows, 2), np.float32))[1].shape == (steps + rows - 6, 2)
    assert len(program.programs) == 1


def test_a_limit_of_steps_counts_too() -> None:
    text = _loop(*CONDITIONS["less"][:2]).replace("Loop(,", "Loop(two,")
    check(text, X, expected=[X.sum(0) * 3, -np.stack([X.sum(0) * 2, X.sum(0) * 3])])


def test_a_counter_that_data_move_is_read() -> None:
    condition = "grown = ReduceMax<keepdims=0>(v) c = Cast<to=7>(grown) after = Add(c, one) on = Less(after, n)"
    x = np.full((6, 2), 0.25, np.float32)
    states = [x.sum(0) * k for k in (2, 3, 4, 5)]
    check(_loop(condition, 0), x, expected=[states[-1], -np.stack(states)])


def test_a_counter_that_grows_by_itself_and_more_runs_while_the_condition_holds() -> None:
    """1, 3, 7: the growth depends on the counter, so no formula gives the number of steps."""
    states = [X.sum(0) * k for k in (2, 3)]
    check(
        _loop("k = Add(j, one) after = Add(j, k) on = Less(after, n)", 1), X, expected=[states[-1], -np.stack(states)]
    )


def test_each_number_of_a_body_is_derived_once(monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[str] = []
    source = trip_count._Body.source

    def counted(body: trip_count._Body, name: str) -> str:
        names.append(name)
        return source(body, name)

    monkeypatch.setattr(trip_count._Body, "source", counted)
    doubled = " ".join(f"d{k + 1} = Add(d{k}, d{k})" for k in range(12))
    condition = f"d0 = Add(j, one) {doubled} after = Identity(d0) on = Less(d12, n)"
    assert module_of(_loop(condition, 0))(X)[1].shape == (1, 2)
    assert 0 < names.count("d0") <= 4, "more readers than d1 (twice), the counter and its growth"
