"""Names of the functions and rules by which operators of other frameworks are computed."""

from __future__ import annotations

from typing import Any

import graphc
from graphc.nn import functional

_SPACES = {"graphc": graphc, "graphc.nn.functional": functional}


def computed_by(function: Any, rules: str) -> str:
    """Describe the implementation of an operator: a function of graphc or of Python, or a rule of the package ``rules``
    with its docstring."""
    module, name = str(getattr(function, "__module__", "")), str(getattr(function, "__qualname__", ""))
    if module.startswith(f"{rules}."):
        says = " ".join((function.__doc__ or "").partition("\n\n")[0].split()).replace("|", "\\|")
        own = f"`{module.rpartition('.')[2]}.{name.partition('.')[0]}`"
        return f"{own}: {says}" if says else own
    if not module.startswith("graphc."):
        return "Python"
    for path, space in _SPACES.items():
        if getattr(space, name, None) is function:
            return f"`{path}.{name}`"
    return f"`graphc.Tensor.{name.rpartition('.')[2]}`"
