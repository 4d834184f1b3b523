"""Normed weights with the state names from before parametrizations: weight_g, weight_v, weight_orig."""

from __future__ import annotations

from typing import Any

from graphc.base.errors import ArgumentError, AttributeValueError
from graphc.nn import functional as F
from graphc.nn.computed import compute_attribute, rules_of, stop_computing
from graphc.nn.module import Module
from graphc.nn.parameter import Parameter
from graphc.nn.utils.parametrizations import (
    as_matrix,
    default_dim,
    norm_except_dim,
    over_singular_value,
    power_iteration,
    scaled_direction,
)
from graphc.tape.grad_mode import no_grad
from graphc.tensors.tensor import Tensor

__all__ = ["remove_spectral_norm", "remove_weight_norm", "spectral_norm", "weight_norm"]


class _Normed:
    """Rule of a weight computed from its norm and direction."""

    def __init__(self, name: str, dim: int | None):
        self.name = name
        self.dim = dim

    def compute(self, module: Any) -> Tensor:
        """Compute the weight from its direction and norm."""
        return scaled_direction(module._parameters[f"{self.name}_v"], module._parameters[f"{self.name}_g"], self.dim)

    def assign(self, module: Any, value: Tensor) -> None:
        """Set norm and direction to make the weight ``value``."""
        with no_grad():
            module._parameters[f"{self.name}_g"].copy_(norm_except_dim(value, self.dim))
            module._parameters[f"{self.name}_v"].copy_(value)


class _Spectral:
    """Rule of a weight divided by its largest singular value."""

    def __init__(self, name: str, iterations: int, eps: float, dim: int):
        self.name = name
        self.iterations = iterations
        self.eps = eps
        self.dim = dim

    def compute(self, module: Any) -> Tensor:
        """Compute the weight; in training mode, first refine the estimates of its singular vectors."""
        weight, u, v = module._parameters[f"{self.name}_orig"], *self.vectors(module)
        matrix = as_matrix(weight, self.dim)
        if module.training:
            power_iteration(matrix.transpose(0, 1), v, u, self.iterations, self.eps)
        return over_singular_value(weight, matrix, u, v)

    def vectors(self, module: Any) -> tuple[Tensor, Tensor]:
        """Return the estimates of the first singular vectors."""
        return module._buffers[f"{self.name}_u"], module._buffers[f"{self.name}_v"]

    def assign(self, module: Any, value: Tensor) -> None:
        """Set the weight before the division."""
        with no_grad():
            module._parameters[f"{self.name}_orig"].copy_(value)


def _take(module: Module, name: str, rule: type) -> Parameter:
    """Take the parameter that will be computed from now on out of the module and return it."""
    if name in rules_of(module):
        kind = "two" if isinstance(rules_of(module)[name], rule) else "further"
        raise ArgumentError(f"{type(module).__name__}.{name} cannot have {kind} norms", remedy="remove the first one")
    weight = module._parameters.get(name)
    if weight is None:
        raise AttributeValueError(f"{type(module).__name__} has no parameter {name!r}")
    del module._parameters[name]
    return weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Replace a weight by its norm ``name_g``, one per slice along ``dim``, and its direction ``name_v``.

    New programs should use ``parametrizations.weight_norm``, whose state has other names.
    """
    weight = _take(module, name, _Normed)
    norm = norm_except_dim(weight.detach(), dim)
    module.register_parameter(f"{name}_g", Parameter(norm))
    module.register_parameter(f"{name}_v", Parameter(weight.detach()))
    compute_attribute(module, name, _Normed(name, dim))
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Turn the weight into a parameter again."""
    return _remove(module, name, _Normed, ("_g", "_v"))


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divide a weight, which becomes ``name_orig``, by its largest singular value.

    ``name_u`` and ``name_v`` hold the estimates of its singular vectors. New programs should use
    ``parametrizations.spectral_norm``, whose state has other names.
    """
    if n_power_iterations < 1:
        raise AttributeValueError(f"spectral_norm: n_power_iterations must be 1 or more, got {n_power_iterations}")
    weight = _take(module, name, _Spectral)
    rows = default_dim(module) if dim is None else dim
    with no_grad():
        matrix = as_matrix(weight.detach(), rows)
        vectors = [F.normalize(matrix.new_empty(size).normal_(), dim=0, eps=eps) for size in matrix.shape]
    module.register_parameter(f"{name}_orig", weight)
    module.register_buffer(f"{name}_u", vectors[0])
    module.register_buffer(f"{name}_v", vectors[1])
    compute_attribute(module, name, _Spectral(name, n_power_iterations, eps, rows))
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Turn the weight into a parameter again."""
    return _remove(module, name, _Spectral, ("_orig", "_u", "_v"))


def _remove(module: Module, name: str, kind: type, suffixes: tuple[str, ...]) -> Module:
    rule = rules_of(module).get(name)
    if not isinstance(rule, kind):
        norm = "weight" if kind is _Normed else "spectral"
        raise AttributeValueError(f"{type(module).__name__}.{name} has no {norm} norm")
    with no_grad():
        value = getattr(module, name).detach()
    stop_computing(module, name)
    for suffix in suffixes:
        delattr(module, name + suffix)
    module.register_parameter(name, Parameter(value))
    return module
