"""DistributedDataParallel: what PyTorch's promises, in eager mode and with compiled forward passes."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.distributed import rank, threads, using
from graphc.distributed.channel import Channel
from graphc.distributed.communicator import Alone
from graphc.distributed.group import Group, group
from graphc.errors import ArgumentError, DistributedError
from graphc.nn.parallel import DistributedDataParallel as DDP
from graphc.passes.pipeline import optimize
from graphc.utils.checkpoint import checkpoint

X = np.random.default_rng(0).normal(size=(12, 4))


class Net(nn.Module):
    """Three layers with names, weights that differ from rank to rank, and a buffer."""

    def __init__(self, dtype: Any = gc.float64):
        super().__init__()
        self.first, self.second, self.third = nn.Linear(4, 5), nn.Linear(5, 4), nn.Linear(4, 2)
        self.register_buffer("seen", gc.zeros(2))
        self.to(dtype)
        values = np.random.default_rng(7 + rank())
        with gc.no_grad():
            for tensor in [*self.parameters(), self.seen]:
                tensor.copy_(gc.tensor(values.normal(size=tuple(tensor.shape)), dtype=dtype))

    def forward(self, x: Any) -> Any:
        return self.third(gc.tanh(self.second(gc.tanh(self.first(x)))))


def rows() -> Any:
    """The rows of this process."""
    here = group()
    return gc.tensor(X[here.rank :: here.size])


def gradients(module: nn.Module) -> list[np.ndarray]:
    return [p.grad.numpy().copy() for p in module.parameters()]


def wanted() -> list[np.ndarray]:
    """The gradients of the mean square of all outputs, by one process with the weights of rank 0."""
    net = Net()
    (net(gc.tensor(X)) ** 2).mean().backward()
    return gradients(net)


def assert_near(result: list[np.ndarray], expected: list[np.ndarray]) -> None:
    for a, b in zip(result, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


def run(function: Callable[[], Any], size: int = 2) -> list[Any]:
    return threads.run(size, lambda _: function())


# ---- what begins


@pytest.mark.parametrize("dtype", [gc.float32, gc.bfloat16, gc.float16, gc.complex64], ids=str)
def test_parameters_and_buffers_are_those_of_rank_0(dtype: Any):
    def made() -> list[Any]:
        net = Net()
        net.more = nn.Parameter(gc.full((2, 3), rank() + 0.5, dtype=dtype))
        net.register_buffer("other", gc.full((), rank(), dtype=dtype))
        net.second.weight = nn.Parameter(net.first.weight.detach().T.clone())
        net.shared = net.second.weight
        DDP(net)
        return [t.tolist() for t in net.state_dict().values()]

    first, second, third = run(made, 3)
    assert first == second == third


def test_without_init_sync_they_are_what_they_were():
    first, second = run(lambda: DDP(Net(), init_sync=False).module.first.weight.tolist())
    assert first != second


def test_other_models_in_other_processes_are_an_error_in_all():
    def made() -> str:
        net = Net()
        if rank():
            net.second = nn.Linear(5, 4, bias=False)
        with pytest.raises(DistributedError) as caught:
            DDP(net)
        return str(caught.value)

    for message in run(made):
        assert "second.bias is missing" in message and "rank 1" in message


def test_what_cannot_be_had_is_said():
    with pytest.raises(ArgumentError, match="no parameter requires a gradient"):
        DDP(nn.Tanh())
    with pytest.raises(ArgumentError, match="dim=1"):
        DDP(Net(), dim=1)
    with pytest.raises(ArgumentError, match=r"device_ids=.*but the parameters are on cpu"):
        DDP(Net(), device_ids=[0])
    model = DDP(Net(), device_ids=None)
    with pytest.raises(AttributeError, match="join") as caught:
        model.join()
    assert "DistributedSampler" in str(caught.value)
    with pytest.raises(AttributeError, match="register_comm_hook"):
        model.register_comm_hook(None, None)
    with pytest.raises(AttributeError, match="'first'"):
        _ = model.first


def test_the_state_has_the_names_of_pytorch():
    model = DDP(Net())
    assert [*model.state_dict()] == [f"module.{name}" for name in Net().state_dict()]
    model.load_state_dict(DDP(Net()).state_dict())


# ---- gradients


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("views", [False, True], ids=["copies", "views"])
def test_gradients_are_means_over_processes(size: int, views: bool):
    def trained() -> list[np.ndarray]:
        model = DDP(Net(), bucket_cap_mb=1e-4, gradient_as_bucket_view=views)
        for _ in range(2):
            model.zero_grad()
            (model(rows()) ** 2).mean().backward()
        return gradients(model)

    result = run(trained, size)
    assert_near(result[0], wanted())
    assert all(a.tobytes() == b.tobytes() for each in result for a, b in zip(each, result[0], strict=True))


@pytest.mark.parametrize("dtype", [gc.float32, gc.bfloat16, gc.float16], ids=str)
def test_gradients_have_the_types_of_their_parameters(dtype: Any):
    def trained() -> list[Any]:
        model = DDP(Net(dtype).requires_grad_(True))
        model(rows().to(dtype)).sum().backward()
        assert all(p.grad.dtype is dtype for p in model.parameters())
        return [p.grad.tolist() for p in model.parameters()]

    first, second = run(trained)
    assert first == second


def test_with_views_gradients_lie_in_the_buckets():
    def shares() -> bool:
        model = DDP(Net(), gradient_as_bucket_view=True)
        model(rows()).sum().backward()
        arrays = [p.grad.numpy() for p in model.parameters()]
        return all(np.shares_memory(a.base, arrays[0].base) for a in arrays)

    assert run(shares) == [True, True]


def test_buckets_are_sent_in_their_order_whatever_is_ready_first(monkeypatch: pytest.MonkeyPatch):
    sent: list[str] = []
    reduce = Channel.reduce

    def noted(self: Channel, name: str, *arrays: Any) -> Any:
        if self.group.rank == 0:
            sent.append(name)
        return reduce(self, name, *arrays)

    monkeypatch.setattr(Channel, "reduce", noted)

    class Turned(Net):
        def forward(self, x: Any) -> Any:
            return self.first(gc.tanh(self.second(gc.tanh(self.third(x)))))

    def trained() -> list[list[str]]:
        net = Turned()
        net.first, net.third = nn.Linear(4, 2).double(), nn.Linear(4, 5).double()
        model = DDP(net, bucket_cap_mb=1e-5)
        model(rows()).sum().backward()
        return [[*bucket.names] for bucket in model.buckets]

    names = run(trained)[0]
    assert [name for each in names for name in each] == [
        f"{layer}.{kind}" for layer in ("third", "second", "first") for kind in ("bias", "weight")
    ]
    assert len(names) > 2 and sent == [f"bucket {i}" for i in range(len(names))]


def test_reductions_begin_while_the_backward_pass_goes_on():
    def begun() -> list[int]:
        model = DDP(Net(), bucket_cap_mb=1e-5)
        counts: list[int] = []
        model.module.first.weight.register_hook(lambda g: counts.append(len(model._reducer._pending)))
        model(rows()).sum().backward()
        return counts

    assert all(counts[0] >= 3 for counts in run(begun)), "all but the buckets of the first layer are on their way"


def test_no_sync_adds_up_and_the_next_pass_reduces_the_sum():
    def trained() -> list[np.ndarray]:
        model, x = DDP(Net()), rows()
        with model.no_sync():
            (model(x[:3]) ** 2).mean().div(2).backward()
        own = gradients(model)
        assert any((a != b).any() for a, b in zip(own, group().gather_objects(own)[1 - rank()], strict=True))
        (model(x[3:]) ** 2).mean().div(2).backward()
        return gradients(model)

    result = run(trained)
    assert_near(result[0], wanted())
    assert_near(result[1], wanted())


def test_where_the_call_stands_decides_whether_its_pass_reduces():
    def trained() -> tuple[bool, bool]:
        model = DDP(Net())
        with model.no_sync():
            y = model(rows()).sum()
        y.backward()
        apart = _differ(model)
        model.zero_grad()
        y = model(rows()).sum()
        with model.no_sync():
            y.backward()
        return apart, _differ(model)

    assert run(trained) == [(True, False)] * 2


def _differ(model: nn.Module) -> bool:
    own = gradients(model)
    return any((a != b).any() for a, b in zip(own, group().gather_objects(own)[1 - rank()], strict=True))


@pytest.mark.parametrize("compiled", [False, True])
def test_passes_that_reduce_nothing(compiled: bool):
    def trained() -> list[bool]:
        model = DDP(Net())

        def first_gradient(x: Any) -> Any:
            return gc.autograd.grad(model(x).sum(), [*model.parameters()])[0]

        first = (gc.compile(first_gradient) if compiled else first_gradient)(rows()).numpy()
        others = group().gather_objects(first)
        assert model.module.first.weight.grad is None
        model.module(rows()).sum().backward()
        return [bool((others[0] != others[1]).any()), _differ(model)]

    assert run(trained) == [[True, True]] * 2


def test_two_passes_over_one_call_reduce_both():
    def trained() -> list[np.ndarray]:
        model = DDP(Net())
        loss = (model(rows()) ** 2).mean()
        loss.backward(retain_graph=True)
        loss.backward()
        return [g / 2 for g in gradients(model)]

    for result in run(trained):
        assert_near(result, wanted())


def test_outputs_may_be_nested_and_other_modules_may_stand_around():
    class Many(Net):
        def forward(self, x: Any) -> Any:
            y = super().forward(x)
            return {"y": y, "more": (y.detach(), [y * 2.0, "text"])}

    def trained() -> list[np.ndarray]:
        model = DDP(Many())
        result = model(rows())
        assert result["more"][1][1] == "text" and not result["more"][0].requires_grad
        (result["more"][1][0] ** 2).mean().div(4).backward()
        return gradients(model)

    for found in run(trained):
        assert_near(found, wanted())


def test_a_parameter_that_the_loss_alone_uses_counts():
    class Part(Net):
        def forward(self, x: Any) -> Any:
            return self.second(self.first(x))

    def trained() -> list[Any]:
        model = DDP(Part())
        loss = model(rows()).sum()
        third = model.module.third
        (loss + (rank() + 1) * (third.weight.sum() + third.bias.sum())).backward()
        return third.bias.grad.tolist()

    assert run(trained) == [[1.5, 1.5]] * 2


def test_checkpoints_within_the_module():
    class Checked(Net):
        reentrant = False

        def forward(self, x: Any) -> Any:
            y = checkpoint(lambda v: gc.tanh(self.first(v)), x, use_reentrant=self.reentrant)
            return self.third(checkpoint(lambda v: gc.tanh(self.second(v)), y, use_reentrant=self.reentrant))

    def trained(reentrant: bool) -> list[np.ndarray]:
        net = Checked()
        net.reentrant = reentrant
        model = DDP(net)
        x = rows()
        (model(x.requires_grad_() if reentrant else x) ** 2).mean().backward()
        return gradients(model)

    for reentrant in (False, True):
        assert_near(run(lambda reentrant=reentrant: trained(reentrant))[0], wanted())


# ---- parameters without a gradient


class Choosing(Net):
    """Uses the second layer in rank 0 only, and the third nowhere."""

    everywhere = False

    def forward(self, x: Any) -> Any:
        y = self.first(x)
        return self.second(y) if rank() == 0 or self.everywhere else y[:, :4]


def test_a_parameter_without_a_gradient_is_an_error_that_names_it_in_all_processes():
    def trained() -> str:
        model = DDP(Choosing())
        with pytest.raises(DistributedError) as caught:
            model(rows()).sum().backward()
        model.module.everywhere = True
        model.module.third.requires_grad_(False)
        again = DDP(model.module)
        again(rows()).sum().backward()
        assert not _differ(again.module.first)
        return str(caught.value)

    first, second = run(trained)
    assert first == second
    for name in ("'second.weight' (rank 1)", "'second.bias' (rank 1)", "'third.weight' (rank 0, 1)"):
        assert name in first
    assert "first" not in first and "find_unused_parameters=True" in first


@pytest.mark.parametrize("option", ["find_unused_parameters", "static_graph"])
def test_unused_parameters_count_as_zeros_or_stay_as_they_were(option: str):
    def trained() -> Any:
        model = DDP(Choosing(), **{option: True}, bucket_cap_mb=1e-5)
        model(rows()).sum().backward()
        return model.module.second.bias.grad.tolist(), model.module.third.bias.grad

    assert run(trained) == [([3.0] * 4, None)] * 2


def test_unused_in_one_pass_of_an_accumulation_is_used():
    def trained() -> Any:
        model = DDP(Choosing(), find_unused_parameters=True)
        model.module.everywhere = True
        with model.no_sync():
            model(rows()).sum().backward()
        model.module.everywhere = False
        model(rows()).sum().backward()
        return model.module.second.bias.grad.tolist(), model.module.third.bias.grad

    assert run(trained) == [([9.0] * 4, None)] * 2


# ---- buffers


def test_buffers_are_those_of_rank_0_at_each_call_that_reduces():
    class Counting(Net):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", gc.tensor(0))

        def forward(self, x: Any) -> Any:
            with gc.no_grad():
                self.count.add_(1 + rank())
                self.seen.add_(rank())
            return super().forward(x)

    def trained(**options: Any) -> list[int]:
        model = DDP(Counting(), **options)
        counts = []
        for call in range(4):
            with gc.no_grad() if call == 2 else gc.enable_grad():
                model.train(call != 3)
                model(rows())
            counts.append(model.module.count.item())
        return counts

    assert run(trained) == [[1, 2, 3, 4], [2, 3, 5, 7]]
    assert run(lambda: trained(broadcast_buffers=False))[1] == [2, 4, 6, 8]


# ---- compiled code


@pytest.mark.parametrize("inside", [False, True], ids=["around", "inside"])
def test_compiled_forward_passes_reduce_as_eager_ones_do(inside: bool):
    def trained() -> list[list[np.ndarray]]:
        net = Net()
        model = DDP(net)
        forward = gc.compile(model)
        if inside:
            model.module = gc.compile(net)
            forward = model
        results = []
        for _ in range(2):
            model.zero_grad()
            (forward(rows()) ** 2).mean().backward()
            results.append(gradients(net))
        with model.no_sync():
            net.zero_grad()
            (forward(rows()) ** 2).mean().backward()
        assert _differ(net)
        return results

    for result in run(trained):
        assert_near(result[0], wanted())
        assert_near(result[1], wanted())


@pytest.mark.parametrize("buckets", [25, 1e-5], ids=["one bucket", "several"])
def test_a_compiled_training_function_reduces_in_its_graph(buckets: float):
    def trained(compiled: bool) -> list[np.ndarray]:
        net = Net()
        model = DDP(net, bucket_cap_mb=buckets)
        optimizer = gc.optim.Adam(net.parameters(), lr=0.01)

        def train(x: Any) -> Any:
            optimizer.zero_grad()
            loss = (model(x) ** 2).mean()
            loss.backward()
            gc.nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            optimizer.step()
            return loss

        train = gc.compile(train) if compiled else train
        for _ in range(3):
            train(rows())
        with model.no_sync():
            train(rows())
        return [p.detach().numpy().copy() for p in net.parameters()]

    compiled, eager = run(lambda: trained(True)), run(lambda: trained(False))
    for result, expected in zip(compiled, eager, strict=True):
        assert_near(result, expected)
    assert any((a != b).any() for a, b in zip(*compiled, strict=True)), "no_sync reduced gradients"


def test_gradients_that_a_compiled_function_leaves_are_means():
    def trained() -> list[np.ndarray]:
        net = Net()
        model = DDP(net)

        @gc.compile
        def train(x: Any) -> Any:
            loss = (model(x) ** 2).mean()
            loss.backward()
            return loss

        train(rows())
        return gradients(net)

    for result in run(trained):
        assert_near(result, wanted())


def test_one_process_trains_without_calls_of_python_in_the_program():
    model = DDP(Net())

    @gc.compile
    def train(x: Any) -> Any:
        loss = (model(x) ** 2).mean()
        loss.backward()
        return loss

    train(rows())
    assert not any(node.op.name == "host_call" for node in optimize(train.variants[0].traced.graph).nodes())


# ---- copies


def test_copies_reduce_their_own_gradients():
    def trained(copied: Callable[[Any], Any]) -> list[np.ndarray]:
        model = copied(DDP(Net()))
        (model(rows()) ** 2).mean().backward()
        return gradients(model)

    def saved(model: Any) -> Any:
        return pickle.loads(pickle.dumps(model))

    for copied in (copy.deepcopy, saved):
        for result in run(lambda copied=copied: trained(copied)):
            assert_near(result, wanted())


def test_the_group_may_be_given():
    def trained() -> list[np.ndarray]:
        here = group()
        with using(Group(Alone())):
            model = DDP(Net(), process_group=here)
            assert model.process_group is here
            (model(gc.tensor(X[here.rank :: here.size])) ** 2).mean().backward()
        return gradients(model)

    assert_near(run(trained)[1], wanted())
