"""Forward hooks, pre-hooks, hooks of all modules, registration hooks, the strict mode."""

from __future__ import annotations

import pytest

import graphc
from graphc import hooks, nn
from graphc.errors import HookError
from graphc.nn import module_hooks


class Scale(nn.Module):
    """x times a keyword argument."""

    def forward(self, x, *, by=1):
        return x * by


class Broken(nn.Module):
    def forward(self, x):
        raise RuntimeError("forward failed")


@pytest.fixture
def one():
    return graphc.ones(1)


def test_pre_hook_replaces_arguments(one):
    m = Scale()
    m.register_forward_pre_hook(lambda module, args: args[0] + 1)
    assert m(one, by=2).item() == 4
    m.register_forward_pre_hook(lambda module, args: (args[0] * 10,))
    assert m(one).item() == 20


def test_pre_hook_with_kwargs(one):
    m = Scale()
    m.register_forward_pre_hook(lambda module, args, kwargs: (args, {"by": kwargs["by"] + 1}), with_kwargs=True)
    assert m(one, by=2).item() == 3
    m.register_forward_pre_hook(lambda module, args, kwargs: None, with_kwargs=True)
    assert m(one, by=2).item() == 3
    m.register_forward_pre_hook(lambda module, args, kwargs: args, with_kwargs=True)
    with pytest.raises(RuntimeError, match=r"returns None or \(args, kwargs\)"):
        m(one, by=2)


def test_forward_hook_replaces_the_output(one):
    m = Scale()
    seen = []
    m.register_forward_hook(lambda module, args, output: output + 1)
    m.register_forward_hook(lambda module, args, output: seen.append((module, args, output.item())))
    assert m(one, by=2).item() == 3
    assert seen == [(m, (one,), 3.0)]


def test_forward_hook_with_kwargs(one):
    m = Scale()
    m.register_forward_hook(lambda module, args, kwargs, output: output + kwargs["by"], with_kwargs=True)
    assert m(one, by=2).item() == 4


def test_order_and_prepending(one):
    m = Scale()
    order = []

    def note(name):
        return lambda *args: order.append(name)

    handles = [
        module_hooks.register_module_forward_pre_hook(note("all pre")),
        module_hooks.register_module_forward_hook(note("all post")),
    ]
    try:
        m.register_forward_pre_hook(note("pre 2"))
        m.register_forward_pre_hook(note("pre 1"), prepend=True)
        m.register_forward_hook(note("post 2"))
        m.register_forward_hook(note("post 1"), prepend=True)
        m(one)
        assert order == ["all pre", "pre 1", "pre 2", "all post", "post 1", "post 2"]
    finally:
        for handle in handles:
            handle.remove()
    order.clear()
    m(one)
    assert order == ["pre 1", "pre 2", "post 1", "post 2"]


def test_call_chain_of_nested_modules(one):
    net = nn.Sequential(nn.Sequential(nn.Identity()), nn.Identity())
    chain = []
    names = {id(m): name for name, m in net.named_modules()}
    with (
        module_hooks.register_module_forward_pre_hook(lambda m, args: chain.append(f"> {names[id(m)]}")),
        module_hooks.register_module_forward_hook(lambda m, args, out: chain.append(f"< {names[id(m)]}")),
    ):
        net(one)
    assert chain == ["> ", "> 0", "> 0.0", "< 0.0", "< 0", "> 1", "< 1", "< "]


def test_hooks_of_all_modules_may_take_kwargs(one):
    with module_hooks.register_module_forward_hook(lambda m, a, k, out: out * k.get("by", 1), with_kwargs=True):
        assert Scale()(one, by=3).item() == 9
    assert Scale()(one, by=3).item() == 3


def test_a_hook_may_remove_itself(one):
    m = Scale()
    calls = []

    def once(module, args, output):
        calls.append(1)
        handle.remove()

    handle = m.register_forward_hook(once)
    m(one)
    m(one)
    assert calls == [1]


def test_removing_clears_flags(one):
    m = Scale()
    handle = m.register_forward_hook(lambda *a: None, with_kwargs=True, always_call=True)
    assert m._forward_hooks_with_kwargs and m._forward_hooks_always_called
    handle.remove()
    assert not m._forward_hooks and not m._forward_hooks_with_kwargs and not m._forward_hooks_always_called


def test_always_called_hooks_run_after_an_exception(one):
    m = Broken()
    seen = []
    m.register_forward_hook(lambda module, args, output: seen.append("plain"))
    m.register_forward_hook(lambda module, args, output: seen.append(output), always_call=True)
    with (
        pytest.raises(RuntimeError, match="forward failed"),
        module_hooks.register_module_forward_hook(lambda *a: seen.append("all"), always_call=True),
    ):
        m(one)
    assert seen == ["all", None]


def test_always_called_hook_that_fails_warns(one):
    m = Broken()

    def fail(module, args, output):
        raise ValueError("hook failed")

    m.register_forward_hook(fail, always_call=True)
    with (
        pytest.warns(UserWarning, match="ValueError: hook failed"),
        pytest.raises(RuntimeError, match="forward failed"),
    ):
        m(one)


def test_always_called_hook_does_not_run_twice(one):
    m = Scale()
    seen = []
    m.register_forward_hook(lambda module, args, output: seen.append(1), always_call=True)

    def fail(module, args, output):
        raise ValueError("second hook")

    m.register_forward_hook(fail)
    with pytest.raises(ValueError, match="second hook"):
        m(one)
    assert seen == [1]


def test_registration_hooks():
    seen = []

    def note(kind):
        return lambda module, name, value: seen.append((kind, name))

    replacement = nn.Identity()
    with (
        module_hooks.register_module_parameter_registration_hook(note("parameter")),
        module_hooks.register_module_buffer_registration_hook(note("buffer")),
        module_hooks.register_module_module_registration_hook(lambda module, name, value: replacement),
    ):
        m = nn.Module()
        m.p = nn.Parameter(graphc.ones(1))
        m.register_buffer("b", graphc.ones(1))
        m.child = nn.ReLU()
    assert seen == [("parameter", "p"), ("buffer", "b")]
    assert m.child is replacement


def test_strict_mode(one):
    m = Scale()
    with m.register_forward_hook(lambda module, args, output: output), hooks.strict(), pytest.raises(HookError):
        m(one)
    writing = m.register_forward_pre_hook(lambda module, args: args[0].add_(1) and None)
    with writing, hooks.strict(), pytest.raises(HookError, match="wrote to a tensor"):
        m(one)
    seen = []
    with m.register_forward_hook(lambda module, args, output: seen.append(output)), hooks.strict():
        m(one)
    assert len(seen) == 1


def test_only_callables():
    with pytest.raises(TypeError, match="a hook must be callable, got int"):
        nn.ReLU().register_forward_hook(3)


def test_kinds_of_backward_hooks_are_not_mixed():
    m = nn.Linear(1, 1)
    m.register_full_backward_hook(lambda *a: None)
    with pytest.raises(RuntimeError, match="cannot be mixed"):
        m.register_backward_hook(lambda *a: None)
    with module_hooks.register_module_full_backward_hook(lambda *a: None), pytest.raises(RuntimeError, match="mixed"):
        module_hooks.register_module_backward_hook(lambda *a: None)
    with module_hooks.register_module_backward_hook(lambda *a: None), pytest.raises(RuntimeError, match="mixed"):
        module_hooks.register_module_full_backward_hook(lambda *a: None)
