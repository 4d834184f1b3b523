"""Changes of a module's computation: parametrizations, ``forward`` itself, and hooks of every kind."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from typing import Any

import graphc as gc
from graphc import nn
from graphc.nn import functional as F
from graphc.nn import module_hooks
from graphc.nn.utils import orthogonal, parametrizations, parametrize, remove_weight_norm, weight_norm
from tools.nets.changes.scene import Scene
from tools.nets.changes.table import add, change

# ---- parametrizations and masks


class _Doubled(nn.Module):
    def forward(self, weight: Any) -> Any:
        return weight * 2


class _Masked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mask", gc.tensor([1.0, 0.0, 1.0, 0.0]))

    def forward(self, weight: Any) -> Any:
        return weight * self.mask


@change()
def parametrization_added(s: Scene) -> None:
    parametrize.register_parametrization(s.layer, "weight", _Doubled())


@change()
def parametrization_removed(s: Scene) -> Iterator[None]:
    parametrize.register_parametrization(s.layer, "weight", _Doubled())
    yield
    parametrize.remove_parametrizations(s.layer, "weight")


@change()
def parametrization_removed_with_original(s: Scene) -> Iterator[None]:
    parametrize.register_parametrization(s.layer, "weight", _Doubled())
    yield
    parametrize.remove_parametrizations(s.layer, "weight", leave_parametrized=True)


@change()
def second_parametrization_added(s: Scene) -> Iterator[None]:
    parametrize.register_parametrization(s.layer, "weight", _Doubled())
    yield
    parametrize.register_parametrization(s.layer, "weight", _Masked())


@change()
def mask_of_a_parametrization_written(s: Scene) -> Iterator[None]:
    parametrize.register_parametrization(s.layer, "weight", _Masked())
    yield
    s.layer.parametrizations.weight[0].mask.copy_(gc.tensor([0.0, 1.0, 1.0, 1.0]))


@change()
def original_of_a_parametrization_written(s: Scene) -> Iterator[None]:
    parametrize.register_parametrization(s.layer, "weight", _Doubled())
    yield
    with gc.no_grad():
        s.layer.parametrizations.weight.original.fill_(0.2)


@change()
def parametrized_weight_assigned(s: Scene) -> Iterator[None]:
    parametrizations.weight_norm(s.layer)
    yield
    s.layer.weight = gc.full((4, 4), 0.3)


def _norm(name: str, put: Callable[[Any], Any]) -> None:
    def added(s: Scene) -> None:
        put(s.layer)

    add(name, added)


_norm("weight_norm_added", parametrizations.weight_norm)
_norm("spectral_norm_added", parametrizations.spectral_norm)
_norm("orthogonal_added", orthogonal.orthogonal)
_norm("old_weight_norm_added", weight_norm)
_norm("old_spectral_norm_added", nn.utils.spectral_norm)


@change()
def old_weight_norm_removed(s: Scene) -> Iterator[None]:
    weight_norm(s.layer)
    yield
    remove_weight_norm(s.layer)


@change()
def old_weight_norm_written(s: Scene) -> Iterator[None]:
    weight_norm(s.layer)
    yield
    with gc.no_grad():
        s.layer.weight_g.mul_(2)


@change()
def old_spectral_norm_removed(s: Scene) -> Iterator[None]:
    nn.utils.spectral_norm(s.layer)
    yield
    nn.utils.remove_spectral_norm(s.layer)


@change()
def weight_masked_by_hook(s: Scene) -> None:
    mask = gc.tensor([1.0, 0.0, 1.0, 1.0])

    def hook(module: Any, args: Any) -> None:
        module.__dict__["masked"] = module.weight * mask

    s.layer.register_forward_pre_hook(hook)
    layer = s.layer
    layer.forward = lambda x: F.linear(x, layer.masked, layer.bias)


@change()
def weight_masked_in_place(s: Scene) -> None:
    with gc.no_grad():
        s.layer.weight.mul_(gc.tensor([1.0, 0.0, 1.0, 0.0]))


# ---- forward


@change()
def forward_of_the_instance_replaced(s: Scene) -> None:
    s.model.head.forward = lambda x: x[:, :3] * 2


@change()
def forward_of_the_instance_removed_again(s: Scene) -> Iterator[None]:
    s.model.head.forward = lambda x: x[:, :3] * 2
    yield
    del s.model.head.forward


@change()
def forward_of_the_instance_in_dict(s: Scene) -> None:
    s.model.__dict__["forward"] = lambda x, *extra: x[:, :3] * 2


@change()
def forward_of_the_class_replaced(s: Scene) -> None:
    type(s.model).forward = lambda self, x, extra=None: self.head(self.body(x)) * 2


@change("rich")
def forward_of_the_class_of_a_child_replaced(s: Scene) -> None:
    type(s.body).forward = lambda self, x: self.second(self.first(x))


@change("rich")
def method_of_the_class_replaced(s: Scene) -> None:
    type(s.body).attributes = lambda self, x: x * 3


@change("rich")
def method_of_the_instance_replaced(s: Scene) -> None:
    s.body.attributes = types.MethodType(lambda self, x: x * self.factor, s.body)


@change()
def class_of_the_instance_changed(s: Scene) -> None:
    class Other(type(s.model.head)):
        def forward(self, x: Any) -> Any:
            return super().forward(x) * 2

    s.model.head.__class__ = Other


@change()
def call_of_the_class_overridden(s: Scene) -> None:
    class Other(type(s.model.head)):
        def __call__(self, x: Any) -> Any:
            return super().__call__(x) * 2

    s.model.head.__class__ = Other


@change()
def code_of_forward_replaced(s: Scene) -> None:
    def other(self, x, extra=None):
        return self.head(x)

    type(s.model).forward.__code__ = other.__code__


# ---- hooks


def _times_two(module: Any, args: Any, output: Any = None) -> Any:
    return output * 2


def _input_times_two(module: Any, args: Any) -> Any:
    return (args[0] * 2,)


def _gradient_times_two(module: Any, grad_input: Any, grad_output: Any = None) -> Any:
    return tuple(None if g is None else g * 2 for g in grad_input)


HOOKS: dict[str, Callable[[Any], Any]] = {
    "forward_hook": lambda m: m.register_forward_hook(_times_two),
    "forward_hook_with_kwargs": lambda m: m.register_forward_hook(lambda m, a, k, o: o * 2, with_kwargs=True),
    "forward_hook_prepended": lambda m: m.register_forward_hook(_times_two, prepend=True),
    "forward_hook_always_called": lambda m: m.register_forward_hook(_times_two, always_call=True),
    "forward_pre_hook": lambda m: m.register_forward_pre_hook(_input_times_two),
    "forward_pre_hook_with_kwargs": lambda m: m.register_forward_pre_hook(
        lambda m, a, k: ((a[0] * 2,), k), with_kwargs=True
    ),
    "full_backward_hook": lambda m: m.register_full_backward_hook(_gradient_times_two),
    "full_backward_pre_hook": lambda m: m.register_full_backward_pre_hook(lambda m, g: (g[0] * 2,)),
    "old_backward_hook": lambda m: m.register_backward_hook(_gradient_times_two),
    "parameter_hook": lambda m: m.weight.register_hook(lambda g: g * 2),
    "post_accumulate_hook": lambda m: m.weight.register_post_accumulate_grad_hook(lambda p: p.grad.mul_(2)),
    "hook_on_the_output": lambda m: m.register_forward_hook(
        lambda m, a, o: o.register_hook(lambda g: g * 2) and None if o.requires_grad else None
    ),
    "global_forward_hook": lambda m: module_hooks.register_module_forward_hook(
        lambda module, a, o: o * 2 if module is m else None
    ),
    "global_forward_pre_hook": lambda m: module_hooks.register_module_forward_pre_hook(
        lambda module, a: (a[0] * 2,) if module is m else None
    ),
    "global_full_backward_hook": lambda m: module_hooks.register_module_full_backward_hook(
        lambda module, i, o: _gradient_times_two(module, i) if module is m else None
    ),
    "global_full_backward_pre_hook": lambda m: module_hooks.register_module_full_backward_pre_hook(
        lambda module, g: (g[0] * 2,) if module is m else None
    ),
}
"""Each registers a hook that changes a value."""


def _hook_changes(name: str, register: Callable[[Any], Any]) -> None:
    def added(s: Scene) -> None:
        s.stack.callback(register(s.last).remove)

    def removed(s: Scene) -> Iterator[None]:
        handle = register(s.last)
        s.stack.callback(handle.remove)
        yield
        handle.remove()

    def replaced(s: Scene) -> Iterator[None]:
        handle = register(s.last)
        s.stack.callback(handle.remove)
        yield
        handle.remove()
        s.stack.callback(register(s.layer).remove)

    add(f"{name}_added", added)
    add(f"{name}_removed", removed)
    add(f"{name}_on_another_module", replaced)


for _name, _register in HOOKS.items():
    _hook_changes(_name, _register)


@change()
def hook_registered_by_state(s: Scene) -> Iterator[None]:
    """Register a hook whose effect depends on a container, then change the container."""
    amount = {"times": 2.0}
    s.last.register_forward_hook(lambda m, a, o: o * amount["times"])
    yield
    amount["times"] = 3.0


@change()
def hook_table_written(s: Scene) -> None:
    s.last._forward_hooks[10**9] = _times_two


@change()
def hooks_cleared(s: Scene) -> Iterator[None]:
    s.last.register_forward_hook(_times_two)
    yield
    s.last._forward_hooks.clear()
