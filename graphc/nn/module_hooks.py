"""Hooks of modules: registration on one module or on all, and calls of modules with hooks."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

from graphc.base.errors import ArgumentError, HookError
from graphc.base.mutation_epoch import COMMON_HOOKS, Members
from graphc.nn.backward_hooks import BackwardHooks, attach_to_grad_fn
from graphc.nn.compiled_hooks import Presence, call_forward_hook, call_pre_hook, is_left_out, runs_at_calls
from graphc.nn.module_tree import ModuleTree
from graphc.tape.hooks import RemovableHandle, call_hook

Hook = Callable[..., Any]
Table = OrderedDict[int, Hook]

_forward_pre: Table = Members()
_forward: Table = Members()
_forward_with_kwargs: OrderedDict[int, bool] = OrderedDict()
_forward_always: OrderedDict[int, bool] = OrderedDict()
_backward_pre: Table = Members()
_full_backward: Table = Members()
_legacy_backward: Table = Members()
_parameter_registration: Table = OrderedDict()
_buffer_registration: Table = OrderedDict()
_module_registration: Table = OrderedDict()

_CALL_TABLES = (_forward_pre, _forward, _backward_pre, _full_backward, _legacy_backward)
COMMON_HOOKS.extend(_CALL_TABLES)


def _add(
    table: Table, hook: Hook, prepend: bool = False, flags: tuple[tuple[OrderedDict[int, bool], bool], ...] = ()
) -> RemovableHandle:
    if not callable(hook):
        raise ArgumentError(f"a hook must be callable, got {type(hook).__name__}")
    handle = RemovableHandle(table, extra=[extra for extra, _ in flags])
    table[handle.id] = hook
    for extra, on in flags:
        if on:
            extra[handle.id] = True
    if prepend:
        table.move_to_end(handle.id, last=False)
    return handle


def register_module_forward_pre_hook(hook: Hook) -> RemovableHandle:
    """Run ``hook(module, args)`` before every module's own pre-hooks; it may return other arguments."""
    return _add(_forward_pre, hook)


