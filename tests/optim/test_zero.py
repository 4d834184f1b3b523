"""ZeroRedundancyOptimizer: processes share state and work, and have the bits that the plain optimizer computes."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import graphc
from graphc import nn, optim
from graphc.distributed import checkpoint, threads, using
from graphc.distributed.communicator import Alone
from graphc.distributed.group import Group
from graphc.distributed.optim import ZeroRedundancyOptimizer
from graphc.errors import ArgumentError, AttributeValueError, DistributedError, StateDictError
from graphc.optim import zero
from tests.distributed.processes import launch, needs_mpi

RULES: list[tuple[Any, dict[str, Any]]] = [
    (optim.AdamW, {"lr": 0.01, "amsgrad": True}),
    (optim.SGD, {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}),
    (optim.Adafactor, {"lr": 0.05}),
    (optim.ASGD, {"lr": 0.05}),
    (optim.Adadelta, {}),
    (optim.Adagrad, {}),
    (optim.Adamax, {}),
    (optim.NAdam, {}),
    (optim.RAdam, {}),
    (optim.RMSprop, {"momentum": 0.5, "centered": True}),
    (optim.Rprop, {}),
]
SHAPES = [(16, 6), (16,), (8, 16), (8,), (3, 8), (3,)]


class Halving(optim.Optimizer):
    """A rule of one's own, which reads an attribute."""

    def __init__(self, params: Any, lr: float = 0.1):
        self.share = 0.5
        super().__init__(params, {"lr": lr})

    def init_state(self, param: Any) -> Any:
        return {"mean": param * 0}

    def update(self, param: Any, grad: Any, state: Any, hyper: Any) -> Any:
        mean = state["mean"] * self.share + grad
        return param - mean * hyper["lr"], {"mean": mean}


def network(seed: int = 5) -> nn.Module:
    """The same in every thread, which share the random state."""
    net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 8), nn.Tanh(), nn.Linear(8, 3))
    draw = np.random.default_rng(seed)
    net.load_state_dict({k: graphc.tensor(draw.normal(size=v.shape).astype("f4")) for k, v in net.state_dict().items()})
    return net


def parameters(seed: int = 5) -> list[Any]:
    draw = np.random.default_rng(seed)
    return [nn.Parameter(graphc.tensor(draw.normal(size=shape).astype("f4"))) for shape in SHAPES]


def steps(optimizer: Any, count: int = 10, first: int = 0) -> Any:
    """Steps with gradients that all processes know; the rate falls."""
    optimizer.native = True
    for number in range(first, first + count):
        draw = np.random.default_rng(number)
        for group in optimizer.param_groups:
            for param in group["params"]:
                param.grad = graphc.tensor(draw.normal(size=param.shape).astype(param.dtype.numpy))
            group["lr"] = 0.1 / (1 + number)
        optimizer.step()
    return optimizer


def values(optimizer: Any) -> list[np.ndarray]:
    return [p.detach().numpy() for group in optimizer.param_groups for p in group["params"]]


def same(actual: list[np.ndarray], expected: list[np.ndarray]) -> None:
    for a, b in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.sampled(50)
@pytest.mark.parametrize(("rule", "options"), [*RULES, (Halving, {})], ids=lambda v: getattr(v, "__name__", ""))
def test_ten_steps_have_the_bits_of_the_plain_optimizer(rule: Any, options: dict[str, Any]):
    expected = values(steps(rule(parameters(), **options)))
    for size in (3, 4):
        for weights_of_rank in threads.run(
            size, lambda _: values(steps(ZeroRedundancyOptimizer(parameters(), rule, **options)))
        ):
            same(weights_of_rank, expected)


