"""Native calls on tensors of PyTorch: they give what calls through Python give, and leave to these what they cannot."""

from __future__ import annotations

import gc
import os
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from graphc.errors import IndexRangeError
from graphc.interop.aten.graph import AtenGraph, Ref, Step
from graphc.runtime import threads
from tests.interop.torch.packing import PRODUCT, packed_or_skip, prepared_arrays
from tests.runtime.threaded import thread_count

torch = pytest.importorskip("torch")
native: Any = pytest.importorskip("graphc.interop.torch.native")
program: Any = pytest.importorskip("graphc.interop.torch.program")
TRIPLE = AtenGraph("main", ["x"], [Step("y", "aten.mul.Tensor", (Ref("x"), 3))], [None, Ref("y")])
CALLS = 3
"""After so many calls of one kind the next is native."""

if native.library() is None or native.tensor_caller() is None:
    pytest.skip("no native calls on tensors here", allow_module_level=True)


def tripled(example: Any) -> Any:
    """A program that has been called so often on tensors like this that further such calls are native."""
    run = program.TorchProgram(TRIPLE, [example], [None, example], (), "live")
    for _ in range(CALLS):
        run([example])
    return run


def product(watch: str, *weights: Any) -> Any:
    x = torch.randn(2, weights[0].shape[0])
    run = program.TorchProgram(PRODUCT, [x, *weights], [x @ weights[0]], {1, 2}, watch)
    for _ in range(CALLS):
        run([x, *weights])
    return run


def weights_of(size: int) -> tuple[Any, Any]:
    return torch.nn.Parameter(torch.randn(size, size)), torch.nn.Parameter(torch.randn(size))


def is_native(run: Any, *args: Any) -> bool:
    arguments = list(args)
    result = run._last.successor.call(arguments)
    assert (arguments == []) == (result is not None)
    return result is not None


@pytest.mark.parametrize(
    "x",
    [
        torch.arange(6.0).reshape(2, 3),
        torch.arange(6.0).reshape(2, 3).t(),
        torch.arange(48.0).reshape(2, 3, 2, 4).to(memory_format=torch.channels_last),
        torch.arange(4.0)[2:],
        torch.tensor(2.0),
        torch.zeros(0, 3),
        torch.ones(2, 2, requires_grad=True),
        torch.nn.Parameter(torch.ones(2)),
        torch.ones(3, dtype=torch.float64),
    ],
    ids=["dense", "transposed", "channels", "offset", "scalar", "empty", "gradient", "parameter", "double"],
)
def test_calls_like_those_before_are_native(x: Any):
    run = tripled(x)
    for value in (x, x.detach() + 1):
        if value.stride() == x.stride():
            assert is_native(run, value)
        result = run([value])[1]
        assert torch.equal(result, value * 3) and result.stride() == (x.detach() * 3).stride()
        assert not result.requires_grad and type(result) is torch.Tensor


def test_results_are_tensors_of_pytorch_of_their_own():
    run, x = tripled(torch.zeros(4)), torch.ones(4)
    first, second = run([x])[1], run([x])[1]
    assert first.data_ptr() != second.data_ptr()
    assert first.resize_(8).shape == (8,) and first.untyped_storage().resizable()
    assert second.tolist() == [3.0] * 4 and second._version == 0


@pytest.mark.parametrize(
    "x",
    [
        torch.randn(3, 2).t(),
        torch.randn(4, 6)[::2, ::2],
        torch.randn(2, 1).expand(2, 3),
        torch._neg_view(torch.randn(2, 3)),
        torch.randn(2, 3, dtype=torch.complex64).conj().imag,
        torch._efficientzerotensor(2, 3),
        torch.randn(3, 3)[1:],
    ],
    ids=["transposed", "gaps", "repeated", "negative", "conjugate", "zeros", "offset"],
)
def test_tensors_that_lie_otherwise_are_computed_with_all_the_same(x: Any):
    run = tripled(torch.zeros(2, 3))
    for _ in range(2 * CALLS):
        assert torch.equal(run([x])[1], torch.empty(2, 3).copy_(x) * 3)
    assert torch.equal(run([torch.ones(2, 3)])[1], torch.full((2, 3), 3.0))


def test_subclasses_and_tensors_of_inference_are_read():
    class Own(torch.Tensor):
        pass

    run = tripled(torch.zeros(2))
    assert is_native(run, torch.ones(2).as_subclass(Own))
    with torch.inference_mode():
        x = torch.ones(2)
        assert is_native(run, x) and run([x])[1].tolist() == [3.0, 3.0]


