"""Native updates of optimizers: the same numbers as the rule gives, for all rules, settings and schedules."""

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import graphc
from graphc import nn, optim
from graphc.calls import update
from graphc.calls.update import Update
from graphc.eager.dispatcher import references

SHAPES = [(3, 4), (5,), (), (3, 4)]
RULES = [
    ("SGD", {}),
    ("SGD", {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("SGD", {"momentum": 0.9, "dampening": 0.5, "maximize": True}),
    ("Adam", {}),
    ("Adam", {"amsgrad": True, "weight_decay": 0.1}),
    ("AdamW", {"betas": (0.8, 0.99)}),
    ("NAdam", {}),
    ("RAdam", {}),
    ("Adamax", {}),
    ("Adagrad", {"lr_decay": 0.1}),
    ("Adadelta", {}),
    ("RMSprop", {"momentum": 0.5, "centered": True}),
    ("Rprop", {}),
    ("ASGD", {"t0": 2.0}),
    ("Adafactor", {}),
]


@pytest.fixture(autouse=True)
def native_updates(monkeypatch):
    """The updates that were made programs."""
    found = []
    init = Update.__init__

    def counted(self, *args):
        init(self, *args)
        found.append(self)

    monkeypatch.setattr(update.Update, "__init__", counted)
    return found


def parameters(dtype="float64", shapes=SHAPES):
    rng = np.random.default_rng(0)
    return [nn.Parameter(graphc.tensor(np.asarray(rng.standard_normal(s), dtype))) for s in shapes]


def pair(name, options, dtype="float64", shapes=SHAPES):
    """Two optimizers of equal parameters, one of which steps natively."""
    optimizers = []
    for native in (True, False):
        optimizer = getattr(optim, name)(parameters(dtype, shapes), **options)
        optimizer.native = native
        optimizers.append(optimizer)
    return optimizers


def give(optimizers, seed, without=()):
    for optimizer in optimizers:
        rng = np.random.default_rng(seed)
        for i, p in enumerate(p for g in optimizer.param_groups for p in g["params"]):
            values = np.asarray(rng.standard_normal(p.shape), p.dtype.numpy)
            p.grad = None if i in without else graphc.tensor(values)


def agree(first, second, rtol=1e-12):
    for a, b in zip(first.param_groups, second.param_groups, strict=True):
        for p, q in zip(a["params"], b["params"], strict=True):
            np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=rtol, atol=rtol)
            assert first.state[p].keys() == second.state[q].keys()
            for key, value in first.state[p].items():
                np.testing.assert_allclose(value.numpy(), second.state[q][key].numpy(), rtol=rtol, atol=rtol)


@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-12), ("float32", 2e-5)])
@pytest.mark.parametrize(("name", "options"), RULES)
def test_the_same_numbers_as_the_rule(name, options, dtype, rtol, native_updates):
    both = pair(name, options, dtype)
    for step in range(6):
        give(both, step)
        for optimizer in both:
            optimizer.step()
        agree(*both, rtol=rtol)
    assert len(native_updates) == 1
    assert both[0].step_count == both[1].step_count == 6


def test_matrices(native_updates):
    both = pair("Muon", {}, shapes=[(6, 4), (4, 6)])
    for step in range(3):
        give(both, step)
        for optimizer in both:
            optimizer.step()
        agree(*both, rtol=1e-10)
    assert len(native_updates) == 1


def test_schedules_need_no_other_program(native_updates):
    both = pair("AdamW", {"lr": 0.1})
    plans = [optim.lr_scheduler.LambdaLR(o, lambda step: (0.0, 0.5, 1.0, 0.3)[step % 4]) for o in both]
    cycles = [optim.lr_scheduler.OneCycleLR(o, 0.2, total_steps=20) for o in both]
    for step in range(8):
        give(both, step)
        for optimizer, *schedules in zip(both, plans, cycles, strict=True):
            optimizer.step()
            for schedule in schedules:
                schedule.step()
        agree(*both)
    assert len(native_updates) == 1