def test_messages_hold_some_bytes_of_one_type_and_owner(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(zero, "MESSAGE_BYTES", 400)

    def run(_: int) -> list[np.ndarray]:
        more = [nn.Parameter(graphc.ones(3, dtype=graphc.float64)) for _ in range(3)]
        optimizer = ZeroRedundancyOptimizer([*parameters(), *more], optim.SGD)
        messages = optimizer._messages(optimizer.param_groups[0]["params"])
        assert sum(len(bucket) for _, bucket in messages) == 9
        for owner, bucket in messages:
            assert {optimizer.owner(p) for p in bucket} == {owner}
            assert len({p.dtype for p in bucket}) == 1
            assert len(bucket) == 1 or sum(p.numel() * p.dtype.itemsize for p in bucket) <= 400
        assert len(messages) > 4
        return values(steps(optimizer, 2))

    first, second = threads.run(2, run)
    same(first, second)
    same(first[:6], values(steps(optim.SGD(parameters()), 2)))


def test_muon_which_looks_at_whole_matrices():
    def matrices() -> list[Any]:
        return [p for p in parameters() if len(p.shape) == 2]

    expected = values(steps(optim.Muon(matrices())))
    for weights_of_rank in threads.run(2, lambda _: values(steps(ZeroRedundancyOptimizer(matrices(), optim.Muon)))):
        same(weights_of_rank, expected)


def test_each_process_has_state_of_its_share_only():
    def state_of(_: int) -> tuple[int, set[int]]:
        optimizer = steps(ZeroRedundancyOptimizer(parameters(), optim.Adam), 1)
        return sum(v.numel() for s in optimizer.state.values() for v in s.values()), {
            i for i, p in enumerate(optimizer.param_groups[0]["params"]) if p in optimizer.state
        }

    (one, first), (two, second) = threads.run(2, state_of)
    assert first | second == set(range(6))
    assert not first & second
    total = sum(2 * int(np.prod(shape)) + 1 for shape in SHAPES)
    assert one + two == total
    assert max(one, two) < 0.6 * total


def test_operations_have_the_same_bits_too():
    """Without native code; what eager mode compiles later would differ in the last bits, with and without shares."""

    def run(make: Any) -> list[np.ndarray]:
        optimizer = make(parameters())
        optimizer.native = False
        for number in range(3):
            for param in optimizer.param_groups[0]["params"]:
                param.grad = graphc.tensor(np.random.default_rng(number).normal(size=param.shape).astype("f4"))
            optimizer.step()
        return values(optimizer)

    expected = run(lambda p: optim.SGD(p, 0.1, 0.9))
    for weights_of_rank in threads.run(
        2, lambda _: run(lambda p: ZeroRedundancyOptimizer(p, optim.SGD, lr=0.1, momentum=0.9))
    ):
        same(weights_of_rank, expected)


def trained(make: Any, is_step: bool, count: int = 10) -> list[np.ndarray]:
    """The weights after steps of ``compile_step``, or of a compiled training function, with clipping."""
    net = network()
    optimizer = make(net.parameters())

    def squares(output: Any) -> Any:
        return (output * output).mean()

    def train(x: Any) -> Any:
        optimizer.zero_grad()
        loss = squares(net(x))
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        optimizer.step()
        return loss

    step: Any = graphc.compile(train) if is_step else graphc.compile_step(net, squares, optimizer, clip_norm=0.5)
    for number in range(count):
        optimizer.param_groups[0]["lr"] = 0.1 / (1 + number)
        step(graphc.tensor(np.random.default_rng(number).normal(size=(4, 6)).astype("f4")))
    assert optimizer.step_count == count
    return values(optimizer)


@pytest.mark.parametrize(
    ("rule", "is_step"),
    [(optim.Adam, False), (optim.Adafactor, False), (optim.Adam, True)],
    ids=["compile_step", "compile_step, whole matrices", "training function"],
)
def test_compiled_steps_have_the_bits_of_the_plain_optimizer(rule: Any, is_step: bool):
    expected = trained(rule, is_step)
    for weights_of_rank in threads.run(2, lambda _: trained(lambda p: ZeroRedundancyOptimizer(p, rule), is_step)):
        same(weights_of_rank, expected)


def test_a_parameter_that_is_used_after_the_step_in_a_compiled_function_is_the_new_one():
    def last(make: Any) -> float:
        net = network()
        optimizer = make(net.parameters())

        @graphc.compile
        def twice(x: Any) -> Any:
            for _ in range(2):
                loss = net(x).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            return net(x).square().mean()

        return twice(graphc.tensor(np.random.default_rng(0).normal(size=(4, 6)).astype("f4"))).item()

    expected = last(optim.Adam)
    assert threads.run(2, lambda _: last(lambda p: ZeroRedundancyOptimizer(p, optim.Adam))) == [expected, expected]


def test_a_compiled_step_waits_for_others_after_its_own_update():
    def calls(_: int) -> list[tuple[int, int]]:
        net = network()
        optimizer = ZeroRedundancyOptimizer(net.parameters(), optim.SGD, lr=0.1)
        step = graphc.compile_step(net, lambda output: output.square().mean(), optimizer)
        graph = step.prepare(graphc.ones(4, 6)).graph
        sizes = [0, 0]
        for param in net.parameters():
            sizes[optimizer.owner(param)] += param.numel()
        nodes = [n for n in graph.nodes() if n.op.name == "host_call"]
        assert [n.operands[1].type.size for n in nodes] == [sizes[graphc.distributed.rank()]] * 2
        return [(len(n.operands), len(n.results)) for n in nodes]

    first, second = threads.run(2, calls)
    assert first == second[::-1]
    assert sorted(first) == [(2, 1), (2, 2)]


def test_groups_schedules_closures_and_hooks_are_those_of_any_optimizer():
    def run(make: Any) -> tuple[list[np.ndarray], list[str]]:
        params, events = parameters(), []
        optimizer = make(params[:2])
        optimizer.add_param_group({"params": params[2:], "lr": 0.5})
        optimizer.native = True
        schedule = optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
        optimizer.register_step_pre_hook(lambda *_: events.append("before"))
        optimizer.register_step_post_hook(lambda *_: events.append("after"))

        def closure() -> Any:
            optimizer.zero_grad()
            loss = sum([(p * p).sum() for p in params], graphc.tensor(0.0))
            loss.backward()
            events.append("loss")
            return loss

        for _ in range(4):
            assert optimizer.step(closure).item() > 0
            schedule.step()
        assert [group["lr"] for group in optimizer.param_groups] == [0.025, 0.125]
        return [p.detach().numpy() for p in params], events

    expected, told = run(lambda p: optim.SGD(p, lr=0.1))
    for weights_of_rank, heard in threads.run(
        3, lambda _: run(lambda p: ZeroRedundancyOptimizer(p, optim.SGD, lr=0.1))
    ):
        same(weights_of_rank, expected)
        assert heard == told == ["before", "loss", "after"] * 4


def test_a_consolidated_state_goes_on_with_another_number_of_processes():
    def half(_: int) -> Any:
        optimizer = steps(ZeroRedundancyOptimizer(parameters(), optim.Adam), 5)
        with pytest.raises(StateDictError, match="only has the state of its own parameters"):
            optimizer.state_dict()
        optimizer.consolidate_state_dict(to=1)
        if graphc.distributed.rank() != 1:
            with pytest.raises(StateDictError):
                optimizer.state_dict()
            return None
        return copy.deepcopy(optimizer.state_dict()), copy.deepcopy(values(optimizer))

    _, (state, weights) = threads.run(2, half)
    plain = steps(optim.Adam(parameters()), 5)
    for number, entries in plain.state_dict()["state"].items():
        for name, value in entries.items():
            np.testing.assert_array_equal(state["state"][number][name].numpy(), value.numpy())
    expected = values(steps(plain, 5, first=5))

    def rest(make: Any) -> list[np.ndarray]:
        params = [nn.Parameter(graphc.tensor(value)) for value in weights]
        optimizer = make(params)
        optimizer.load_state_dict(state)
        return values(steps(optimizer, 5, first=5))

    for weights_of_rank in threads.run(3, lambda _: rest(lambda p: ZeroRedundancyOptimizer(p, optim.Adam))):
        same(weights_of_rank, expected)
    same(rest(optim.Adam), expected)


def test_a_state_that_was_consolidated_before_a_step_is_no_longer_given():
    def run(_: int) -> None:
        optimizer = steps(ZeroRedundancyOptimizer(parameters(), optim.Adam), 1)
        optimizer.consolidate_state_dict()
        steps(optimizer, 1, first=1)
        with pytest.raises(StateDictError):
            optimizer.state_dict()

    threads.run(2, run)


def test_one_process_alone_has_a_plain_optimizer():
    optimizer = steps(ZeroRedundancyOptimizer(parameters(), optim.Adam))
    same(values(optimizer), values(steps(optim.Adam(parameters()))))
    assert set(optimizer.state_dict()["state"]) == set(range(6))
    optimizer.consolidate_state_dict()


def test_copies_and_pickles_know_their_share():
    def run(_: int) -> None:
        optimizer = steps(ZeroRedundancyOptimizer(parameters(), optim.Adam), 2)
        for other in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
            same(values(steps(other, 2, first=2)), values(steps(copy.deepcopy(optimizer), 2, first=2)))
            assert len(other.state) == len(optimizer.state) < len(SHAPES)

    threads.run(2, run)


def test_clipping_sees_whole_gradients():
    def norm(_: int) -> float:
        params = parameters()
        ZeroRedundancyOptimizer(params, optim.Adam)
        for param in params:
            param.grad = param.detach().clone()
        return nn.utils.clip_grad_norm_(params, 1.0).item()

    assert len({norm(0), *threads.run(2, norm)}) == 1


def test_compiled_steps_go_on_from_a_checkpoint_of_another_number_of_processes(tmp_path: Any):
    def made(make: Any) -> tuple[Any, Any, dict[str, Any]]:
        net = network()
        optimizer = make(net.parameters())
        step = graphc.compile_step(net, lambda output: output.square().mean(), optimizer)
        return step, optimizer, {"model": net, "step": step}

    def run(step: Any, first: int) -> None:
        for number in range(first, first + 3):
            step(graphc.tensor(np.random.default_rng(number).normal(size=(4, 6)).astype("f4")))

    def shared(params: Any) -> Any:
        return ZeroRedundancyOptimizer(params, optim.Adam)

    def begin(_: int) -> None:
        step, _, state = made(shared)
        run(step, 0)
        checkpoint.save(state, tmp_path)

    def go_on(make: Any) -> list[np.ndarray]:
        step, optimizer, state = made(make)
        checkpoint.load(state, tmp_path)
        assert optimizer.step_count == 3
        run(step, 3)
        return values(optimizer)

    step, optimizer, _ = made(optim.Adam)
    run(step, 0)
    run(step, 3)
    threads.run(2, begin)
    same(go_on(optim.Adam), values(optimizer))
    for weights_of_rank in threads.run(3, lambda _: go_on(shared)):
        same(weights_of_rank, values(optimizer))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"optimizer_class": optim.LBFGS}, "more than an update rule"),
        ({"optimizer_class": nn.Linear}, "not an optimizer class"),
        ({"optimizer_class": optim.Adam, "overlap_with_ddp": True}, "within the backward pass"),
        ({"optimizer_class": optim.Adam, "process_group": "others"}, "process_group"),
    ],
)
def test_what_cannot_be_shared_is_refused(arguments: dict[str, Any], message: str):
    with pytest.raises(ArgumentError, match=message):
        ZeroRedundancyOptimizer(parameters(), **arguments)


