"""Parametrizations: a parameter or buffer of a module that is a function, itself a module, of other parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.base.errors import ArgumentError, AttributeValueError, DTypeError, ShapeError
from graphc.nn.computed import compute_attribute, own_class, rules_of, stop_computing
from graphc.nn.module import Module
from graphc.nn.modules.container import ModuleDict, ModuleList
from graphc.nn.parameter import Parameter
from graphc.tape.grad_mode import no_grad
from graphc.tensors.tensor import Tensor


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, applied one after the other to ``original`` (or ``original0``, ... where the
    first one takes several tensors)."""

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False):
        super().__init__(modules)
        self.unsafe = unsafe
        with no_grad():
            start = _inverse(self._members(), original)
        self.is_tensor = isinstance(start, Tensor)
        if isinstance(start, Tensor):
            if not unsafe and start.dtype is not original.dtype:
                raise DTypeError(f"right_inverse gives {start.dtype}, the tensor has {original.dtype}")
            with no_grad():
                original.data = start.detach()
            self._keep("original", original)
        else:
            self.ntensors = len(start)
            for i, tensor in enumerate(start):
                trained = isinstance(original, Parameter)
                self._keep(f"original{i}", Parameter(tensor, original.requires_grad) if trained else tensor.detach())
        if not unsafe:
            _check("the parametrization", self(), original)

    def _keep(self, name: str, tensor: Tensor) -> None:
        if isinstance(tensor, Parameter):
            self.register_parameter(name, tensor)
        else:
            self.register_buffer(name, tensor)

    def originals(self) -> list[Tensor]:
        """The tensors that the first parametrization takes."""
        return [self.original] if self.is_tensor else [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def right_inverse(self, value: Tensor) -> None:
        """Sets the originals to what gives ``value``; every parametrization needs a ``right_inverse``."""
        with no_grad():
            start = _inverse(self._members(), value)
            given = [start] if isinstance(start, Tensor) else list(start)
            for tensor, new in zip(self.originals(), given, strict=True):
                tensor.copy_(new)

    def forward(self) -> Tensor:
        """The tensor."""
        first, *rest = self._members()
        value = first(*self.originals())
        for parametrization in rest:
            value = parametrization(value)
        return value


def _inverse(parametrizations: Sequence[Any], value: Any) -> Any:
    for parametrization in reversed(parametrizations):
        if hasattr(parametrization, "right_inverse"):
            value = parametrization.right_inverse(value)
    return value


def _check(name: str, value: Any, original: Tensor) -> None:
    if not isinstance(value, Tensor):
        raise ArgumentError(f"{name} must return a tensor, got {type(value).__name__}")
    if value.dtype is not original.dtype:
        raise DTypeError(f"{name} gives {value.dtype} for a tensor of {original.dtype}", remedy="unsafe=True allows it")
    if tuple(value.shape) != tuple(original.shape):
        raise ShapeError(
            f"{name} gives {list(value.shape)} for a tensor of {list(original.shape)}", remedy="unsafe=True allows it"
        )


class _Parametrized:
    """The rule of an attribute that has parametrizations."""

    def __init__(self, name: str):
        self.name = name

    def compute(self, module: Any) -> Tensor:
        """What the parametrizations give."""
        return module.parametrizations[self.name]()

    def assign(self, module: Any, value: Tensor) -> None:
        """Sets the originals."""
        module.parametrizations[self.name].right_inverse(value)


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Makes parameter or buffer ``tensor_name`` the value of ``parametrization`` at a tensor that is kept instead, as
    ``module.parametrizations[tensor_name].original``; further ones are applied after those that exist.

    With ``right_inverse`` the parametrization says which tensor (or tuple of tensors) to begin with, and what an
    assignment does. Unless ``unsafe``, the value must have the shape and type of the tensor. Returns the module.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        present = getattr(module, tensor_name)
        if not unsafe:
            with no_grad():
                _check("the parametrization", parametrization(present), present)
        module.parametrizations[tensor_name].append(parametrization)
        return module
    tensor = module._parameters.get(tensor_name)
    if tensor is None:
        tensor = module._buffers.get(tensor_name)
    if tensor is None:
        raise AttributeValueError(f"{type(module).__name__} has no parameter or buffer {tensor_name!r}")
    found = ParametrizationList([parametrization], tensor, unsafe)
    delattr(module, tensor_name)
    if "parametrizations" not in module._modules:
        module.parametrizations = ModuleDict()
    module.parametrizations[tensor_name] = found
    compute_attribute(module, tensor_name, _Parametrized(tensor_name))
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a module has parametrizations, of ``tensor_name`` if it is given."""
    found = module._modules.get("parametrizations")
    if not isinstance(found, ModuleDict):
        return False
    return len(found) > 0 if tensor_name is None else tensor_name in found


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Makes ``tensor_name`` an ordinary parameter or buffer again: of the value that it has, or of its original.

    Raises AttributeValueError when it has no parametrization, or has several originals and they are to be left.
    """
    if not is_parametrized(module, tensor_name):
        raise AttributeValueError(f"{type(module).__name__}: {tensor_name!r} has no parametrization")
    found = module.parametrizations[tensor_name]
    if not found.is_tensor and not leave_parametrized:
        raise AttributeValueError(f"{tensor_name!r} is made of several tensors", remedy="leave_parametrized=True")
    kept = found.originals()[0]
    if leave_parametrized:
        with no_grad():
            value = getattr(module, tensor_name).detach().clone()
        if found.is_tensor:
            kept.data = value
        else:
            kept = Parameter(value, kept.requires_grad) if isinstance(kept, Parameter) else value
    stop_computing(module, tensor_name)
    del module.parametrizations[tensor_name]
    if not len(module.parametrizations):
        del module.parametrizations
    if isinstance(kept, Parameter):
        module.register_parameter(tensor_name, kept)
    else:
        module.register_buffer(tensor_name, kept)
    return module


def type_before_parametrizations(module: Module) -> type[Any]:
    """The class of a module as it was written."""
    return own_class(module) if rules_of(module) else type(module)
