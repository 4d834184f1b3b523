"""The tree of modules: iterators over parameters, buffers and children, and switches that reach all of them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Self

from graphc.base.errors import ArgumentError, AttributeValueError, MemberError, MemberNameError
from graphc.nn.parameter import Parameter
from graphc.tensors.tensor import Tensor

if TYPE_CHECKING:
    from graphc.nn.module import Module


class ModuleTree:
    """The dictionaries of a module and the iterators over them.

    Every iterator yields an object once, even if it is registered several times, unless ``remove_duplicate=False``.
    """

    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _non_persistent_buffers_set: set[str]
    _modules: dict[str, Module | None]
    _backward_hooks: OrderedDict[int, Callable[..., Any]]
    _backward_pre_hooks: OrderedDict[int, Callable[..., Any]]
    _is_full_backward_hook: bool | None
    _forward_hooks: OrderedDict[int, Callable[..., Any]]
    _forward_hooks_with_kwargs: OrderedDict[int, bool]
    _forward_hooks_always_called: OrderedDict[int, bool]
    _forward_pre_hooks: OrderedDict[int, Callable[..., Any]]
    _forward_pre_hooks_with_kwargs: OrderedDict[int, bool]
    _state_dict_hooks: OrderedDict[int, Callable[..., Any]]
    _state_dict_pre_hooks: OrderedDict[int, Callable[..., Any]]
    _load_state_dict_pre_hooks: OrderedDict[int, Callable[..., Any]]
    _load_state_dict_post_hooks: OrderedDict[int, Callable[..., Any]]

    # Iterators

    def children(self) -> Iterator[Module]:
        """Iterate over the direct child modules."""
        for _, module in self.named_children():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Iterate over (name, direct child module)."""
        visited: set[int] = set()
        for name, module in self._modules.items():
            if module is not None and id(module) not in visited:
                visited.add(id(module))
                yield name, module

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """Iterate over this module and all below it, parents first."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Iterate over (dotted name, module): this one first, parents before children.

        ``memo`` is a set of modules to leave out.
        """
        visited = set() if memo is None else memo
        stack: list[tuple[str, Any]] = [(prefix, self)]
        while stack:
            path, module = stack.pop()
            if remove_duplicate:
                if module in visited:
                    continue
                visited.add(module)
            yield path, module
            children = [(join(path, name), child) for name, child in module._modules.items() if child is not None]
            stack.extend(reversed(children))

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Iterate over the parameters of this module and, with ``recurse``, of all below it."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Iterate over (dotted name, parameter).

        Example:
            >>> import graphc as gc
            >>> model = gc.nn.Sequential(gc.nn.Linear(2, 3), gc.nn.Linear(3, 1, bias=False))
            >>> [name for name, parameter in model.named_parameters()]
            ['0.weight', '0.bias', '1.weight']
        """
        return self._named_members(lambda m: m._parameters.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Iterate over the buffers of this module and, with ``recurse``, of all below it."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Iterate over (dotted name, buffer)."""
        return self._named_members(lambda m: m._buffers.items(), prefix, recurse, remove_duplicate)

    def _named_members(
        self,
        members: Callable[[Any], Iterable[tuple[str, Any]]],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        visited: set[int] = set()
        holders: Iterable[tuple[str, Any]] = [(prefix, self)]
        if recurse:
            holders = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
        for path, module in holders:
            for name, value in members(module):
                if value is None or (remove_duplicate and id(value) in visited):
                    continue
                visited.add(id(value))
                yield join(path, name), value

    # Members by dotted name

    def get_submodule(self, target: str) -> Module:
        """Return the module below this one with the dotted name ``target`` ('' for this one). Raises MemberError."""
        module: Any = self
        for name in target.split(".") if target else ():
            child = module._modules.get(name) or getattr(module, name, None)
            if not isinstance(child, ModuleTree):
                owner = type(module).__name__
                fault = f"{owner}.{name} is not a module" if hasattr(module, name) else f"{owner} has no {name!r}"
                raise MemberError(f"get_submodule({target!r}): {fault}")
            module = child
        return module

    def set_submodule(self, target: str, module: Module) -> None:
        """Put ``module`` at the dotted name ``target``; the modules above it must exist."""
        if not target:
            raise AttributeValueError("set_submodule: the target is empty")
        if not isinstance(module, ModuleTree):
            raise ArgumentError(f"set_submodule: {type(module).__name__} is not a Module")
        parent, _, name = target.rpartition(".")
        setattr(self.get_submodule(parent), name, module)

    def get_parameter(self, target: str) -> Parameter:
        """Return the parameter with the dotted name ``target``. Raises MemberError."""
        parent, _, name = target.rpartition(".")
        return self._member(self.get_submodule(parent)._parameters, target, name, "parameter")

    def get_buffer(self, target: str) -> Tensor:
        """Return the buffer with the dotted name ``target``. Raises MemberError."""
        parent, _, name = target.rpartition(".")
        return self._member(self.get_submodule(parent)._buffers, target, name, "buffer")

    @staticmethod
    def _member(table: dict[str, Any], target: str, name: str, kind: str) -> Any:
        if table.get(name) is None:
            raise MemberError(f"{target!r} is not a {kind}", remedy=f"pass one of {sorted(table)}")
        return table[name]

    # Switches

    def apply(self, fn: Callable[[Any], Any]) -> Self:
        """Call ``fn`` with every module, children before parents; return this module."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True) -> Self:
        """Switch this module and all below it to training mode, or to evaluation mode; return this module."""
        if not isinstance(mode, bool):
            raise AttributeValueError(f"train: the mode must be a bool, got {mode!r}")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Switch to evaluation mode, as ``train(False)`` does."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Make all parameters require a gradient, or not; return this module."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Remove the gradients of all parameters, or set them to zero."""
        for parameter in self.parameters():
            clear_gradient(parameter, set_to_none)


def clear_gradient(parameter: Tensor, set_to_none: bool) -> None:
    """Remove the gradient of ``parameter``, or detach it and fill it with zeros."""
    if set_to_none:
        parameter.grad = None
    elif parameter.grad is not None:
        parameter.grad = parameter.grad.detach()
        parameter.grad.zero_()


def join(prefix: str, name: str) -> str:
    """Join a prefix and a name to ``prefix.name``, or just ``name`` if the prefix is empty."""
    return f"{prefix}.{name}" if prefix else name


def check_member_name(name: Any, kind: str, owner: Any, table: dict[str, Any]) -> None:
    """Raise unless ``name`` can be the name of a new ``kind`` of ``owner``; ``table`` holds its members of that
    kind."""
    if not isinstance(name, str):
        raise ArgumentError(f"the name of a {kind} must be a string, got {type(name).__name__} {name!r}")
    if "." in name:
        raise MemberNameError(
            f"{kind} name {name!r} contains a dot", remedy="remove the dot: it separates modules in a path"
        )
    if name == "":
        raise MemberNameError(f"a {kind} has an empty name")
    if hasattr(owner, name) and name not in table:
        raise MemberNameError(f"{kind} {name!r}: {type(owner).__name__} has an attribute of this name already")
