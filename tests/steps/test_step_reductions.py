"""Training steps of several processes: the reductions of gradients in their graphs."""

import numpy as np
import pytest

import graphc as gc
import graphc.distributed as dist
from graphc import nn
from graphc.base.errors import ArgumentError, DistributedError, GradientError, IndexRangeError
from graphc.distributed.threads import run
from graphc.ir.op import Trait
from graphc.models.step_entry import step_parts
from graphc.nn import functional as F
from graphc.nn.parallel import DistributedDataParallel
from graphc.optim import AdamW
from tests.distributed.processes import launch, needs_mpi
from tests.steps.step_ranks import cnn, mlp, trained, weights

CLOSE = 1e-12


@pytest.mark.parametrize(("make", "ranks"), [(mlp, 3), (cnn, 2)])
def test_several_ranks_do_what_one_process_does_on_the_whole_batch(make, ranks):
    net = make()
    one = weights(trained(net, wrap=None, clip_norm=0.5, rule=AdamW)[0])
    many = run(ranks, lambda rank: weights(trained(net, clip_norm=0.5, rule=AdamW)[0]))
    assert all(np.array_equal(result, many[0]) for result in many)
    assert np.abs(many[0] - one).max() < CLOSE


@pytest.mark.parametrize(
    "options",
    [
        {"micro": 2, "clip_norm": 0.3},
        {"clip_value": 0.01, "grads": True},
        {"loss_scale": "dynamic", "ema": 0.9},
        {"buckets": 25},
    ],
    ids=lambda options: next(iter(options)),
)
def test_all_that_a_step_does_with_gradients_sees_the_means(options):
    net = mlp()
    one, step = trained(net, wrap=None, **options)
    many = run(2, lambda rank: trained(net, **options))
    assert all(np.abs(weights(result) - weights(one)).max() < CLOSE for result, _ in many)
    norms = [s.last_grad_norm for s in (step, *(s for _, s in many))]
    if "clip_norm" in options:
        assert all(abs(n.item() - norms[0].item()) < CLOSE for n in norms)
    else:
        assert norms == [None] * 3


def test_a_step_that_runs_as_python_reduces_too():
    net = mlp()
    one = weights(trained(net, wrap=None, clip_norm=0.5)[0])

    def debugged(rank):
        with gc.debug(eager=True):
            return weights(trained(net, clip_norm=0.5)[0])

    assert all(np.abs(result - one).max() < CLOSE for result in run(2, debugged))


def test_one_process_has_the_program_without_reductions():
    net = mlp()
    plain, wrapped = trained(net, 1, wrap=None)[1], trained(net, 1)[1]
    count = [len(list(step.graphs[0].nodes())) for step in (plain, wrapped)]
    assert count[0] == count[1]
    assert not any(n.op.has(Trait.HOST) for n in wrapped.graphs[0].nodes())


class _Half(nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.unused = nn.Linear(3, 2), nn.Linear(3, 2)

    def forward(self, x):
        return self.used(x)


def _half(rank, **options):
    net = _Half()
    module = DistributedDataParallel(net, **options)
    step = gc.compile_step(module, lambda y: y.sum(), gc.optim.SGD(net.parameters(), lr=0.1))
    step(gc.ones(2, 3) * (rank + 1))
    return net.used.weight.detach().numpy(), net.unused.weight.detach().numpy()


def test_parameters_that_the_loss_does_not_reach_are_named():
    with pytest.raises(ArgumentError, match=r"does not depend on unused\.bias, unused\.weight"):
        run(2, _half)


def test_parameters_that_no_process_uses_may_be_left_out():
    (first, kept), (other, same) = run(2, lambda rank: _half(rank, find_unused_parameters=True))
    assert np.array_equal(first, other) and np.array_equal(kept, same)


def test_processes_whose_reductions_differ_are_told_so_all_of_them():
    def stepped(rank):
        net = mlp()
        module = DistributedDataParallel(net, bucket_cap_mb=0.0005)
        params = [*net.parameters()][rank:]
        step = gc.compile_step(module, F.cross_entropy, gc.optim.SGD(params, lr=0.1))
        with pytest.raises(DistributedError, match=r"rank 1 differ.*0\.weight is missing"):
            step(gc.ones(4, 12).double(), gc.zeros(4, dtype=gc.int64))
        return True

    assert run(2, stepped) == [True, True]


@pytest.mark.parametrize("buckets", [25, 0.0001])
def test_a_failed_reduction_is_the_error_of_the_step_and_nothing_is_updated(buckets):
    def stepped(rank):
        net, step = trained(mlp(), 2, buckets=buckets)
        before = weights(net)
        communicator = step.model.channel._communicator
        reduce, left = communicator.all_reduce, ["the wire is cut"]
        communicator.all_reduce = lambda *given: _fail(left.pop()) if left else reduce(*given)
        with pytest.raises(DistributedError, match="the wire is cut"):
            step(gc.ones(8, 12).double(), gc.zeros(8, dtype=gc.int64))
        return np.array_equal(weights(net), before)

    assert run(2, stepped) == [True, True]


def _fail(message):
    raise OSError(message)


def test_a_check_that_fails_says_what_it_says_in_one_process():
    def stepped(rank):
        net, step = trained(mlp(), 2)
        before = weights(net)
        with pytest.raises(IndexRangeError):
            step(gc.ones(8, 12).double(), gc.full((8,), 9, dtype=gc.int64))
        step(gc.ones(8, 12).double(), gc.zeros(8, dtype=gc.int64))
        return before, weights(net)

    (before, after), (_, other) = run(2, stepped)
    assert np.array_equal(after, other) and not np.array_equal(before, after)


def test_what_cannot_be_had_with_several_processes_is_refused():
    def stepped(rank):
        step = trained(mlp(), 1)[1]
        with step.model.no_sync(), pytest.raises(GradientError, match="no_sync"):
            step(gc.ones(8, 12).double(), gc.zeros(8, dtype=gc.int64))
        with pytest.raises(ArgumentError, match="first_nan stops the call of one process"):
            stopped = gc.compile_step(step.model, F.cross_entropy, step.optimizer, first_nan=True)
            stopped(gc.ones(8, 12).double(), gc.zeros(8, dtype=gc.int64))
        with pytest.raises(ArgumentError, match="has reductions over processes"):
            step_parts(step, (gc.ones(8, 12).double(), gc.zeros(8, dtype=gc.int64)), {})
        return True

    assert all(run(2, stepped))


def test_a_step_is_recorded_where_somebody_asks():
    with dist.timeline() as spans:
        run(2, lambda rank: trained(mlp(), 1))
    assert {"start", "reduce", "wait"} <= {span.kind for span in spans}
    assert all(span.end >= span.begin for span in spans)


@pytest.mark.sampled(50)
@needs_mpi
@pytest.mark.parametrize("ranks", [2, 3])
def test_processes_have_the_same_bits_after_twenty_steps(ranks):
    result = launch("tests.steps.step_ranks", ranks)
    assert result.returncode == 0, result.stderr
    rows = [line.split() for line in result.stdout.splitlines()]
    for make in ("mlp", "cnn"):
        mine = [row for row in rows if row[:1] == [make]]
        assert len(mine) == ranks and len({row[3] for row in mine}) == 1
        assert all(float(row[2]) < CLOSE for row in mine)
