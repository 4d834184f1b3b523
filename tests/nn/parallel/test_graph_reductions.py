"""Reductions of gradients in graphs: where they begin, and where their memory lies."""

import pytest

import graphc as gc
from graphc import nn
from graphc.distributed.threads import run
from graphc.fusion.vertical import fuse
from graphc.lowering.program import lower_graph
from graphc.nn.parallel import DistributedDataParallel
from graphc.passes.pipeline import optimize
from tests.steps.step_ranks import cnn, mlp, trained


def _program(make, buckets):
    """The lowered program of rank 0 of two, its kernels by name, and the numbers of its calls of Python."""
    graph = run(2, lambda rank: trained(make(), 0, buckets=buckets, traced=True))[0]
    program = lower_graph(optimize(graph))
    kernels = {k.name: k for k in program.kernels}
    return program, kernels, [i for i, c in enumerate(program.calls) if kernels[c.kernel].host >= 0]


@pytest.mark.parametrize("make", [mlp, cnn])
def test_a_reduction_begins_before_the_gradients_of_the_next_bucket_are_computed(make):
    program, _, calls = _program(make, 0.0001)
    assert len(calls) > 1
    flats = [program.calls[i].args[2] for i in calls]
    for start, following in zip(calls, flats[1:], strict=False):
        assert start < min(i for i, call in enumerate(program.calls) if following in call.args)
    assert set(flats) <= set(program.calls[calls[-1]].args)


@pytest.mark.parametrize("make", [mlp, cnn])
def test_gradients_are_computed_where_they_lie_in_the_bucket(make):
    program, kernels, calls = _program(make, 0.0005)
    for start in calls:
        flat, written = program.calls[start].args[2], []
        for call in program.calls[:start]:
            for i, (name, buffer) in enumerate(zip(call.args, kernels[call.kernel].arguments, strict=True)):
                if name == flat:
                    assert buffer.role != "in"
                    written.append((call.offset(i).constant, call.offset(i).constant + buffer.size))
        stops = [0, *(stop for _, stop in sorted(written))]
        assert [first for first, _ in sorted(written)] == stops[:-1] and stops[-1] == program.storage(flat).size


def test_a_bucket_of_many_parameters_is_no_copy_either():
    def traced(rank):
        net = nn.Sequential(*[nn.Linear(3, 3) for _ in range(20)])
        step = gc.compile_step(DistributedDataParallel(net), lambda y: y.sum(), gc.optim.SGD(net.parameters(), lr=0.1))
        return step.prepare(gc.ones(2, 3)).graph

    graph = optimize(run(2, traced)[0])
    (flat,) = fuse(graph).laid_out
    assert len(flat.operands) == 40
    program = lower_graph(graph)
    kernels = {k.name: k for k in program.kernels}
    whole = next(c.args[2] for c in program.calls if kernels[c.kernel].host >= 0)
    for call in [c for c in program.calls if whole in c.args and kernels[c.kernel].host < 0]:
        assert kernels[call.kernel].arguments[call.args.index(whole)].role == "out"


def test_the_first_token_is_a_number_in_all_kernels():
    def traced(rank):
        net = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
        step = gc.compile_step(DistributedDataParallel(net), lambda y: y.sum(), gc.optim.SGD(net.parameters(), lr=0.1))
        return step.prepare(gc.ones(2, 3)).graph

    program = lower_graph(optimize(run(2, traced)[0]))
    kernels = {k.name: k for k in program.kernels}
    token = next(call.args[1] for call in program.calls if kernels[call.kernel].host >= 0)
    readers = [kernels[call.kernel] for call in program.calls if token in call.args]
    assert [k.host >= 0 for k in readers] == [False, True]
    assert [b.role for b in readers[0].arguments] == ["out"]