def test_options_are_checked_by_the_rule_that_has_them():
    with pytest.raises(AttributeValueError, match="betas"):
        ZeroRedundancyOptimizer(parameters(), optim.Adam, betas=(2.0, 0.5))


def test_other_parameters_in_one_process_are_an_error_in_all():
    def run(rank: int) -> str:
        with pytest.raises(DistributedError, match="parameters of the optimizer of rank 1 differ") as error:
            ZeroRedundancyOptimizer(parameters()[: 6 - rank], optim.Adam)
        return str(error.value)

    first, second = threads.run(2, run)
    assert first == second
    assert "parameter 5 is missing" in first


def test_an_optimizer_of_another_number_of_processes_is_refused():
    optimizer = threads.run(2, lambda _: ZeroRedundancyOptimizer(parameters(), optim.Adam))[0]
    with using(Group(Alone())), pytest.raises(ArgumentError, match="created for 2 processes"):
        steps(optimizer, 1)


@needs_mpi
def test_two_processes_have_the_bits_of_one(tmp_path: Any):
    done = launch("tests.optim.zero_processes", 2, tmp_path, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("equal") == 2
    # One process alone reads what two have written.
    weights_of_rank = checkpoint.load(None, tmp_path)
    expected = steps(optim.Adam(parameters()))
    for number, entries in expected.state_dict()["state"].items():
        for name, value in entries.items():
            np.testing.assert_array_equal(weights_of_rank["optimizer"]["state"][number][name].numpy(), value.numpy())
