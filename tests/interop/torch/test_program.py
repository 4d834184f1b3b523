"""Programs that take and give tensors of PyTorch."""

from __future__ import annotations

import os
import threading
from typing import Any

import pytest

from graphc.errors import CompileError, IndexRangeError, ShapeError
from graphc.interop.aten.graph import AtenGraph, Ref, Step
from graphc.ir.graph import text
from graphc.runtime import threads
from tests.runtime.threaded import thread_count

torch = pytest.importorskip("torch")
program: Any = pytest.importorskip("graphc.interop.torch.program")
TRIPLE = AtenGraph("main", ["x"], [Step("y", "aten.mul.Tensor", (Ref("x"), 3))], [None, Ref("y")])


def tripled(example: Any) -> Any:
    run = program.TorchProgram(TRIPLE, [example], [None, example], (), "live")
    return lambda x: run([x])[1]


@pytest.mark.parametrize(
    "x",
    [
        torch.arange(6.0).reshape(2, 3),
        torch.arange(6.0).reshape(2, 3).t(),
        torch.arange(48.0).reshape(2, 3, 2, 4).to(memory_format=torch.channels_last),
        torch.arange(24.0).reshape(4, 6)[1:, 2:4],
        torch.arange(4.0)[2:],
        torch.tensor(2.0),
        torch.tensor([1.0, 2.0]).expand(3, 2),
        torch.zeros(0, 3),
        torch.ones(2, 2, requires_grad=True),
    ],
    ids=["dense", "transposed", "channels", "gaps", "offset", "scalar", "repeated", "empty", "gradient"],
)
def test_arguments_are_taken_as_they_lie(x: Any):
    found = tripled(x)(x)
    assert torch.equal(found, x * 3) and not found.requires_grad
    if x.numel() == x.untyped_storage().size() // 4:
        assert found.stride() == (x.detach() * 3).stride()


def test_an_argument_that_lies_in_another_order_than_the_example_is_copied():
    run = tripled(torch.zeros(2, 3))
    for x in (torch.randn(2, 3), torch.randn(3, 2).t(), torch.randn(4, 6)[::2, ::2], torch.randn(2, 1).expand(2, 3)):
        assert torch.equal(run(x), x * 3)


def test_a_program_does_not_depend_on_the_line_that_compiles_it():
    x = torch.ones(2, 3).t()
    first = program.TorchProgram(TRIPLE, [x], [None, x], (), "live")
    second = program.TorchProgram(TRIPLE, [x], [None, x], (), "live")
    assert text.print_graph(first.graph) == text.print_graph(second.graph), "or the cache would not find it"


def test_the_list_of_arguments_is_emptied_and_results_are_new_each_time():
    run = program.TorchProgram(TRIPLE, [torch.zeros(2)], [None, torch.zeros(2)], (), "live")
    given = [torch.ones(2)]
    nothing, first = run(given)
    second = run([torch.zeros(2)])[1]
    assert nothing is None and not given and first.tolist() == [3, 3] and second.tolist() == [0, 0]


def test_arguments_are_given_back_themselves_and_what_stands_twice_is_made_once():
    graph = AtenGraph("main", ["x", "n"], TRIPLE.steps, [Ref("y"), Ref("x"), Ref("y"), Ref("n"), 7])
    x = torch.ones(2)
    run = program.TorchProgram(graph, [x, 5], [x, x, x, 5, None], (), "live")
    first, same, again, five, seven = run([x, 5])
    assert same is x and again is first and (five, seven) == (5, 7)


def test_shapes_and_element_types_are_checked():
    run = tripled(torch.zeros(2, 3))
    with pytest.raises(ShapeError):
        run(torch.zeros(3, 3))
    with pytest.raises(Exception, match="float64"):
        run(torch.zeros(2, 3, dtype=torch.float64))


def test_results_have_the_element_type_and_sizes_that_pytorch_gives_them():
    x = torch.ones(2)
    run = program.TorchProgram(TRIPLE, [x], [None, x.double()], (), "live")
    assert run([x])[1].dtype is torch.float64
    with pytest.raises(CompileError, match="PyTorch computes"):
        program.TorchProgram(TRIPLE, [x], [None, torch.ones(3)], (), "live")


def test_an_index_out_of_range_is_an_error_of_the_call():
    graph = AtenGraph("main", ["w", "i"], [Step("y", "aten.embedding.default", (Ref("w"), Ref("i")))], [Ref("y")])
    w, i = torch.randn(4, 3), torch.tensor([1, 3])
    run = program.TorchProgram(graph, [w, i], [w[i]], (), "live")
    assert torch.equal(run([w, i])[0], w[i])
    with pytest.raises(IndexRangeError):
        run([w, torch.tensor([1, 4])])
    assert torch.equal(run([w, i])[0], w[i])


def test_several_threads_call_at_once():
    run, xs, wrong = tripled(torch.zeros(64, 64)), [torch.full((64, 64), float(i)) for i in range(4)], []

    def call(x: Any) -> None:
        for _ in range(100):
            if not torch.equal(run(x), x * 3):
                wrong.append(x)

    workers = [threading.Thread(target=call, args=(x,)) for x in xs]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_a_child_after_fork_calls_too():
    run, x = tripled(torch.zeros(8)), torch.ones(8)
    run(x)
    child = os.fork()
    if not child:
        os._exit(0 if run(x).tolist() == [3.0] * 8 else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_it_uses_as_many_threads_as_pytorch_unless_graphc_was_told(monkeypatch: pytest.MonkeyPatch):
    run, x, before = tripled(torch.zeros(8)), torch.ones(8), torch.get_num_threads()
    with thread_count(2):
        monkeypatch.setattr(threads, "_is_chosen", False)
        monkeypatch.delenv("GRAPHC_THREADS", raising=False)
        try:
            torch.set_num_threads(1)
            run(x)
            assert threads.get_num_threads() == 1
            threads.set_num_threads(2)
            torch.set_num_threads(3)
            run(x)
            assert threads.get_num_threads() == 2
        finally:
            torch.set_num_threads(before)


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_view_of_an_argument_is_a_view_of_its_memory(dynamic: bool):
    torch._dynamo.reset()

    def views(x: Any, y: Any, z: Any) -> Any:
        return x.expand([y.size(0), y.size(1), z.size(1)]), y[1:, ::2].mT, x + 1

    args = torch.rand(1, 1, 4), torch.rand(3, 5, 4), torch.rand(3, 4)
    found = torch.compile(views, backend="graphc", dynamic=dynamic)(*args)
    for ours, theirs in zip(found, views(*args), strict=True):
        assert torch.equal(ours, theirs) and ours.stride() == theirs.stride()
    assert found[0].data_ptr() == args[0].data_ptr() and found[1].storage_offset() == 20