def test_a_rate_that_is_a_tensor(native_updates):
    rates = [graphc.tensor(0.1, dtype=graphc.float64) for _ in range(2)]
    both = pair("SGD", {"momentum": 0.9})
    for optimizer, rate in zip(both, rates, strict=True):
        optimizer.param_groups[0]["lr"] = rate
    for step in range(4):
        give(both, step)
        for optimizer, rate in zip(both, rates, strict=True):
            optimizer.step()
            rate.mul_(0.5)
        agree(*both)
    assert len(native_updates) == 1


def test_parameters_without_gradients_are_left_alone(native_updates):
    both = pair("Adam", {"weight_decay": 0.1})
    before = both[0].param_groups[0]["params"][1].detach().numpy().copy()
    for step in range(3):
        give(both, step, without=[1])
        for optimizer in both:
            optimizer.step()
        agree(*both)
    np.testing.assert_array_equal(before, both[0].param_groups[0]["params"][1].detach().numpy())
    assert not both[0].state[both[0].param_groups[0]["params"][1]]
    for without in ([], [1], [0, 2]):  # and back again
        give(both, 9, without)
        for optimizer in both:
            optimizer.step()
        agree(*both)
    assert len(native_updates) == 3


def test_groups_of_their_own_settings_and_element_types(native_updates):
    both = []
    for native in (True, False):
        wide, narrow = parameters("float64"), parameters("float32")
        groups = [{"params": [wide[0], narrow[1]], "lr": 0.1}, {"params": [*wide[1:3], narrow[0]], "weight_decay": 0.2}]
        optimizer = optim.Adam(groups, lr=0.01)
        optimizer.native = native
        both.append(optimizer)
    for step in range(4):
        give(both, step)
        for optimizer in both:
            optimizer.step()
        agree(*both, rtol=2e-6)
    both[0].add_param_group({"params": parameters()[:1]})
    both[1].add_param_group({"params": parameters()[:1]})
    give(both, 7)
    for optimizer in both:
        optimizer.step()
    agree(*both, rtol=2e-6)
    assert len(native_updates) == 2


def test_changed_settings_are_another_program(native_updates):
    both = pair("SGD", {"momentum": 0.9})
    for step, change in enumerate([{}, {"nesterov": True}, {"weight_decay": 0.1}, {"weight_decay": 0.2}]):
        for optimizer in both:
            optimizer.param_groups[0].update(change)
        give(both, step)
        for optimizer in both:
            optimizer.step()
        agree(*both)
    assert len(native_updates) == 3


def test_state_dictionaries_are_the_same(native_updates):
    both = pair("Adam", {})
    give(both, 0)
    for optimizer in both:
        optimizer.step()
    saved = [copy.deepcopy(o.state_dict()) for o in both]
    assert saved[0].keys() == saved[1].keys() and saved[0]["param_groups"] == saved[1]["param_groups"]
    give(both, 1)
    for optimizer in both:
        optimizer.step()
    for optimizer, state in zip(both, reversed(saved), strict=True):
        optimizer.load_state_dict(state)
    give(both, 2)
    for optimizer in both:
        optimizer.step()
    agree(*both)
    again = pickle.loads(pickle.dumps(both[0]))
    assert again.updates is None and copy.deepcopy(both[0]).updates is None


def test_replaced_memory_is_what_is_written(native_updates):
    both = pair("Adam", {})
    for step in range(3):
        for optimizer in both:
            p = optimizer.param_groups[0]["params"][0]
            p.data = graphc.full((3, 4), float(step), dtype=graphc.float64)
            for state in optimizer.state.values():
                state["exp_avg"] = state["exp_avg"] * 2
        give(both, step)
        for optimizer in both:
            optimizer.step()
        agree(*both)
    assert len(native_updates) == 1


def test_versions_are_counted():
    optimizer = pair("Adam", {})[0]
    p = optimizer.param_groups[0]["params"][0]
    loss = (p * p).sum()
    give([optimizer], 0)
    optimizer.step()
    with pytest.raises(graphc.errors.GradientError, match="modified by an in-place operation"):
        loss.backward()


