"""Computed attributes of modules: each read evaluates a function of parameters, such as a weight of norm 1."""

from __future__ import annotations

from typing import Any, Protocol

from graphc.base import mutation_epoch
from graphc.base.errors import ArgumentError
from graphc.base.public import call, path_of, resolve
from graphc.nn.module import Module
from graphc.tensors.tensor import Tensor


class Rule(Protocol):
    """Computation of an attribute, and the effect of an assignment to it."""

    def compute(self, module: Any) -> Tensor:
        """Compute the value with tensor operations, so that gradients reach the tensors it depends on."""
        ...

    def assign(self, module: Any, value: Tensor) -> None:
        """Set the tensors from which the value is computed."""
        ...


def rules_of(module: Module) -> dict[str, Rule]:
    """Return the computed attributes of a module by name."""
    return module.__dict__.get("_computed", {})


def compute_attribute(module: Module, name: str, rule: Rule) -> None:
    """Compute ``module.name`` by ``rule`` from now on. The module's class becomes a subclass with that property."""
    _set_rules(module, rules_of(module) | {name: rule})


def stop_computing(module: Module, name: str) -> None:
    """Free ``name`` for an ordinary attribute; removing the last rule restores the module's own class."""
    _set_rules(module, {n: r for n, r in rules_of(module).items() if n != name})


def own_class(module: Module) -> type[Any]:
    """Return the class of the module before it got computed attributes."""
    return getattr(type(module), "_before_computed", type(module))


def _set_rules(module: Module, rules: dict[str, Rule]) -> None:
    base = own_class(module)
    module.__dict__["_computed"] = rules
    mutation_epoch.note()
    object.__setattr__(module, "__class__", _class_with(base, tuple(rules)) if rules else base)


def _class_with(base: type[Any], names: tuple[str, ...]) -> type[Any]:
    members: dict[str, Any] = {name: _property(name) for name in names}
    members |= {"_before_computed": base, "__module__": base.__module__, "__reduce_ex__": _reduce}
    return type(f"Parametrized{base.__name__}", (base,), members)


def _property(name: str) -> property:
    def read(module: Any) -> Tensor:
        return rules_of(module)[name].compute(module)

    def write(module: Any, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise ArgumentError(
                f"{type(module).__name__}.{name} is computed from parameters: expected a tensor, got "
                f"{type(value).__name__}"
            )
        rules_of(module)[name].assign(module, value)

    return property(read, write)


def _reduce(module: Any, protocol: Any) -> Any:
    base = own_class(module)
    return call, ("parametrized", path_of(base) or base, tuple(rules_of(module))), module.__getstate__()


def restored(base: Any, names: tuple[str, ...]) -> Any:
    """Create a module with computed attributes ``names``, before its state is set; ``base`` is its own class or the
    path of it."""
    return object.__new__(_class_with(resolve(base), names))
