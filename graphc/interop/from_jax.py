"""``graphc.from_jax``: a function of JAX as a module of graphc."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from graphc.base.installation import install_command
from graphc.base.lazy import deferred

_read = deferred("graphc.interop.stablehlo.jax_export:from_jax")


def from_jax(function: Callable[..., Any], *args: Any, checkpoint: int | bool = False) -> Any:
    """Convert a JAX function to a Module of graphc, by ``jax.export`` and the StableHLO text that it prints.

    The module computes what ``jax.jit(function)`` computes for arguments of these shapes and element types: JAX's
    transformations (``grad``, ``vmap``, ``scan``) are part of the program. docs/from_jax.md lists the operations.

    Args:
        function: a function of arrays in nested tuples, lists and dictionaries, or a ``jax.jit`` of it.
        args: example arguments by position: arrays, or ``jax.ShapeDtypeStruct``.
        checkpoint: a number k: gradients of loops with a known number of steps keep their state before each k steps
            alone, as in ``graphc.scan``. True stands for about the square root of the number of steps.

    Returns:
        A Module that takes tensors or arrays nested like ``args`` and returns tensors nested like the result.
        ``jax.random.key`` is an argument of two u32 numbers.

    Raises:
        ModuleNotFoundError: JAX is not installed.
        UnsupportedError: operations without a rule; the message names them with their lines in the text.

    Example:
        >>> import graphc as gc
        >>> import jax.numpy as jnp
        >>> model = gc.from_jax(lambda x: jnp.cumsum(x), jnp.zeros(3))
        >>> model(gc.ones(3))
        tensor([1., 2., 3.])
    """
    if find_spec("jax") is None:
        raise ModuleNotFoundError(f"from_jax needs JAX: {install_command('jax')}", name="jax")
    return _read(function, args, checkpoint)