def test_hooks_of_the_optimizer_run():
    optimizer = pair("SGD", {})[0]
    observed = []
    optimizer.register_step_pre_hook(lambda o, args, kwargs: observed.append(("before", o.step_count)))
    optimizer.register_step_post_hook(lambda o, args, kwargs: observed.append(("after", o.step_count)))
    give([optimizer], 0)
    optimizer.step(lambda: None)
    assert observed == [("before", 0), ("after", 1)]


@pytest.mark.parametrize("case", ["shared", "view", "read-only"])
def test_what_programs_do_not_take_goes_through_operations(case, native_updates):
    results = []
    for native in (None, False):
        memory = np.arange(12.0).reshape(3, 4).copy()
        params = [nn.Parameter(graphc.from_numpy(memory)), nn.Parameter(graphc.ones(2, dtype=graphc.float64))]
        if case == "shared":
            params.append(nn.Parameter(graphc.from_numpy(memory[1])))
        elif case == "view":
            params[0] = nn.Parameter(graphc.from_numpy(memory.T))
        for p in params:
            p._in_compiled = True
        optimizer = optim.SGD(params, lr=0.1, momentum=0.9)
        optimizer.native = native
        for step in range(3):
            give([optimizer], step)
            if case == "read-only" and native is None:
                params[1].grad._data.flags.writeable = False  # a gradient may be
            optimizer.step()
        results.append([p.detach().numpy().copy() for p in params])
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


class Noisy(optim.Optimizer):
    """A rule that does more than compute."""

    def __init__(self, params):
        super().__init__(params, {"lr": 0.1})
        self.calls = 0

    def init_state(self, param):
        return {}

    def update(self, param, grad, state, hyper):
        self.calls += 1
        return param - hyper["lr"] * grad, {}


def test_rules_of_users_run_as_they_are_unless_they_say_otherwise(native_updates):
    params = parameters()
    for p in params:
        p._in_compiled = True
    optimizer = Noisy(params)
    give([optimizer], 0)
    optimizer.step()
    assert optimizer.calls == len(params) and not native_updates
    optimizer.native = True
    give([optimizer], 1)
    with pytest.raises(graphc.errors.TraceError, match="changes what is outside"):
        optimizer.step()
    assert optimizer.calls == len(params)


class Scaled(optim.SGD):
    """A rule that reads an attribute."""

    native = True
    factor = 1.0

    def update(self, param, grad, state, hyper):
        return super().update(param, grad * self.factor, state, hyper)


def test_attributes_that_a_rule_reads_are_guarded(native_updates):
    optimizer, other = Scaled(parameters(), lr=0.1), Scaled(parameters(), lr=0.1)
    other.native = False
    for step, factor in enumerate((1.0, 1.0, 3.0, 3.0)):
        optimizer.factor = other.factor = factor
        give([optimizer, other], step)
        optimizer.step()
        other.step()
        agree(optimizer, other)
    assert len(native_updates) == 2


def test_references_switch_it_off(native_updates):
    params = parameters()
    for p in params:
        p._in_compiled = True
    optimizer = optim.SGD(params, lr=0.1)
    give([optimizer], 0)
    with references():
        optimizer.step()
    assert not native_updates
    optimizer.step()
    assert len(native_updates) == 1


def test_it_begins_when_compiled_code_has_computed_a_gradient(native_updates):
    model = nn.Linear(3, 2)
    optimizer = optim.Adam(model.parameters())
    x = graphc.randn(4, 3)
    model(x).sum().backward()
    optimizer.step()
    assert not native_updates
    graphc.compile(model)(x).sum().backward()
    optimizer.step()
    assert len(native_updates) == 1


def test_an_optimizer_can_go_away():
    optimizer = pair("Adam", {})[0]
    give([optimizer], 0)
    optimizer.step()
    reference = weakref.ref(optimizer)
    del optimizer
    gc.collect()
    assert reference() is None