def test_what_is_no_tensor_or_list_is_left_to_python():
    run = tripled(torch.zeros(2))
    for value in (
        None,
        1,
        2.0,
        "x",
        [torch.zeros(2)],
        torch.zeros(2, device="meta"),
        torch.zeros(2, dtype=torch.int32),
    ):
        assert not is_native(run, value)
    assert run._last.call((torch.zeros(2),)) is None and run._last.call([]) is None
    assert run._last.call([torch.zeros(2)] * 2) is None


def test_a_fake_tensor_is_left_to_python():
    run = tripled(torch.zeros(2))
    with torch._subclasses.FakeTensorMode():
        fake = torch.zeros(2)
    assert not is_native(run, fake)


@pytest.mark.parametrize("size", [8, 64, 160], ids=["read", "compared", "asked"])
@pytest.mark.parametrize("write", ["numpy", "data", "replaced", "counted"])
@torch.no_grad()
def test_writes_to_live_weights_are_seen(size: int, write: str):
    if size > 8:
        packed_or_skip(size)
    (w, b), x = weights_of(size), torch.randn(2, size)
    run = product("live", w, b)
    assert is_native(run, x, w, b)
    for _ in range(CALLS + 1):
        if write == "numpy":
            w.detach().numpy()[-1, -1] += 1
        elif write == "data":
            w.data.mul_(-1)
        elif write == "replaced":
            w.data = torch.randn(size, size)
        else:
            w.mul_(-1)
        assert is_native(run, x, w, b) == (size == 8 and write != "replaced")
        torch.testing.assert_close(run([x, w, b])[0], torch.addmm(b, x, w))
    for _ in range(CALLS):
        torch.testing.assert_close(run([x, w, b])[0], torch.addmm(b, x, w))
    assert is_native(run, x, w, b)


@torch.no_grad()
def test_another_weight_than_before_is_seen_in_frozen_programs():
    (w, b), x = weights_of(8), torch.randn(2, 8)
    run = product("frozen", w, b)
    assert is_native(run, x, w, b)
    other, _ = weights_of(8)
    assert not is_native(run, x, other, b)
    for value in (w, other, w, w, w, other, other, other, w):
        torch.testing.assert_close(run([x, value, b])[0], torch.addmm(b, x, value))


@torch.no_grad()
def test_changes_that_another_program_has_found_are_seen():
    (w, b), x = weights_of(64), torch.randn(2, 64)
    runs = [product("live", w, b), product("live", w, b)]
    for _ in range(3):
        w.data.add_(1)
        for run in runs:
            torch.testing.assert_close(run([x, w, b])[0], torch.addmm(b, x, w))


