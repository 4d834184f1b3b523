"""Full backward hooks: identity ops around a module's inputs and outputs that hand the gradients to the hooks."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from graphc.autograd.function import Function
from graphc.base import module_path
from graphc.base.errors import HookError, TraceError
from graphc.base.location import capture
from graphc.nn.compiled_hooks import runs_at_calls, watched
from graphc.tape.grad_mode import is_grad_enabled
from graphc.tape.hooks import call_hook
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front

Hook = Callable[..., Any]
Grads = tuple[Any, ...]


class BackwardHooks:
    """Backward hooks of one call of a module.

    Raises TraceError in a traced call that records gradients, because tracing reaches the inputs' gradients before the
    outputs' gradients are known. ``pre_hooks``, which run before the module's backward pass, are traced.
    """

    def __init__(self, module: Any, hooks: Sequence[Hook], pre_hooks: Sequence[Hook]):
        self._at_calls = runs_at_calls(*hooks, *pre_hooks)
        if hooks and is_grad_enabled() and getattr(front(), "custom", None) is not None and not self._at_calls:
            raise TraceError(
                f"full backward hook of {type(module).__name__} cannot run in a traced call",
                origin=capture(module_path.current_path()).describe(),
                remedy="remove the hook, call the module eagerly, or trace under no_grad() where no gradient is needed",
            )
        self.module = module
        self.hooks = hooks
        self.pre_hooks = pre_hooks
        self.grad_output: Grads | None = None
        self.inputs = 0
        self.input_slots: list[int] = []
        self.outputs = 0
        self.output_slots: list[int] = []
        self.input_gradients = False
        """True when some input requires a gradient; the hooks then run once the inputs' gradients are known."""

    def wrap_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Pass the tensors among the arguments through an identity that runs the hooks in the backward pass."""
        self.inputs = len(args)
        self.input_slots = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        tensors = [args[i] for i in self.input_slots]
        if not any(t.requires_grad for t in tensors):
            return args
        self.input_gradients = True
        return _replace(args, self.input_slots, self._boundary(self._at_inputs, tensors))

    def _boundary(self, watch: Callable[[Grads], Grads], tensors: Sequence[Any]) -> Any:
        if self._at_calls:
            return watched(watch, self.module, tensors)
        return _Boundary.apply(watch, *tensors)

    def wrap_outputs(self, output: Any) -> Any:
        """Pass the output's tensors through an identity that records their gradients in the backward pass.

        The output is a tensor, or a tuple or list of tensors; any other value is returned unchanged.
        """
        items = (output,) if isinstance(output, Tensor) else output
        if not isinstance(items, (tuple, list)):
            return output
        self.outputs = len(items)
        self.output_slots = [i for i, item in enumerate(items) if isinstance(item, Tensor)]
        tensors = [items[i] for i in self.output_slots]
        if not any(t.requires_grad for t in tensors):
            return output
        wrapped = _replace(tuple(items), self.output_slots, self._boundary(self._at_outputs, tensors))
        if isinstance(output, Tensor):
            return wrapped[0]
        return _like(output, wrapped)

    def _at_outputs(self, grads: Grads) -> Grads:
        grad_output = _spread(grads, self.output_slots, self.outputs)
        for hook in self.pre_hooks:
            result = call_hook(hook, self.module, grad_output)
            grad_output = self._checked(result, grad_output, "pre hook", "grad_output")
        self.grad_output = grad_output
        if not self.input_gradients and self.hooks:
            self._run_without_inputs(grad_output)
        return tuple(grad_output[i] for i in self.output_slots)

    def _run_without_inputs(self, grad_output: Grads) -> None:
        if not all(getattr(hook, "only_looks", False) for hook in self.hooks):
            warnings.warn(
                f"full backward hook of {type(self.module).__name__} runs when the gradients of its outputs are known, "
                "because no input requires a gradient",
                stacklevel=2,
            )
        for hook in self.hooks:
            result = call_hook(hook, self.module, (None,) * self.inputs, grad_output)
            if result is not None and not (isinstance(result, tuple) and all(g is None for g in result)):
                raise HookError(
                    f"backward hook of {type(self.module).__name__} returned gradients, but no input requires one",
                    remedy="return None",
                )

    def _at_inputs(self, grads: Grads) -> Grads:
        grad_input = _spread(grads, self.input_slots, self.inputs)
        for hook in self.hooks:
            result = call_hook(hook, self.module, grad_input, self.grad_output)
            grad_input = self._checked(result, grad_input, "hook", "grad_input")
        self.grad_output = None
        return tuple(grad_input[i] for i in self.input_slots)

    def _checked(self, result: Any, grads: Grads, kind: str, name: str) -> Grads:
        if result is None:
            return grads
        result = result if isinstance(result, tuple) else (result,)
        if len(result) != len(grads):
            raise HookError(
                f"backward {kind} of {type(self.module).__name__} returned {len(result)} gradients of {name}, "
                f"expected {len(grads)}"
            )
        return result


class _Boundary(Function):
    """Identity on tensors; in the backward pass ``watch(grads)`` gets their gradients and returns those to pass on."""

    @staticmethod
    def forward(ctx: Any, watch: Callable[[Grads], Grads], *tensors: Tensor) -> Grads:
        ctx.watch = watch
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*[t for t in tensors if not t.requires_grad])
        return tensors

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Grads:
        return (None, *ctx.watch(grads))


def attach_to_grad_fn(module: Any, output: Any, hooks: Sequence[Hook]) -> None:
    """Run ``hook(module, grad_input, grad_output)`` at the operation that computed the first output tensor."""
    first = _first_tensor(output)
    if first is None or first.grad_fn is None:
        return
    for hook in hooks:

        def at_node(grad_input: Grads, grad_output: Grads, hook: Hook = hook) -> Any:
            return call_hook(hook, module, grad_input, grad_output)

        first.grad_fn.register_hook(at_node)


def _first_tensor(output: Any) -> Tensor | None:
    """Return the first tensor in nested tuples, lists and dictionaries, or None."""
    stack = [output]
    while stack:
        item = stack.pop()
        if isinstance(item, Tensor):
            return item
        if isinstance(item, dict):
            stack.extend(reversed(item.values()))
        elif isinstance(item, (tuple, list)):
            stack.extend(reversed(item))
    return None


def _spread(grads: Grads, slots: Sequence[int], count: int) -> Grads:
    full: list[Any] = [None] * count
    for slot, grad in zip(slots, grads, strict=True):
        full[slot] = grad
    return tuple(full)


def _replace(items: tuple[Any, ...], slots: Sequence[int], values: Any) -> tuple[Any, ...]:
    values = values if isinstance(values, tuple) else (values,)
    result = list(items)
    for slot, value in zip(slots, values, strict=True):
        result[slot] = value
    return tuple(result)


def _like(original: Any, items: tuple[Any, ...]) -> Any:
    """Put ``items`` into a container of the type of ``original`` (named tuples included)."""
    return type(original)(*items) if hasattr(original, "_fields") else type(original)(items)
