"""State dictionaries of modules: the entries of ``state_dict``, and how ``load_state_dict`` reports mismatches."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError, HookError, StateDictError
from graphc.base.public import reduced
from graphc.base.records import NamedTuple
from graphc.nn.module_tree import ModuleTree
from graphc.nn.parameter import Parameter
from graphc.tape.grad_mode import no_grad
from graphc.tape.hooks import RemovableHandle
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import expose, front

EXTRA_STATE = "_extra_state"
"""Key suffix of the value that ``get_extra_state`` returns."""


class IncompatibleKeys(NamedTuple):
    """Keys missing from a state dictionary, and unexpected ones, as ``load_state_dict`` found them."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"

    __str__ = __repr__


class StateDict(OrderedDict[str, Any]):
    """Ordered dictionary of names and tensors, with the format versions of the modules in ``_metadata``.

    Example:
        >>> import graphc as gc
        >>> state = gc.nn.Linear(2, 1).state_dict()
        >>> {name: tuple(value.shape) for name, value in state.items()}
        {'weight': (1, 2), 'bias': (1,)}
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._metadata: dict[str, dict[str, Any]] = {}

    def copy(self) -> StateDict:
        """Return a shallow copy with the versions."""
        result = StateDict(self)
        result._metadata = dict(self._metadata)
        return result

    def __reduce_ex__(self, protocol: Any) -> Any:
        return reduced(super().__reduce_ex__(protocol))


class ModuleState(ModuleTree):
    """``state_dict`` and ``load_state_dict``, with their hooks."""

    _version: int = 1
    """Version of the format of this module's own entries, for ``_load_from_state_dict``."""

    def get_extra_state(self) -> Any:
        """Return extra state for the state dictionary, neither parameter nor buffer. Subclasses override it."""
        raise NotImplementedError

    def set_extra_state(self, state: Any) -> None:
        """Restore the value that ``get_extra_state`` returned. Subclasses override it."""
        raise NotImplementedError

    # Saving

    def state_dict(self, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """Return names and values of all parameters and persistent buffers, in registration order.

        The tensors share memory with the module but not its autograd graph; ``keep_vars=True`` returns the parameters
        and buffers themselves. None entries are left out. Entries are added to ``destination`` if it is given, with
        ``prefix`` before their names.
        """
        if destination is None:
            destination = StateDict()
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            replaced = hook(self, destination, prefix, metadata)
            destination = destination if replaced is None else replaced
        return destination

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        for name, value in self._own_entries().items():
            destination[prefix + name] = value if keep_vars else value.detach()
        if _overrides(self, "get_extra_state"):
            destination[prefix + EXTRA_STATE] = self.get_extra_state()

    def _own_entries(self) -> dict[str, Tensor]:
        """Return the parameters and persistent buffers of this module alone."""
        entries: dict[str, Tensor | None] = dict(self._parameters)
        entries.update((k, v) for k, v in self._buffers.items() if k not in self._non_persistent_buffers_set)
        return {name: value for name, value in entries.items() if value is not None}

    # Loading

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copy the entries of ``state_dict`` into the parameters and buffers of the same names.

        Entries are tensors, numpy arrays, or tensors of another library (PyTorch's, of any device, also f16, bf16 and
        i16). A value is cast to the type of its target. With ``assign`` the entries replace parameters and buffers
        instead.

        Raises one StateDictError that lists missing keys, unexpected keys (both only when ``strict``) and every other
        mismatch, such as shapes.

        Example:
            >>> import graphc as gc
            >>> model = gc.nn.Linear(2, 1)
            >>> model.load_state_dict({"weight": gc.tensor([[1.0, 2.0]]), "bias": gc.tensor([3.0])})
            <All keys matched successfully>
            >>> model(gc.ones(2)).item()
            6.0
        """
        if not isinstance(state_dict, Mapping):
            what = f"load_state_dict: expected a mapping of names to tensors, got {type(state_dict).__name__}"
            raise ArgumentError(what, remedy="call graphc.load_state(path) to read one from a file")
        metadata = getattr(state_dict, "_metadata", {})
        entries = OrderedDict(state_dict)
        report = _Report(metadata, strict, assign)
        report.load(self, entries, "")
        result = IncompatibleKeys(report.missing, report.unexpected)
        report.run_post_hooks(self, result)
        report.raise_errors(type(self).__name__, result)
        return result

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Load this module's own entries; override to accept older formats. Errors are collected, not raised."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        assign = bool(local_metadata.get("assign_to_params_buffers", False))
        for name, current in self._own_entries().items():
            key = prefix + name
            if key not in state_dict:
                missing_keys.append(key)
                continue
            problem = self._load_entry(name, current, state_dict[key], assign)
            if problem:
                error_msgs.append(f"{key}: {problem}")
        self._load_extra_state(state_dict, prefix, missing_keys)
        if strict:
            unexpected_keys.extend(self._unknown_keys(state_dict, prefix))

    def _load_entry(self, name: str, current: Tensor, value: Any, assign: bool) -> str:
        """Load one entry; return a description of the problem, or ''."""
        try:
            value = _as_tensor(value)
        # NOTE: ``__array__`` of another library may raise anything; one error reports all problems of a dictionary.
        except Exception as error:
            return f"reading failed: {type(error).__name__}: {error}"
        if not isinstance(value, Tensor):
            return f"expected a tensor, got {type(value).__name__}"
        if current.shape == () and tuple(value.shape) == (1,):
            value = value[0]
        if tuple(value.shape) != tuple(current.shape):
            return f"size mismatch: {list(value.shape)} in the state dictionary, {list(current.shape)} in the model"
        try:
            if assign:
                setattr(self, name, _as_member(value, current))
            else:
                with no_grad():
                    current.copy_(value)
        # NOTE: the setter of a property, or a subclass that overrides the copy, may raise anything too.
        except Exception as error:
            return f"copying failed: {type(error).__name__}: {error}"
        return ""

    def _load_extra_state(self, state_dict: dict[str, Any], prefix: str, missing_keys: list[str]) -> None:
        key = prefix + EXTRA_STATE
        if not _overrides(self, "set_extra_state"):
            return
        if key in state_dict:
            self.set_extra_state(state_dict[key])
        else:
            missing_keys.append(key)

    def _unknown_keys(self, state_dict: Mapping[str, Any], prefix: str) -> list[str]:
        own_entries = self._own_entries()
        extra = _overrides(self, "set_extra_state")
        unknown = []
        for key in state_dict:
            if not key.startswith(prefix) or (key == prefix + EXTRA_STATE and extra):
                continue
            first, dot, _ = key[len(prefix) :].partition(".")
            if not (first in self._modules if dot else first in own_entries):
                unknown.append(key)
        return unknown

    # Hooks

    def register_state_dict_pre_hook(self, hook: Callable[[Any, str, bool], None]) -> RemovableHandle:
        """Run ``hook(module, prefix, keep_vars)`` before this module's entries are collected."""
        return _register(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable[[Any, Any, str, Any], None]) -> RemovableHandle:
        """Run ``hook(module, state_dict, prefix, local_metadata)`` after this module's entries are collected.

        The hook may change the dictionary in place and must return None.
        """

        def checked(module: Any, destination: Any, prefix: str, metadata: Any) -> None:
            if hook(module, destination, prefix, metadata) is not None:
                raise HookError("a state_dict hook returned a value", remedy="change the dictionary in place")

        return _register(self._state_dict_hooks, checked)

    def _register_state_dict_hook(self, hook: Callable[[Any, Any, str, Any], Any]) -> RemovableHandle:
        """Register a hook like ``register_state_dict_post_hook``, but one that may return another dictionary."""
        return _register(self._state_dict_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Run a hook before this module's entries are loaded.

        It is called as ``hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
        error_msgs)``.
        """
        return _register(self._load_state_dict_pre_hooks, hook)

    def register_load_state_dict_post_hook(self, hook: Callable[[Any, IncompatibleKeys], None]) -> RemovableHandle:
        """Run ``hook(module, incompatible_keys)`` after loading, before errors are raised.

        The hook may edit the lists in place and must return None.
        """
        return _register(self._load_state_dict_post_hooks, hook)


class _Report:
    """One ``load_state_dict``: its options, and the problems met on the way."""

    def __init__(self, metadata: Mapping[str, Any], strict: bool, assign: bool):
        self.metadata = metadata
        self.strict = strict
        self.assign = assign
        self.missing: list[str] = []
        self.unexpected: list[str] = []
        self.errors: list[str] = []
        self.loaded: list[ModuleState] = []
        """Modules in the order in which post hooks run: children before parents."""

    def load(self, root: ModuleState, entries: OrderedDict[str, Any], prefix: str) -> None:
        stack: list[tuple[Any, str, bool]] = [(root, prefix, False)]
        while stack:
            module, path, children_loaded = stack.pop()
            if children_loaded:
                self.loaded.append(module)
                continue
            own = dict(self.metadata.get(path[:-1], {}))
            own["assign_to_params_buffers"] = self.assign
            lists = (self.missing, self.unexpected, self.errors)
            module._load_from_state_dict(entries, path, own, True, *lists)
            stack.append((module, path, True))
            children = [(m, f"{path}{name}.", False) for name, m in module._modules.items() if m is not None]
            stack.extend(reversed(children))

    def run_post_hooks(self, root: ModuleState, result: IncompatibleKeys) -> None:
        for module in self.loaded:
            for hook in module._load_state_dict_post_hooks.values():
                if hook(module, result) is not None:
                    raise AssertionError("a load_state_dict post hook returned a value; it edits the lists in place")

    def raise_errors(self, name: str, result: IncompatibleKeys) -> None:
        lines = []
        if self.strict and result.missing_keys:
            lines.append("missing keys: " + ", ".join(map(repr, result.missing_keys)))
        if self.strict and result.unexpected_keys:
            lines.append("unexpected keys: " + ", ".join(map(repr, result.unexpected_keys)))
        remedy = "pass strict=False to load only the entries whose names match" if lines and not self.errors else None
        lines.extend(self.errors)
        if lines:
            what = "\n    ".join([f"loading the state dictionary into {name} failed:", *lines])
            raise StateDictError(what, remedy=remedy)


def _as_tensor(value: Any) -> Any:
    """Turn an array, or a tensor of another library, into a tensor that shares its memory; return other values as they
    are."""
    if isinstance(value, Tensor) or not hasattr(value, "__array__"):
        return value
    value = value.detach().cpu() if hasattr(value, "detach") else value
    if str(getattr(value, "dtype", "")).endswith("bfloat16") and hasattr(value, "float"):
        value = value.float()  # numpy has no such type
    array = np.asarray(value)
    tensor = front().constant(array)
    expose(tensor)
    return tensor


def _as_member(value: Tensor, current: Tensor) -> Tensor:
    """Turn ``value`` into a replacement of ``current``: a Parameter for a Parameter, else a plain tensor."""
    if not isinstance(current, Parameter) or isinstance(value, Parameter):
        return value
    return Parameter(value, requires_grad=current.requires_grad)


def _overrides(module: ModuleState, method: str) -> bool:
    return getattr(type(module), method) is not getattr(ModuleState, method)


def _register(table: OrderedDict[int, Callable[..., Any]], hook: Callable[..., Any]) -> RemovableHandle:
    handle = RemovableHandle(table)
    table[handle.id] = hook
    return handle
