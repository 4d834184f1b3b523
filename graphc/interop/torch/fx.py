"""Reads graphs of ``torch.fx`` that Dynamo, AOTAutograd and ``torch.export`` make."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import fx
from torch._subclasses.fake_tensor import unset_fake_temporarily

from graphc.base import dtypes
from graphc.base.dtypes import DType
from graphc.base.errors import UnsupportedError
from graphc.base.location import UNKNOWN, Location
from graphc.interop.aten.graph import AUTOCAST, WITHOUT_MEANING, AtenGraph, Ref, Step
from graphc.tensors.tensor import Tensor

DTYPES = {getattr(torch, ours.long_name): ours for ours in dtypes.ALL}
"""Element types that both have."""
_PLACES = (torch.device, torch.layout, torch.memory_format)
_PYTORCH = os.path.dirname(torch.__file__) + os.sep
_FRAME = re.compile(r'File "([^"]+)", line (\d+), in ')


def read_fx(module: fx.GraphModule, name: str = "main") -> AtenGraph:
    """The graph of a module of ``torch.fx`` whose nodes are ATen operators and operators on numbers.

    Raises UnsupportedError for an element type that graphc does not have, and for calls of modules and methods."""
    found = AtenGraph(name, [], [], None)
    for node in module.graph.nodes:
        if node.op == "placeholder":
            found.inputs.append(node.name)
        elif node.op == "get_attr":
            found.constants[node.name] = _constant(module, node)
        elif node.op == "output":
            found.output = _argument(node.args[0])
        elif node.op == "call_function":
            found.steps.append(read_node(node))
        else:
            raise UnsupportedError(f"{node.op} {node.target}: only functions can be read", where=str(node))
    return found


def read_node(node: fx.Node) -> Step:
    """One application of an operator; raises UnsupportedError as ``read_fx`` does."""
    place = place_of(node)
    try:
        _check_layout(node)
        given = [a for a in node.args if not isinstance(a, _PLACES)]
        if target_of(node.target) == AUTOCAST:
            given[1] = None
        args = tuple(map(_argument, given))
        kwargs = {k: _argument(v) for k, v in node.kwargs.items() if k not in WITHOUT_MEANING}
    except UnsupportedError as error:
        error.where, error.origin = str(node.format_node()), place.describe()
        raise
    return Step(node.name, target_of(node.target), args, kwargs, place)


def target_of(target: Any) -> str:
    """The name by which the table knows what a node calls."""
    if isinstance(target, torch._ops.OpOverload):
        return str(target)
    if isinstance(target, torch._ops.HigherOrderOperator):
        return f"higher_order.{target.name()}"
    module = getattr(target, "__module__", "") or ""
    return f"{module.removeprefix('_')}.{getattr(target, '__name__', str(target))}"


def place_of(node: fx.Node) -> Location:
    """The line of the user that a node comes from, and the path of the module that it belongs to."""
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    if not frames:
        return UNKNOWN
    file, line = next((f for f in reversed(frames) if not f[0].startswith(_PYTORCH)), frames[-1])
    stack = node.meta.get("nn_module_stack") or {}
    path = next(reversed(stack.values()))[0] if stack else ""
    return Location(str(path).removeprefix("L['self'].").removeprefix("L['self']"), file, int(line))


def dtype_of(found: torch.dtype) -> DType:
    """Raises UnsupportedError for an element type that graphc does not have."""
    try:
        return DTYPES[found]
    except KeyError:
        raise UnsupportedError(f"graphc has no tensors of {found}") from None


def tensor_of(found: torch.Tensor) -> Tensor:
    """A copy of a tensor, also where PyTorch is about to compute with fake ones."""
    with unset_fake_temporarily():
        return _copied(found)


def _copied(found: torch.Tensor) -> Tensor:
    dtype = dtype_of(found.dtype)
    return Tensor._wrap(memory_of(found.detach().contiguous()).astype(dtype.numpy))


def memory_of(found: torch.Tensor) -> np.ndarray:
    """The array of a tensor without history, in the same memory."""
    if found.dtype is torch.bfloat16:  # which numpy has not
        return found.view(torch.int16).numpy().view(dtypes.bfloat16.numpy)
    return found.numpy()


def _constant(module: fx.GraphModule, node: fx.Node) -> Any:
    value: Any = module
    for part in str(node.target).split("."):
        value = getattr(value, part)
    if isinstance(value, fx.GraphModule):
        return read_fx(value, node.name)
    return tensor_of(value)


def _check_layout(node: fx.Node) -> None:
    """``as_strided`` reads memory as it lies, which graphc knows of dense tensors alone."""
    if "as_strided" not in str(node.target):
        return
    given = node.args[0].meta.get("val") if isinstance(node.args[0], fx.Node) else None
    if not isinstance(given, torch.Tensor) or not given.is_contiguous() or given.storage_offset() != 0:
        raise UnsupportedError("as_strided of a tensor that is a part or a permutation of another one")


def _argument(value: Any) -> Any:
    kinds: dict[type, Callable[[Any], Any]] = {fx.Node: lambda n: Ref(n.name), torch.dtype: dtype_of}
    for kind, convert in kinds.items():
        if isinstance(value, kind):
            return convert(value)
    if isinstance(value, (list, tuple)):
        return tuple([_argument(part) for part in value])
    if isinstance(value, dict):
        return {key: _argument(part) for key, part in value.items()}
    if isinstance(value, slice):
        return slice(*map(_argument, (value.start, value.stop, value.step)))
    if isinstance(value, torch.SymInt) and (known := value.node.maybe_as_int()) is not None:
        return known
    if value is None or isinstance(value, (int, float, complex, str, bool)) or value is Ellipsis:
        return value
    if isinstance(value, _PLACES):
        return None
    raise UnsupportedError(f"an argument of {type(value).__name__} {value!r}"[:200])