def register_module_forward_hook(
    hook: Hook, *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Run ``hook(module, args, output)`` before every module's own forward hooks; it may return another output."""
    return _add(_forward, hook, flags=((_forward_with_kwargs, with_kwargs), (_forward_always, always_call)))


def register_module_full_backward_pre_hook(hook: Hook) -> RemovableHandle:
    """Run ``hook(module, grad_output)`` before the backward pass of every module; it may return other gradients."""
    return _add(_backward_pre, hook)


def register_module_full_backward_hook(hook: Hook) -> RemovableHandle:
    """Run ``hook(module, grad_input, grad_output)`` after the backward pass of every module.

    The hook may return other gradients.
    """
    if _legacy_backward:
        raise HookError("backward hooks and full backward hooks of all modules cannot be mixed", remedy="use one kind")
    return _add(_full_backward, hook)


def register_module_backward_hook(hook: Hook) -> RemovableHandle:
    """Register the old kind of backward hook for every module; see ``Module.register_backward_hook``."""
    if _full_backward:
        raise HookError("backward hooks and full backward hooks of all modules cannot be mixed", remedy="use one kind")
    return _add(_legacy_backward, hook)


def register_module_parameter_registration_hook(hook: Hook) -> RemovableHandle:
    """Run ``hook(module, name, parameter)`` when a parameter is registered; it may return another one."""
    return _add(_parameter_registration, hook)


def register_module_buffer_registration_hook(hook: Hook) -> RemovableHandle:
    """Run ``hook(module, name, buffer)`` when a buffer is registered; it may return another one."""
    return _add(_buffer_registration, hook)


def register_module_module_registration_hook(hook: Hook) -> RemovableHandle:
    """Run ``hook(module, name, child)`` when a child module is registered; it may return another one."""
    return _add(_module_registration, hook)


def run_registration_hooks(kind: str, owner: Any, name: str, value: Any) -> Any:
    """Return ``value`` after the registration hooks of ``kind`` (``parameter``, ``buffer`` or ``module``)."""
    tables = {"parameter": _parameter_registration, "buffer": _buffer_registration, "module": _module_registration}
    for hook in tables[kind].values():
        replaced = hook(owner, name, value)
        value = value if replaced is None else replaced
    return value


class ModuleHooks(ModuleTree):
    """Registration of a module's own hooks. They run in the order of registration, after the hooks of all modules."""

    def register_forward_pre_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Run ``hook(module, args)`` before forward; it may return other arguments.

        With ``with_kwargs`` it is called as ``hook(module, args, kwargs)`` and returns None or ``(args, kwargs)``.

        Example:
            >>> import graphc as gc
            >>> layer = gc.nn.ReLU()
            >>> handle = layer.register_forward_pre_hook(lambda module, args: (-args[0],))
            >>> layer(gc.tensor([-1.0, 2.0]))
            tensor([1., 0.])
        """
        flags = ((self._forward_pre_hooks_with_kwargs, with_kwargs),)
        return _add(self._forward_pre_hooks, hook, prepend, flags)

    def register_forward_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Run ``hook(module, args, output)`` after forward; it may return another output.

        With ``with_kwargs`` it is called as ``hook(module, args, kwargs, output)``. With ``always_call`` it also runs
        when forward raised, with output None; an exception of the hook itself then becomes a warning.

        Example:
            >>> import graphc as gc
            >>> layer = gc.nn.ReLU()
            >>> handle = layer.register_forward_hook(lambda module, args, output: output + 1)
            >>> layer(gc.tensor([-1.0, 2.0]))
            tensor([1., 3.])
            >>> handle.remove()
        """
        flags = (
            (self._forward_hooks_with_kwargs, with_kwargs),
            (self._forward_hooks_always_called, always_call),
        )
        return _add(self._forward_hooks, hook, prepend, flags)

    def register_full_backward_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Run ``hook(module, grad_output)`` once the gradients of the outputs are known; it may return others."""
        return _add(self._backward_pre_hooks, hook, prepend)

    def register_full_backward_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Run ``hook(module, grad_input, grad_output)`` once the gradients of the positional inputs are known.

        It may return a tuple of gradients to use instead. Entries of non-tensor arguments are None. When no input
        requires a gradient, it runs once the gradients of the outputs are known, and must return None.

        Example:
            >>> import graphc as gc
            >>> def show(module, grad_input, grad_output):
            ...     print(grad_input, grad_output)
            >>> layer = gc.nn.ReLU()
            >>> handle = layer.register_full_backward_hook(show)
            >>> layer(gc.tensor([-1.0, 2.0], requires_grad=True)).sum().backward()
            (tensor([0., 1.]),) (tensor([1., 1.]),)
        """
        self._set_backward_kind(full=True)
        return _add(self._backward_hooks, hook, prepend)

    def register_backward_hook(self, hook: Hook) -> RemovableHandle:
        """Register the old kind: ``hook(module, grad_input, grad_output)`` sees only the last operation of forward.

        It exists for old programs; prefer ``register_full_backward_hook``.
        """
        self._set_backward_kind(full=False)
        return _add(self._backward_hooks, hook)

    def _set_backward_kind(self, full: bool) -> None:
        if self._backward_hooks and self._is_full_backward_hook is not full:
            raise HookError(
                f"{type(self).__name__} has backward hooks of the other kind; they cannot be mixed",
                remedy="call register_full_backward_hook for all of them",
            )
        self._is_full_backward_hook = full

    def _has_hooks(self) -> bool:
        """Check whether a call of this module has any hooks to run."""
        return bool(
            self._forward_pre_hooks or self._forward_hooks or self._backward_hooks or self._backward_pre_hooks
        ) or any(_CALL_TABLES)


def call_with_hooks(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a module with hooks: pre-hooks, forward, forward hooks, and backward hooks around them."""
    args, kwargs = _run_pre_hooks(module, args, kwargs)
    backward = _backward_hooks_of(module)
    if backward is not None:
        args = backward.wrap_inputs(args)
    ran: set[int] = set()
    try:
        output = module.forward(*args, **kwargs)
        common, own = Presence(_forward), Presence(module._forward_hooks)
        for hook_id, hook, with_kwargs in _forward_hooks_of(module):
            ran.add(hook_id)
            if is_left_out(hook, module):
                continue
            if runs_at_calls(hook):
                is_present = (common if hook_id in _forward else own).of(hook_id)
                output = call_forward_hook(hook, module, args, kwargs if with_kwargs else None, output, is_present)
                continue
            replaced = call_hook(hook, module, args, *((kwargs,) if with_kwargs else ()), output)
            output = output if replaced is None else replaced
    # NOTE: whatever forward or a hook raises is raised again; as in PyTorch, Ctrl-C and exits run no hooks.
    except Exception:
        _run_always_called(module, args, kwargs, ran)
        raise
    if backward is not None:
        output = backward.wrap_outputs(output)
    legacy = [*_legacy_backward.values(), *(() if module._is_full_backward_hook else module._backward_hooks.values())]
    if legacy:
        attach_to_grad_fn(module, output, legacy)
    return output


def _run_pre_hooks(
    module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    common, own = Presence(_forward_pre), Presence(module._forward_pre_hooks)
    for hook_id, hook in list(_forward_pre.items()):
        if is_left_out(hook, module):
            continue
        if runs_at_calls(hook):
            args = call_pre_hook(hook, module, args, None, common.of(hook_id))[0]
            continue
        args = _new_args(call_hook(hook, module, args), args)
    for hook_id, hook in list(module._forward_pre_hooks.items()):
        with_kwargs = hook_id in module._forward_pre_hooks_with_kwargs
        if is_left_out(hook, module):
            continue
        if runs_at_calls(hook):
            args, new_kwargs = call_pre_hook(hook, module, args, kwargs if with_kwargs else None, own.of(hook_id))
            kwargs = new_kwargs if with_kwargs else kwargs
            continue
        if not with_kwargs:
            args = _new_args(call_hook(hook, module, args), args)
            continue
        result = call_hook(hook, module, args, kwargs)
        if result is None:
            continue
        if not (isinstance(result, tuple) and len(result) == 2):
            raise HookError(f"a forward pre-hook with kwargs returns None or (args, kwargs), got {result!r}")
        args, kwargs = result
    return args, kwargs


def _new_args(result: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    if result is None:
        return args
    return result if isinstance(result, tuple) else (result,)


def _forward_hooks_of(module: Any) -> Iterator[tuple[int, Hook, bool]]:
    for hook_id, hook in list(_forward.items()):
        yield hook_id, hook, hook_id in _forward_with_kwargs
    for hook_id, hook in list(module._forward_hooks.items()):
        yield hook_id, hook, hook_id in module._forward_hooks_with_kwargs


def _run_always_called(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], ran: set[int]) -> None:
    """Run, after an exception, the remaining hooks registered with ``always_call``."""
    for hook_id, hook, with_kwargs in _forward_hooks_of(module):
        if hook_id in ran or not (hook_id in _forward_always or hook_id in module._forward_hooks_always_called):
            continue
        try:
            call_hook(hook, module, args, *((kwargs,) if with_kwargs else ()), None)
        # NOTE: the first exception must reach the user, whatever a hook raises after it.
        except Exception as error:
            warnings.warn(
                f"a forward hook with always_call raised {type(error).__name__}: {error}; "
                "the exception of forward is raised instead",
                stacklevel=4,
            )


def _backward_hooks_of(module: Any) -> BackwardHooks | None:
    """Return the backward hooks of this call of the module, or None when it has none."""
    own = module._backward_hooks.values() if module._is_full_backward_hook else ()
    hooks = [hook for hook in (*_full_backward.values(), *own) if not is_left_out(hook, module)]
    pre_hooks = [*_backward_pre.values(), *module._backward_pre_hooks.values()]
    return BackwardHooks(module, hooks, pre_hooks) if hooks or pre_hooks else None
