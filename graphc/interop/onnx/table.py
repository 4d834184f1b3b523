"""Rules of the table of ONNX operators, whose modules are imported for the operators that a model has."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import ModuleType

from graphc.base.lazy import imported
from graphc.interop.onnx import registry
from graphc.interop.onnx.operators import MODULES
from graphc.interop.onnx.registry import HOST, TABLE, OperatorEntry, Rule

_RULES = "graphc.interop.onnx.ops"


@functools.cache
def _modules() -> Mapping[tuple[str, str], list[str]]:
    """Return the modules with rules of an operator, by its domain and name."""
    modules: dict[tuple[str, str], list[str]] = {}
    for module, names in MODULES.items():
        for name in names.split():
            domain, _, operator = name.rpartition(":")
            modules.setdefault((domain, operator), []).append(module)
    return modules


@functools.lru_cache(maxsize=4096)
def _load(domain: str, name: str) -> None:
    for module in _modules().get((domain, name), ()):
        imported(f"{_RULES}.{module}")


def find(domain: str, name: str, version: int) -> OperatorEntry | None:
    """Return the entry of an operator in a version of its domain, or None."""
    _load(domain, name)
    return registry.find(domain, name, version)


def host_function(domain: str, name: str) -> Rule | None:
    """Return the function of arrays that computes an operator where all inputs are static, or None."""
    _load(domain, name)
    return HOST.get((domain, name))


def has_domain(domain: str) -> bool:
    """Return whether the table has an operator of a domain."""
    return any(known == domain for known, _ in (*_modules(), *TABLE))


def families() -> tuple[ModuleType, ...]:
    """Return all modules of rules, which fills the whole table."""
    return tuple([imported(f"{_RULES}.{module}") for module in MODULES])
