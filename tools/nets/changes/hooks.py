"""Changes of a module's computation: parametrizations, ``forward`` itself, and hooks of every kind."""

from __future__ import annotations

from typing import Any

import graphc as gc
from graphc import nn
from graphc.nn import module_hooks
from tools.nets.changes.table import changes


class Doubled(nn.Module):
    """A parametrization without state."""

    def forward(self, weight: Any) -> Any:
        return weight * 2


class Masked(nn.Module):
    """A parametrization with a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mask", gc.tensor([1.0, 0.0, 1.0, 0.0]))

    def forward(self, weight: Any) -> Any:
        return weight * self.mask


def times_two(module: Any, args: Any, output: Any = None) -> Any:
    """Double the output of a module."""
    return output * 2


def gradient_times_two(module: Any, grad_input: Any, grad_output: Any = None) -> Any:
    """Double the gradients of a module's inputs."""
    return tuple(None if g is None else g * 2 for g in grad_input)


NAMES = {f.__name__: f for f in (Doubled, Masked, times_two, gradient_times_two)}
changes(
    """
parametrization_added: parametrize.register_parametrization(s.layer, "weight", Doubled())
parametrization_removed:
    parametrize.register_parametrization(s.layer, "weight", Doubled())
    yield
    parametrize.remove_parametrizations(s.layer, "weight")
parametrization_removed_with_original:
    parametrize.register_parametrization(s.layer, "weight", Doubled())
    yield
    parametrize.remove_parametrizations(s.layer, "weight", leave_parametrized=True)
second_parametrization_added:
    parametrize.register_parametrization(s.layer, "weight", Doubled())
    yield
    parametrize.register_parametrization(s.layer, "weight", Masked())
mask_of_a_parametrization_written:
    parametrize.register_parametrization(s.layer, "weight", Masked())
    yield
    s.layer.parametrizations.weight[0].mask.copy_(gc.tensor([0.0, 1.0, 1.0, 1.0]))
original_of_a_parametrization_written:
    parametrize.register_parametrization(s.layer, "weight", Doubled())
    yield
    with gc.no_grad():
        s.layer.parametrizations.weight.original.fill_(0.2)
parametrized_weight_assigned: parametrizations.weight_norm(s.layer) => s.layer.weight = gc.full((4, 4), 0.3)
weight_norm_added: parametrizations.weight_norm(s.layer)
spectral_norm_added: parametrizations.spectral_norm(s.layer)
orthogonal_added: orthogonal.orthogonal(s.layer)
old_weight_norm_added: nn.utils.weight_norm(s.layer)
old_spectral_norm_added: nn.utils.spectral_norm(s.layer)
old_weight_norm_removed: nn.utils.weight_norm(s.layer) => nn.utils.remove_weight_norm(s.layer)
old_weight_norm_written:
    nn.utils.weight_norm(s.layer)
    yield
    with gc.no_grad():
        s.layer.weight_g.mul_(2)
old_spectral_norm_removed: nn.utils.spectral_norm(s.layer) => nn.utils.remove_spectral_norm(s.layer)
weight_masked_by_hook:
    mask = gc.tensor([1.0, 0.0, 1.0, 1.0])
    def hook(module, args):
        module.__dict__["masked"] = module.weight * mask
    s.layer.register_forward_pre_hook(hook)
    layer = s.layer
    layer.forward = lambda x: F.linear(x, layer.masked, layer.bias)
weight_masked_in_place:
    with gc.no_grad():
        s.layer.weight.mul_(gc.tensor([1.0, 0.0, 1.0, 0.0]))
forward_of_the_instance_replaced: s.model.head.forward = lambda x: x[:, :3] * 2
forward_of_the_instance_removed_again: s.model.head.forward = lambda x: x[:, :3] * 2 => del s.model.head.forward
forward_of_the_instance_in_dict: s.model.__dict__["forward"] = lambda x, *extra: x[:, :3] * 2
forward_of_the_class_replaced: type(s.model).forward = lambda self, x, extra=None: self.head(self.body(x)) * 2
forward_of_the_class_of_a_child_replaced [rich]: type(s.body).forward = lambda self, x: self.second(self.first(x))
method_of_the_class_replaced [rich]: type(s.body).attributes = lambda self, x: x * 3
method_of_the_instance_replaced [rich]: s.body.attributes = types.MethodType(lambda self, x: x * self.factor, s.body)
class_of_the_instance_changed:
    class Other(type(s.model.head)):
        def forward(self, x):
            return super().forward(x) * 2
    s.model.head.__class__ = Other
call_of_the_class_overridden:
    class Other(type(s.model.head)):
        def __call__(self, x):
            return super().__call__(x) * 2
    s.model.head.__class__ = Other
code_of_forward_replaced:
    def other(self, x, extra=None):
        return self.head(x)
    type(s.model).forward.__code__ = other.__code__
hook_registered_by_state:
    amount = {"times": 2.0}
    s.last.register_forward_hook(lambda m, a, o: o * amount["times"])
    yield
    amount["times"] = 3.0
hook_table_written: s.last._forward_hooks[10**9] = times_two
hooks_cleared: s.last.register_forward_hook(times_two) => s.last._forward_hooks.clear()
""",
    NAMES,
)

