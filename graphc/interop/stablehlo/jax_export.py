"""JAX functions as modules, by ``jax.export``; the only module that imports JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax  # pyright: ignore[reportMissingImports]
from jax import export  # pyright: ignore[reportMissingImports]
from jaxlib.mlir.dialects import stablehlo  # pyright: ignore[reportMissingImports]

from graphc.base.errors import UnsupportedError
from graphc.interop.stablehlo.module import STABLEHLO, StableHLOModule
from graphc.interop.stablehlo.parser import parse_program
from graphc.tensors.structure import LEAF, Branch, Static, Structure


def from_jax(function: Callable[..., Any], args: tuple[Any, ...], checkpoint: int | bool = False) -> StableHLOModule:
    """Convert a function of JAX to a Module, for arguments like ``args``, see ``graphc.from_jax``."""
    version = stablehlo.get_current_version()
    if version.partition(".")[0] != STABLEHLO:
        raise UnsupportedError(
            f"this JAX exports StableHLO {version}, graphc reads StableHLO {STABLEHLO}",
            remedy=f"install a JAX that exports StableHLO {STABLEHLO}, or a newer graphc",
        )
    jitted = function if hasattr(function, "lower") else jax.jit(function)
    try:
        exported = export.export(jitted, platforms=["cpu"])(*args)
    except NotImplementedError as error:
        raise UnsupportedError(
            f"jax.export does not export this function: {error}"[:300],
            remedy="leave out jax.debug.print and callbacks; for Equinox and Diffrax set EQX_ON_ERROR=nan",
        ) from error
    arguments, _ = jax.tree_util.tree_unflatten(exported.in_tree, range(exported.in_tree.num_leaves))
    results = jax.tree_util.tree_unflatten(exported.out_tree, range(exported.out_tree.num_leaves))
    program = parse_program(exported.mlir_module())
    used = exported.module_kept_var_idx
    return StableHLOModule(
        program, _structure(arguments, "an argument"), _structure(results, "the result"), tuple(used), checkpoint
    )


def _structure(tree: Any, title: str) -> Structure:
    """Return the structure of nested numbers, each of which stands for a tensor."""
    if isinstance(tree, int):
        return LEAF
    if tree is None:
        return Static(None)
    if isinstance(tree, dict):
        return Branch(dict, tuple(tree), tuple([_structure(v, title) for v in tree.values()]))
    if isinstance(tree, (tuple, list)):
        return Branch(type(tree), getattr(tree, "_fields", ()), tuple([_structure(v, title) for v in tree]))
    raise UnsupportedError(
        f"{title} holds an object of {type(tree).__name__}, whose nesting only JAX knows",
        remedy="take and return tuples, lists and dictionaries: jax.tree_util.tree_leaves(x)",
    )