def calls_through_python(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The programs that were called through Python since."""
    calls: list[Any] = []
    usual: Callable[..., Any] = program.TorchProgram._called

    def called(self: Any, args: list[Any]) -> Any:
        calls.append(self)
        return usual(self, args)

    monkeypatch.setattr(program.TorchProgram, "_called", called)
    return calls


@pytest.mark.parametrize("watch", ["live", "frozen"])
@torch.no_grad()
def test_blocks_that_take_turns_are_called_natively(watch: str, monkeypatch: pytest.MonkeyPatch):
    blocks, x = [weights_of(64) for _ in range(5)], torch.randn(2, 64)
    run, python_calls = product(watch, *blocks[0]), calls_through_python(monkeypatch)
    for turn in range(8):
        for w, b in blocks:
            torch.testing.assert_close(run([x, w, b])[0], torch.addmm(b, x, w))
        if turn == CALLS:
            python_calls.clear()
    assert not python_calls


@torch.no_grad()
def test_native_calls_do_not_keep_what_was_made_of_weights():
    packed_or_skip(64)
    (w, b), x = weights_of(64), torch.randn(2, 64)
    run = product("live", w, b)
    first = weakref.ref(prepared_arrays(run)[0])
    w.mul_(2)
    run([x, w, b])
    gc.collect()
    assert first() is None
    for _ in range(CALLS):
        run([x, w, b])
    second = weakref.ref(prepared_arrays(run)[0])
    del w, b
    others = weights_of(64)
    for _ in range(CALLS):
        run([x, *others])
    gc.collect()
    assert second() is None and is_native(run, x, *others)


def test_when_there_are_many_others_wait_for_their_turn(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(native, "MOST", 2)
    monkeypatch.setattr(native, "CALLS_BEFORE_EVICTION", 9)
    x, python_calls = torch.ones(1, 2), calls_through_python(monkeypatch)
    run = program.TorchProgram(TRIPLE, [x], [None, x], (), "live")
    for n in range(4):
        python_calls.clear()
        argument = torch.ones(9).as_strided((1, 2), (n + 2, 1))
        for _ in range(12):
            assert run([argument])[1].tolist() == [[3.0, 3.0]]
        assert len(python_calls) == (9 if n == 2 else 2)


def test_numbers_and_arguments_are_given_back():
    graph = AtenGraph("main", ["x", "n"], TRIPLE.steps, [Ref("y"), Ref("x"), Ref("y"), Ref("n"), 7])
    x = torch.ones(2)
    run = program.TorchProgram(graph, [x, 5], [x, x, x, 5, None], (), "live")
    for _ in range(CALLS):
        run([x, 5])
    result = run._last.call([x, 5])
    assert result is not None and result[1] is x and result[2] is result[0] and result[3:] == run([x, 5])[3:]
    assert not is_native(run, x, 6) and not is_native(run, x, 2**70) and not is_native(run, x, True)


def test_nothing_is_kept_and_nothing_let_go_of_too_often():
    run, x = tripled(torch.zeros(2)), torch.ones(2)
    references = sys.getrefcount(x), sys.getrefcount(None), sys.getrefcount(True), sys.getrefcount(False)
    for _ in range(1000):
        arguments = [x]
        _, output = run(arguments)
        assert not arguments and sys.getrefcount(output) == 2
    del arguments
    after = sys.getrefcount(x), sys.getrefcount(None), sys.getrefcount(True), sys.getrefcount(False)
    assert all(abs(a - b) < 50 for a, b in zip(references, after, strict=True)) and references[0] == after[0]
    last = weakref.ref(run([x])[1])
    assert last() is None


def test_programs_are_let_go_of():
    run = weakref.ref(tripled(torch.zeros(2)))
    gc.collect()
    assert run() is None


def test_native_calls_follow_the_number_of_threads(monkeypatch: pytest.MonkeyPatch):
    before, x = torch.get_num_threads(), torch.ones(8)
    with thread_count(2):
        monkeypatch.setattr(threads, "_is_chosen", False)
        monkeypatch.delenv("GRAPHC_THREADS", raising=False)
        torch.set_num_threads(2)
        run = tripled(x)
        try:
            for count in (1, 3, 2):
                torch.set_num_threads(count)
                assert not is_native(run, x)
                run([x])
                assert threads.get_num_threads() == count and is_native(run, x)
        finally:
            torch.set_num_threads(before)


def test_programs_use_as_many_threads_as_pytorch_whatever_others_used(monkeypatch: pytest.MonkeyPatch):
    before, x = torch.get_num_threads(), torch.ones(8)
    with thread_count(2):
        monkeypatch.setattr(threads, "_is_chosen", False)
        monkeypatch.delenv("GRAPHC_THREADS", raising=False)
        try:
            torch.set_num_threads(3)
            first, second = tripled(x), tripled(x)
            torch.set_num_threads(1)
            first([x])
            torch.set_num_threads(3)
            assert not is_native(second, x)
            second([x])
            assert threads.get_num_threads() == 3 and is_native(second, x) and is_native(first, x) is False
        finally:
            torch.set_num_threads(before)


def test_an_index_out_of_range_is_an_error_of_a_native_call():
    graph = AtenGraph("main", ["w", "i"], [Step("y", "aten.embedding.default", (Ref("w"), Ref("i")))], [Ref("y")])
    w, i = torch.randn(4, 3), torch.tensor([1, 3])
    run = program.TorchProgram(graph, [w, i], [w[i]], (), "live")
    for _ in range(CALLS):
        run([w, i])
    assert is_native(run, w, i)
    for _ in range(2):
        with pytest.raises(IndexRangeError):
            run([w, torch.tensor([1, 4])])
        assert torch.equal(run([w, i])[0], w[i])


@pytest.mark.parametrize("size", [16, 400], ids=["short", "long"])
def test_several_threads_call_at_once(size: int):
    run, wrong = tripled(torch.zeros(size, size)), []

    def call(number: int) -> None:
        x = torch.full((size, size), float(number))
        for _ in range(200):
            if not torch.equal(run([x])[1], x * 3):
                wrong.append(number)

    workers = [threading.Thread(target=call, args=(i,)) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_calls_within_the_garbage_collection_of_a_call_do_not_disturb_it():
    run, wrong = tripled(torch.zeros(64)), []

    class Cycle:
        def __init__(self) -> None:
            self.own = self

        def __del__(self) -> None:
            x = torch.full((64,), 5.0)
            if not torch.equal(run([x])[1], x * 3):
                wrong.append(x)

    before, one = gc.get_threshold(), torch.ones(64)
    gc.set_threshold(1)
    try:
        for _ in range(100):
            Cycle()
            if not torch.equal(run([one])[1], one * 3):
                wrong.append(one)
    finally:
        gc.set_threshold(*before)
    assert not wrong


def test_a_child_after_fork_calls_natively():
    run, x = tripled(torch.zeros(8)), torch.ones(8)
    child = os.fork()
    if not child:
        os._exit(0 if is_native(run, x) and run([x])[1].tolist() == [3.0] * 8 else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_an_exception_while_weights_are_looked_at_is_raised(monkeypatch: pytest.MonkeyPatch):
    packed_or_skip(160)
    w, b = weights_of(160)
    run, x = product("live", w, b), torch.randn(2, 160)

    def stop(_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(run._weights, "bound", stop)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            run([x, w, b])
    monkeypatch.undo()
    assert is_native(run, x, w, b)


@pytest.mark.parametrize("dynamic", [False, True])
@torch.no_grad()
def test_models_are_called_natively_for_sizes_that_come_again(dynamic: bool):
    torch._dynamo.reset()
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 4)).eval()
    run = torch.compile(model, backend="graphc", dynamic=dynamic)
    many = range(2, 14) if dynamic else ()
    for size in (3, 3, 3, 3, 5, 4, 5, 5, 5, 3, 3, 3, *many, 3, 3):
        x = torch.randn(size, 8)
        torch.testing.assert_close(run(x), model(x))


def test_training_runs_natively(monkeypatch: pytest.MonkeyPatch):
    torch._dynamo.reset()
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    run, python_calls = torch.compile(model, backend="graphc"), calls_through_python(monkeypatch)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(10):
        x = torch.randn(16, 8)
        model.zero_grad()
        model(x).square().mean().backward()
        expected = [p.grad for p in model.parameters()]
        model.zero_grad()
        run(x).square().mean().backward()
        for p, grad in zip(model.parameters(), expected, strict=True):
            torch.testing.assert_close(p.grad, grad)
        optimizer.step()
        if step == CALLS:
            python_calls.clear()
    assert not python_calls


def test_gradients_that_are_given_as_negatives_or_zeros_are_right():
    torch._dynamo.reset()
    w = torch.randn(4, requires_grad=True)
    run = torch.compile(lambda t: t * t, backend="graphc")
    for given in (torch.ones(4), torch.ones(4), torch.ones(4), torch._neg_view(torch.randn(4)), torch.zeros(4)):
        for gradient in (given, torch._efficientzerotensor(4)):
            w.grad = None
            run(w).backward(gradient)
            assert w.grad is not None
            torch.testing.assert_close(torch.zeros(4) + w.grad, 2 * w.detach() * gradient + torch.zeros(4))


@torch.no_grad()
def test_a_weight_that_is_stored_as_its_negative_is_read_as_its_value():
    torch._dynamo.reset()
    w, x = torch.nn.Parameter(torch._neg_view(torch.randn(3, 3))), torch.randn(2, 3)
    run = torch.compile(lambda x: x @ w, backend="graphc")
    for _ in range(CALLS + 1):
        torch.testing.assert_close(run(x), x @ w)


def test_without_the_exchange_interface_calls_go_through_python(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(native, "library", lambda: None)
    run, x = tripled(torch.zeros(2)), torch.ones(2)
    assert run._last is native.NONE and run([x])[1].tolist() == [3.0, 3.0]


def test_the_exchange_interface_is_not_trusted_where_it_is_another_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(native, "_VERSION", 99)
    assert native.library.__wrapped__() is None
    monkeypatch.setattr(native, "_VERSION", 1)
    monkeypatch.delattr(torch.Tensor, "__dlpack_c_exchange_api__")
    assert native.library.__wrapped__() is None


def test_the_exchange_interface_is_found_whatever_the_default_device_is():
    with torch.device("meta"):
        assert native.library.__wrapped__() is not None