HOOKS = {
    "forward_hook": "m.register_forward_hook(times_two)",
    "forward_hook_with_kwargs": "m.register_forward_hook(lambda m, a, k, o: o * 2, with_kwargs=True)",
    "forward_hook_prepended": "m.register_forward_hook(times_two, prepend=True)",
    "forward_hook_always_called": "m.register_forward_hook(times_two, always_call=True)",
    "forward_pre_hook": "m.register_forward_pre_hook(lambda m, a: (a[0] * 2,))",
    "forward_pre_hook_with_kwargs": "m.register_forward_pre_hook(lambda m, a, k: ((a[0] * 2,), k), with_kwargs=True)",
    "full_backward_hook": "m.register_full_backward_hook(gradient_times_two)",
    "full_backward_pre_hook": "m.register_full_backward_pre_hook(lambda m, g: (g[0] * 2,))",
    "old_backward_hook": "m.register_backward_hook(gradient_times_two)",
    "parameter_hook": "m.weight.register_hook(lambda g: g * 2)",
    "post_accumulate_hook": "m.weight.register_post_accumulate_grad_hook(lambda p: p.grad.mul_(2))",
    "hook_on_the_output": "m.register_forward_hook("
    "lambda m, a, o: o.register_hook(lambda g: g * 2) and None if o.requires_grad else None)",
    "global_forward_hook": "module_hooks.register_module_forward_hook("
    "lambda module, a, o: o * 2 if module is m else None)",
    "global_forward_pre_hook": "module_hooks.register_module_forward_pre_hook("
    "lambda module, a: (a[0] * 2,) if module is m else None)",
    "global_full_backward_hook": "module_hooks.register_module_full_backward_hook("
    "lambda module, i, o: gradient_times_two(module, i) if module is m else None)",
    "global_full_backward_pre_hook": "module_hooks.register_module_full_backward_pre_hook("
    "lambda module, g: (g[0] * 2,) if module is m else None)",
}
"""Each registers a hook of the module ``m`` that changes a value."""
_HOOK = """
{name}_added: s.stack.callback(register(s.last).remove)
{name}_removed:
    handle = register(s.last)
    s.stack.callback(handle.remove)
    yield
    handle.remove()
{name}_on_another_module:
    handle = register(s.last)
    s.stack.callback(handle.remove)
    yield
    handle.remove()
    s.stack.callback(register(s.layer).remove)
"""
for _name, _register in HOOKS.items():
    _scope = {"module_hooks": module_hooks, **NAMES}
    changes(_HOOK.format(name=_name), {"register": eval(f"lambda m: {_register}", _scope)})
