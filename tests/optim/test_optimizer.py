"""Groups, steps, hooks and state dictionaries of optimizers."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import graphc
from graphc import nn, optim
from graphc.errors import ArgumentError, ShapeError, StateDictError, TraceError
from graphc.optim import SGD, Adam, Optimizer
from tests.optim.compare import parameters, steps_agree, values


def give_gradients(held: list, seed: int = 1) -> None:
    for p, g in zip(held, values(seed), strict=True):
        p.grad = graphc.tensor(g)


def test_groups_have_their_own_options():
    a, b, c = parameters()
    optimizer = SGD([{"params": [a]}, {"params": b, "lr": 0.5}], lr=0.1)
    optimizer.add_param_group({"params": [c], "momentum": 0.9})
    assert [g["lr"] for g in optimizer.param_groups] == [0.1, 0.5, 0.1]
    assert [len(g["params"]) for g in optimizer.param_groups] == [1, 1, 1]
    before = [p.tolist() for p in (a, b)]
    give_gradients([a, b, c])
    optimizer.step()
    for p, old, lr, g in zip((a, b), before, (0.1, 0.5), values(1), strict=False):
        np.testing.assert_allclose(p.detach().numpy(), np.array(old) - lr * g, rtol=1e-12)
    assert set(optimizer.state_of(c)) == {"momentum_buffer"}


@pytest.mark.parametrize("native", [False, True])
def test_an_option_that_is_switched_off_leaves_its_state_unchanged(native):
    (weight,) = held = parameters()[:1]
    optimizer = SGD(held, lr=0.5, momentum=0.9)
    optimizer.native = native
    weight.grad = graphc.tensor(values(1)[0])
    optimizer.step()
    optimizer.param_groups[0]["momentum"] = 0
    before, buffer = weight.detach().clone(), optimizer.state_of(weight)["momentum_buffer"].clone()
    optimizer.step()
    np.testing.assert_allclose(weight.detach().numpy(), (before - 0.5 * weight.grad).numpy(), rtol=1e-12)
    assert graphc.equal(optimizer.state_of(weight)["momentum_buffer"], buffer)


def test_named_parameters():
    net = nn.Linear(2, 1)
    optimizer = SGD(net.named_parameters(), lr=0.1)
    assert optimizer.param_groups[0]["param_names"] == ["weight", "bias"]
    assert optimizer.param_groups[0]["params"] == [net.weight, net.bias]


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ([], ValueError, "empty list of parameters"),
        (graphc.ones(1), TypeError, "one tensor instead of a list of parameters"),
        ([3], TypeError, "takes tensors, got int"),
        ([{"params": {1}}], TypeError, "no fixed order"),
    ],
)
def test_wrong_parameters(params: object, error: type, message: str):
    with pytest.raises(error, match=message):
        SGD(params, lr=0.1)


def test_parameters_in_two_groups_and_results_of_operations():
    p = parameters()[0]
    with pytest.raises(ValueError, match="more than once"):
        SGD([{"params": [p]}, {"params": [p]}], lr=0.1)
    with pytest.raises(ValueError, match="not a leaf"):
        SGD([p * 2], lr=0.1)
    optimizer = SGD([p], lr=0.1)
    with pytest.raises(TypeError, match="a parameter group must be a dict"):
        optimizer.add_param_group([p])
    with pytest.raises(ValueError, match="does not hold this parameter"):
        optimizer.group_of(parameters()[0])


def test_parameters_without_gradient_are_left_alone():
    held = parameters()
    optimizer = Adam(held)
    before = held[1].tolist()
    held[0].grad = graphc.tensor(values(1)[0])
    optimizer.step()
    assert held[1].tolist() == before and held[1] not in optimizer.state and held[0] in optimizer.state
    assert optimizer.step_count == 1


def test_state_tensors_stay_the_same_objects():
    held = parameters()
    optimizer = Adam(held)
    give_gradients(held)
    optimizer.step()
    mean = optimizer.state[held[0]]["exp_avg"]
    give_gradients(held, 2)
    optimizer.step()
    assert optimizer.state[held[0]]["exp_avg"] is mean and mean.numpy().any()


def test_state_of_a_parameter_is_one_dictionary():
    p = parameters()[0]
    for optimizer in (SGD([p], lr=0.1), Adam([p])):
        assert optimizer.state[p] == {}
        state = optimizer.state_of(p)
        assert optimizer.state_of(p) is state is optimizer.state[p]
    assert set(state) == {"step", "exp_avg", "exp_avg_sq"}


def test_nothing_is_written_when_a_step_fails():
    class Failing(SGD):
        def update(self, param, grad, state, hyper):
            if param.shape == ():
                raise ShapeError("the last one fails")
            return super().update(param, grad, state, hyper)

    held = parameters()
    optimizer = Failing(held, lr=0.1, momentum=0.9)
    give_gradients(held)
    before = [p.tolist() for p in held]
    with pytest.raises(ShapeError):
        optimizer.step()
    assert [p.tolist() for p in held] == before
    assert not any(s["momentum_buffer"].numpy().any() for s in optimizer.state.values())
    assert optimizer.step_count == 0


def test_closure():
    p = nn.Parameter(graphc.tensor([2.0]))
    optimizer = SGD([p], lr=0.1)

    def closure():
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    with graphc.no_grad():
        loss = optimizer.step(closure)
    assert loss.item() == 4
    assert p.item() == pytest.approx(1.6)


def test_a_step_is_not_recorded():
    p = nn.Parameter(graphc.ones(2))
    p.grad = graphc.ones(2)
    SGD([p], lr=0.1, momentum=0.9).step()
    assert p.is_leaf and p.requires_grad


def test_zero_grad():
    held = parameters()
    optimizer = SGD(held, lr=0.1)
    give_gradients(held)
    gradient = held[0].grad
    optimizer.zero_grad(set_to_none=False)
    assert not gradient.numpy().any() and held[0].grad is not None
    optimizer.zero_grad()
    assert all(p.grad is None for p in held)


def test_step_hooks():
    held = parameters()
    optimizer = SGD(held, lr=0.1)
    order = []
    optimizer.register_step_pre_hook(lambda o, args, kwargs: order.append(("pre", o.step_count)))
    handle = optimizer.register_step_post_hook(lambda o, args, kwargs: order.append(("post", o.step_count)))
    optimizer.step()
    handle.remove()
    optimizer.step()
    assert order == [("pre", 0), ("post", 1), ("pre", 1)]


def test_training_goes_on_after_loading():
    first, second = parameters(), parameters()
    a, b = Adam(first, lr=0.1), Adam(second, lr=0.5, weight_decay=0.3)
    for seed in (1, 2, 3):
        give_gradients(first, seed)
        a.step()
        if seed == 2:
            for p, q in zip(first, second, strict=True):
                q.data = p.detach().clone()
            b.load_state_dict(pickle.loads(pickle.dumps(a.state_dict())))
    give_gradients(second, 3)
    b.step()
    assert b.param_groups[0]["lr"] == 0.1 and b.param_groups[0]["weight_decay"] == 0.0
    for p, q in zip(first, second, strict=True):
        np.testing.assert_array_equal(p.detach().numpy(), q.detach().numpy())


def test_state_dict_counts_parameters_over_groups():
    a, b, c = parameters()
    optimizer = SGD([{"params": [a]}, {"params": [b, c]}], lr=0.1, momentum=0.9)
    give_gradients([a, b, c])
    optimizer.step()
    state = optimizer.state_dict()
    assert [g["params"] for g in state["param_groups"]] == [[0], [1, 2]]
    assert sorted(state["state"]) == [0, 1, 2]
    assert state["state"][1]["momentum_buffer"].shape == (5,)


def test_loading_what_does_not_fit_changes_nothing():
    held = parameters()
    optimizer = SGD(held, lr=0.1, momentum=0.9)
    give_gradients(held)
    optimizer.step()
    with pytest.raises(StateDictError, match=r"groups of \[3\] parameters, the optimizer of \[2\]"):
        SGD(parameters()[:2], lr=0.1).load_state_dict(optimizer.state_dict())
    wrong = optimizer.state_dict()
    wrong["state"][0] = {"momentum_buffer": graphc.zeros(9)}
    with pytest.raises(StateDictError, match=r"'momentum_buffer' has shape \[9\], the parameter needs \[3, 4\]"):
        optimizer.load_state_dict(wrong)
    assert optimizer.state[held[0]]["momentum_buffer"].numpy().any()
    with pytest.raises(StateDictError, match="lacks 'step' of a parameter"):
        Adam(held).load_state_dict({**wrong, "state": {0: {}}})


def test_a_failed_load_leaves_the_options():
    held = parameters()
    source, target = SGD(held, lr=0.1, momentum=0.9), SGD(held, lr=0.5)
    give_gradients(held)
    source.step()
    wrong = source.state_dict()
    wrong["state"][2] = {"momentum_buffer": graphc.zeros(9)}
    with pytest.raises(StateDictError, match=r"'momentum_buffer' has shape \[9\]"):
        target.load_state_dict(wrong)
    assert (target.param_groups[0]["lr"], target.param_groups[0]["momentum"]) == (0.5, 0.0) and not target.state


def test_state_of_torch_is_taken(torch):
    theirs = [torch.nn.Parameter(torch.tensor(v)) for v in values(0)]
    other = torch.optim.Adam(theirs, lr=0.01)
    for q, g in zip(theirs, values(1), strict=True):
        q.grad = torch.tensor(g)
    other.step()
    saved = other.state_dict()
    saved["state"] = {k: {n: v.numpy() for n, v in s.items()} for k, s in saved["state"].items()}
    ours = [nn.Parameter(graphc.tensor(q.detach().numpy().copy())) for q in theirs]
    optimizer = Adam(ours)
    optimizer.load_state_dict(saved)
    for p, q, g in zip(ours, theirs, values(2), strict=True):
        p.grad, q.grad = graphc.tensor(g), torch.tensor(g)
    optimizer.step()
    other.step()
    for p, q in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=1e-10)


def test_several_groups_as_torch():
    def change(optimizer, step):
        if step == 3:
            optimizer.param_groups[0]["lr"] = 0.5

    steps_agree("SGD", lr=0.1, momentum=0.9, change=change)


def test_text():
    text = repr(SGD(parameters(), lr=0.1))
    assert text.startswith("SGD (\nParameter Group 0\n    dampening: 0.0\n    lr: 0.1\n")


def test_rules_are_required():
    optimizer = Optimizer(parameters(), {})
    with pytest.raises(NotImplementedError, match="Optimizer does not define init_state"):
        optimizer.init_state(optimizer.param_groups[0]["params"][0])
    with pytest.raises(NotImplementedError, match="Optimizer does not define update"):
        optimizer.update(*[None] * 4)


def test_hooks_of_state_dictionaries():
    optimizer = SGD(nn.Linear(2, 1).parameters(), lr=0.1, momentum=0.9)
    seen = []
    handles = [
        optimizer.register_state_dict_pre_hook(lambda o: seen.append("save")),
        optimizer.register_state_dict_post_hook(lambda o, d: {**d, "note": 1}),
        optimizer.register_state_dict_post_hook(lambda o, d: seen.append(sorted(d)), prepend=True),
        optimizer.register_load_state_dict_pre_hook(
            lambda o, d: {**d, "param_groups": [{**d["param_groups"][0], "lr": 9.0}]}
        ),
        optimizer.register_load_state_dict_post_hook(lambda o: seen.append("loaded")),
    ]
    state = optimizer.state_dict()
    assert seen == ["save", ["param_groups", "state"]] and state["note"] == 1
    optimizer.load_state_dict(state)
    assert seen[2:] == ["loaded"] and optimizer.param_groups[0]["lr"] == 9.0 and state["param_groups"][0]["lr"] == 0.1
    for handle in handles:
        handle.remove()
    assert "note" not in optimizer.state_dict() and seen[3:] == []


def test_steps_of_schedules_inside_compiled_functions_are_refused():
    p = nn.Parameter(graphc.ones(2))
    optimizer = optim.SGD([p], lr=0.1)
    schedules = [
        optim.lr_scheduler.StepLR(optimizer, 2),
        optim.lr_scheduler.ReduceLROnPlateau(optimizer),
        optim.lr_scheduler.ChainedScheduler([optim.lr_scheduler.StepLR(optimizer, 2)]),
        optim.lr_scheduler.SequentialLR(optimizer, [optim.lr_scheduler.StepLR(optimizer, 2)] * 2, [3]),
    ]
    for stepping, name in [(s.step, type(s).__name__) for s in schedules]:
        arguments = (1.0,) if name == "ReduceLROnPlateau" else ()
        with pytest.raises(TraceError, match=r"step\(\) runs in a compiled function[\s\S]*compile_step"):
            graphc.compile(lambda x, s=stepping, a=arguments: (s(*a), x)[1])(graphc.ones(2))
    assert optimizer.step_count == 0 and all(s.last_epoch == 0 for s in schedules if hasattr(s, "last_epoch"))


@pytest.mark.parametrize("name", [n for n in graphc.optim.__all__ if n not in ("LBFGS", "Muon", "Optimizer")])
def test_ways_to_compute_a_step_are_taken(name):
    cls = getattr(graphc.optim, name)
    if not isinstance(cls, type):
        pytest.skip("a module")
    weight = [nn.Parameter(graphc.ones(2))]
    optimizer = cls(weight, foreach=False, fused=None, capturable=False)
    assert "foreach" not in optimizer.param_groups[0]
    with pytest.raises(ArgumentError, match="differentiable=True is not supported"):
        cls(weight, differentiable=True)
    with pytest.raises(ArgumentError, match=f"{name} has no argument 'fast'"):
        cls(weight, fast=True)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize(
    ("name", "options"),
    [("SGD", {"momentum": 0.9, "weight_decay": 0.1}), ("Adam", {"amsgrad": True}), ("Rprop", {}), ("ASGD", {})],
)
def test_complex_parameters_are_updated_as_in_torch(torch, name, options, compiled):
    random = np.random.default_rng(0)
    weight, x = (random.standard_normal((*s, 2)).view(complex)[..., 0] for s in ((3, 2), (5, 3)))

    def trained(library):
        model = library.nn.Module()
        model.register_parameter("w", library.nn.Parameter(library.tensor(weight)))
        optimizer = getattr(library.optim, name)(model.parameters(), lr=0.1, **options)
        inputs = library.tensor(x)

        def loss():
            return ((inputs @ model.w - 1).abs() ** 2).mean()

        for _ in range(4):
            optimizer.zero_grad()
            loss().backward()
            if compiled and library is graphc:
                optimizer.native = True
            optimizer.step()
        return model.w.detach().numpy()

    np.testing.assert_allclose(trained(graphc), trained(torch), rtol=1e-6)
