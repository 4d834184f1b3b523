"""Calls from native code into Python: what functions get, what their errors become."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from graphc.base.dtypes import float32
from graphc.base.errors import GraphcError
from graphc.base.host_function import HostFunction
from graphc.calls.bound_program import build
from graphc.ir.graph.graph import Graph
from graphc.ir.types import TensorType
from graphc.ops import dispatch
from graphc.ops.dispatch import GraphDispatcher
from graphc.ops.effects.check import check_true
from graphc.ops.effects.host import host_call
from graphc.ops.pointwise import elementwise as ew
from graphc.runtime import host_calls

SPEC = ((4, 3), np.dtype(np.float32))


@pytest.fixture(scope="module")
def program():
    graph = Graph("main")
    x = graph.add_input(TensorType(float32, (4, 3)), "x")
    with dispatch.use(GraphDispatcher(graph)):
        token, turned = host_call(graph.scalar(0.0, float32), ew.mul(x, 2.0), number=0, name="f", results="f32[3,4]")
        check_true(ew.eq(token, 0.0))
        end = host_call(token, ew.add(turned, 1.0), number=1, name="g")
        check_true(ew.eq(end, 0.0))
        graph.set_outputs([ew.mul(turned, turned)])
    return build(graph)


def functions(first, second):
    turned = ((3, 4), SPEC[1])
    return [HostFunction("f", first, (SPEC,), (turned,)), HostFunction("g", second, (turned,), ())]


X = np.arange(12, dtype=np.float32).reshape(4, 3)


def test_functions_get_and_give_arrays_and_share_a_state(program):
    observed = []

    def first(state, array):
        state["first"] = array
        return [array.T]

    def second(state, array):
        observed.append((state["first"].copy(), array))
        return []

    for _ in range(2):
        with host_calls.running(functions(first, second), {}):
            (result,) = program.run([X], ())
        np.testing.assert_array_equal(result, (2 * X.T) ** 2)
    for retained, array in observed:
        np.testing.assert_array_equal(retained, 2 * X)
        np.testing.assert_array_equal(array, 2 * X.T + 1)
        assert not array.flags.writeable


def test_an_error_ends_the_call_and_is_raised_itself(program):
    called = []

    def first(state, array):
        raise KeyError("no")

    with pytest.raises(KeyError, match="no"), host_calls.running(functions(first, called.append), {}):
        program.run([X], ())
    assert not called

    def interrupted(state, array):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), host_calls.running(functions(lambda s, a: [a.T], interrupted), {}):
        program.run([X], ())


def test_a_wrong_result_is_an_error(program):
    wrong = functions(lambda s, a: [np.ones((2, 2))], lambda s, a: [])
    with pytest.raises(ValueError, match="could not broadcast"), host_calls.running(wrong, {}):
        program.run([X], ())


def test_a_program_alone_has_no_functions(program):
    with pytest.raises(GraphcError, match="calls the Python function f"):
        program.run([X], ())


def test_runs_of_several_threads_are_apart(program):
    results = {}

    def work(factor):
        def first(state, array):
            return [array.T * factor]

        for _ in range(20):
            with host_calls.running(functions(first, lambda s, a: []), {}):
                results.setdefault(factor, []).append(program.run([X], ())[0])

    threads = [threading.Thread(target=work, args=(f,)) for f in (1.0, 2.0, 3.0)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    for factor, result in results.items():
        for array in result:
            np.testing.assert_array_equal(array, (2 * X.T * factor) ** 2)


def test_runs_nest(program):
    inner = []

    def first(state, array):
        with host_calls.running(functions(lambda s, a: [a.T], lambda s, a: []), {}):
            inner.append(program.run([X], ())[0])
        return [array.T * 3]

    with host_calls.running(functions(first, lambda s, a: []), {}):
        (result,) = program.run([X], ())
    np.testing.assert_array_equal(result, (6 * X.T) ** 2)
    np.testing.assert_array_equal(inner[0], (2 * X.T) ** 2)


def served(function, operands, results):
    """Return the error of one call of a function, after it filled the memory of its results."""
    memory = [np.ones(1, np.float32), np.ones(1, np.float32), *operands, *results]
    addresses = np.array([p.ctypes.data if p.size else 0 for p in memory], np.uintp)
    operand_types, result_types = (tuple((p.shape, p.dtype) for p in arrays) for arrays in (operands, results))
    run = host_calls.HostRun([HostFunction("f", function, operand_types, result_types)], {})
    run.serve(0, addresses.ctypes.data)
    return run.error


def test_operands_may_be_the_results_where_both_share_memory():
    a, b = np.arange(3.0), np.arange(3.0) + 10
    assert served(lambda state, x, y: [y, x], [a, b], [a, b]) is None
    np.testing.assert_array_equal([a, b], [[10, 11, 12], [0, 1, 2]])


def test_an_operand_of_another_size_than_the_result_is_an_error():
    large, small = np.arange(8.0), np.zeros(4)
    memory = np.concatenate([small, np.full(4, -1.0)])
    assert isinstance(served(lambda state, x: [x], [large], [memory[:4]]), ValueError)
    np.testing.assert_array_equal(memory[4:], -1)


def test_an_operand_of_another_type_than_the_result_is_cast():
    result = np.zeros(3, np.float64)
    assert served(lambda state, x: [x], [np.arange(3, dtype=np.float32)], [result]) is None
    np.testing.assert_array_equal(result, [0, 1, 2])


def test_empty_operands_and_results_need_no_memory():
    observed = []
    assert served(lambda state, x: observed.append(x) or [x], [np.zeros((0, 3))], [np.zeros((0, 3))]) is None
    assert observed[0].shape == (0, 3)


def test_nobody_can_write_to_operands_and_they_stay_what_they_were():
    retained = []

    def function(state, x):
        with pytest.raises(ValueError, match="WRITEABLE"):
            x.setflags(write=True)
        retained.append(x)
        return []

    x = np.arange(3.0)
    assert served(function, [x], []) is None
    x[:] = -1
    np.testing.assert_array_equal(retained[0], [0, 1, 2])


@pytest.mark.parametrize("lasting", [False, True])
def test_a_program_that_begins_once_more_is_given_what_was_kept(program, lasting):
    calls, buffer = [], np.zeros((3, 4), np.float32)

    def first(state, array):
        calls.append("first")
        buffer[:] = array.T + len(calls)
        return [buffer]

    def second(state, array):
        calls.append("second")
        return []

    with host_calls.running(functions(first, second), {}, None, lasting) as run:
        (one,) = program.run([X], ())
        buffer[:] = 0
        host_calls.rewind()
        (two,) = program.run([X], ())
        assert calls == (["first", "second"] * (1 if lasting else 2))
        assert (one == two).all() == lasting
        run.is_calling = True
        assert host_calls.current() is None
        host_calls.rewind()  # that of another program, which a function calls
        run.is_calling = False
        (three,) = program.run([X], ())
        assert calls[-2:] == ["first", "second"] and (three != one).any()


class Begun:
    """Request that a function started with borrowed memory, and finishes on demand."""

    def __init__(self, source, result):
        self.source, self.result, self.ends = source, result, 0

    def settle(self):
        self.ends += 1
        np.copyto(self.result, self.source.T)


def lent(first, second):
    turned = ((3, 4), SPEC[1])
    return [
        HostFunction("f", first, (SPEC,), (turned,), lends=True),
        HostFunction("g", second, (turned,), (), lends=True),
    ]


def test_lent_memory_is_that_of_operands_and_results(program):
    requests = []

    def first(state, source, result):
        requests.append(Begun(source, result))
        state[host_calls.OPEN] = [requests[-1]]
        requests[-1].settle()

    def second(state, source):
        del state[host_calls.OPEN]

    with host_calls.running(lent(first, second), {}):
        (actual,) = program.run([X], ())
    np.testing.assert_array_equal(actual, (2 * X.T) ** 2)
    assert requests[0].ends == 1 and requests[0].result.base is not None


def test_what_was_begun_with_lent_memory_ends_before_the_call_does_whatever_happens(program):
    requests = []

    def first(state, source, result):
        requests.append(Begun(source, result))
        state[host_calls.OPEN] = [requests[-1]]
        raise KeyError("no")

    with pytest.raises(KeyError, match="no"), host_calls.running(lent(first, first), {}):
        program.run([X], ())
    assert [b.ends for b in requests] == [1]


def test_a_program_that_has_lent_memory_and_was_stopped_does_not_lend_it_again(program):
    requests = []

    def first(state, source, result):
        requests.append(Begun(source, result))

    with host_calls.running(lent(first, lambda state, source: None), {}) as run:
        assert host_calls.is_lending()
        program.run([X], ())
        host_calls.rewind()
        with pytest.raises(GraphcError, match="a condition false"):
            program.run([X], ())
        assert run.lends
    assert len(requests) == 1 and not host_calls.is_lending()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_call_that_was_lost_before_it_was_served_ends_the_program(program, monkeypatch):
    def lost(*_):
        raise KeyboardInterrupt

    called = []
    monkeypatch.setattr(host_calls.HostRun, "serve", lost)
    with pytest.raises(GraphcError), host_calls.running(functions(called.append, called.append), {}):
        program.run([X], ())
    assert not called
