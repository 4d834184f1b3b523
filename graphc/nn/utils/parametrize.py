"""Parametrizations: parameters and buffers computed from other parameters by a module."""

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
    """Parametrizations of one tensor, applied in turn to ``original``.

    The tensors are ``original0``, ``original1``, ... if the first parametrization takes several.
    """

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False):
        super().__init__(modules)
        self.unsafe = unsafe
        with no_grad():
            start = _inverse(self._members(), original)
        self.is_tensor = isinstance(start, Tensor)
        if isinstance(start, Tensor):
            if not unsafe and start.dtype is not original.dtype:
                raise DTypeError(f"right_inverse returned {start.dtype}, the tensor has {original.dtype}")
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
        """Return the arguments of the first parametrization."""
        return [self.original] if self.is_tensor else [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def right_inverse(self, value: Tensor) -> None:
        """Set the originals to make the tensor ``value``; every parametrization needs a ``right_inverse``."""
        with no_grad():
            start = _inverse(self._members(), value)
            new_originals = [start] if isinstance(start, Tensor) else list(start)
            for tensor, new in zip(self.originals(), new_originals, strict=True):
                tensor.copy_(new)

    def forward(self) -> Tensor:
        """Compute the tensor from its originals."""
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
        raise DTypeError(
            f"{name} returned {value.dtype} for a tensor of {original.dtype}", remedy="pass unsafe=True to allow it"
        )
    if tuple(value.shape) != tuple(original.shape):
        raise ShapeError(
            f"{name} returned shape {list(value.shape)} for a tensor of shape {list(original.shape)}",
            remedy="pass unsafe=True to allow it",
        )


class _Parametrized:
    """Rule of an attribute with parametrizations."""

    def __init__(self, name: str):
        self.name = name

    def compute(self, module: Any) -> Tensor:
        """Compute the attribute by its parametrizations."""
        return module.parametrizations[self.name]()

    def assign(self, module: Any, value: Tensor) -> None:
        """Set the originals to make the attribute ``value``."""
        module.parametrizations[self.name].right_inverse(value)


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Compute parameter or buffer ``tensor_name`` by ``parametrization`` from now on; return the module.

    Its argument is kept as ``module.parametrizations[tensor_name].original``. A further parametrization is applied
    after the existing ones. The parametrization's ``right_inverse``, if any, returns the tensor (or tuple of tensors)
    to begin with, and handles assignments. Unless ``unsafe``, the computed value must have the shape and type of the
    tensor.

    Example:
        >>> import graphc as gc
        >>> class Symmetric(gc.nn.Module):
        ...     def forward(self, x):
        ...         return x.triu() + x.triu(1).T
        >>> layer = gc.nn.utils.parametrize.register_parametrization(gc.nn.Linear(3, 3), "weight", Symmetric())
        >>> gc.equal(layer.weight, layer.weight.T)
        True
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        current = getattr(module, tensor_name)
        if not unsafe:
            with no_grad():
                _check("the parametrization", parametrization(current), current)
        module.parametrizations[tensor_name].append(parametrization)
        return module
    tensor = module._parameters.get(tensor_name)
    if tensor is None:
        tensor = module._buffers.get(tensor_name)
    if tensor is None:
        raise AttributeValueError(f"{type(module).__name__} has no parameter or buffer {tensor_name!r}")
    parametrizations = ParametrizationList([parametrization], tensor, unsafe)
    delattr(module, tensor_name)
    if "parametrizations" not in module._modules:
        module.parametrizations = ModuleDict()
    module.parametrizations[tensor_name] = parametrizations
    compute_attribute(module, tensor_name, _Parametrized(tensor_name))
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Check whether a module, or its ``tensor_name`` if given, has parametrizations."""
    parametrizations = module._modules.get("parametrizations")
    if not isinstance(parametrizations, ModuleDict):
        return False
    return len(parametrizations) > 0 if tensor_name is None else tensor_name in parametrizations


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Turn ``tensor_name`` into an ordinary parameter or buffer again, with its current or its original value.

    ``leave_parametrized`` keeps the current value. Raises AttributeValueError when the tensor has no parametrization,
    or when ``leave_parametrized`` is false and it has several originals.
    """
    if not is_parametrized(module, tensor_name):
        raise AttributeValueError(f"{type(module).__name__}: {tensor_name!r} has no parametrization")
    parametrizations = module.parametrizations[tensor_name]
    if not parametrizations.is_tensor and not leave_parametrized:
        raise AttributeValueError(
            f"{tensor_name!r} is computed from several tensors", remedy="pass leave_parametrized=True"
        )
    tensor = parametrizations.originals()[0]
    if leave_parametrized:
        with no_grad():
            value = getattr(module, tensor_name).detach().clone()
        if parametrizations.is_tensor:
            tensor.data = value
        else:
            tensor = Parameter(value, tensor.requires_grad) if isinstance(tensor, Parameter) else value
    stop_computing(module, tensor_name)
    del module.parametrizations[tensor_name]
    if not len(module.parametrizations):
        del module.parametrizations
    if isinstance(tensor, Parameter):
        module.register_parameter(tensor_name, tensor)
    else:
        module.register_buffer(tensor_name, tensor)
    return module


def type_before_parametrizations(module: Module) -> type[Any]:
    """Return the class of a module before parametrizations changed it."""
    return own_class(module) if rules_of(module) else type(module)
