"""Reader of ``torch.fx`` graphs from Dynamo, AOTAutograd and ``torch.export``."""

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
"""Element types that PyTorch and graphc share."""
_IGNORED = (torch.device, torch.layout, torch.memory_format)
_PYTORCH = os.path.dirname(torch.__file__) + os.sep
_FRAME = re.compile(r'File "([^"]+)", line (\d+), in ')


def read_fx(module: fx.GraphModule, name: str = "main") -> AtenGraph:
    """Convert a module of ``torch.fx`` with ATen operators and operators on numbers to a graph.

    Raises UnsupportedError for an element type that graphc lacks, and for calls of modules and methods.
    """
    graph = AtenGraph(name, [], [], None)
    for node in module.graph.nodes:
        if node.op == "placeholder":
            graph.inputs.append(node.name)
        elif node.op == "get_attr":
            graph.constants[node.name] = _constant(module, node)
        elif node.op == "output":
            graph.output = _argument(node.args[0])
        elif node.op == "call_function":
            graph.steps.append(read_node(node))
        else:
            raise UnsupportedError(f"{node.op} {node.target}: graphc reads calls of functions only", where=str(node))
    return graph


def read_node(node: fx.Node) -> Step:
    """Convert one application of an operator. Raises UnsupportedError as ``read_fx`` does."""
    location = place_of(node)
    try:
        _check_layout(node)
        operands = [a for a in node.args if not isinstance(a, _IGNORED)]
        if target_of(node.target) == AUTOCAST:
            operands[1] = None
        args = tuple(map(_argument, operands))
        kwargs = {k: _argument(v) for k, v in node.kwargs.items() if k not in WITHOUT_MEANING}
    except UnsupportedError as error:
        error.where, error.origin = str(node.format_node()), location.describe()
        raise
    return Step(node.name, target_of(node.target), args, kwargs, location)


def target_of(target: Any) -> str:
    """Return the name of a node's target in the table of rules."""
    if isinstance(target, torch._ops.OpOverload):
        return str(target)
    if isinstance(target, torch._ops.HigherOrderOperator):
        return f"higher_order.{target.name()}"
    module = getattr(target, "__module__", "") or ""
    return f"{module.removeprefix('_')}.{getattr(target, '__name__', str(target))}"


def place_of(node: fx.Node) -> Location:
    """Return the user's line for a node, and the path of its module."""
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    if not frames:
        return UNKNOWN
    file, line = next((f for f in reversed(frames) if not f[0].startswith(_PYTORCH)), frames[-1])
    stack = node.meta.get("nn_module_stack") or {}
    path = next(reversed(stack.values()))[0] if stack else ""
    return Location(str(path).removeprefix("L['self'].").removeprefix("L['self']"), file, int(line))


def dtype_of(dtype: torch.dtype) -> DType:
    """Return graphc's element type. Raises UnsupportedError where graphc lacks it."""
    try:
        return DTYPES[dtype]
    except KeyError:
        raise UnsupportedError(f"graphc has no tensors of {dtype}") from None


def tensor_of(source: torch.Tensor) -> Tensor:
    """Copy a tensor, also while PyTorch is in fake tensor mode."""
    with unset_fake_temporarily():
        return _copied(source)


def _copied(source: torch.Tensor) -> Tensor:
    dtype = dtype_of(source.dtype)
    return Tensor._wrap(memory_of(source.detach().contiguous()).astype(dtype.numpy))


def memory_of(tensor: torch.Tensor) -> np.ndarray:
    """Return the array of a detached tensor, in the same memory."""
    if tensor.dtype is torch.bfloat16:  # numpy lacks bfloat16
        return tensor.view(torch.int16).numpy().view(dtypes.bfloat16.numpy)
    return tensor.numpy()


def _constant(module: fx.GraphModule, node: fx.Node) -> Any:
    value: Any = module
    for name in str(node.target).split("."):
        value = getattr(value, name)
    if isinstance(value, fx.GraphModule):
        return read_fx(value, node.name)
    return tensor_of(value)


def _check_layout(node: fx.Node) -> None:
    """Raise UnsupportedError for ``as_strided`` of a tensor with gaps, whose memory graphc does not see."""
    if "as_strided" not in str(node.target):
        return
    source = node.args[0].meta.get("val") if isinstance(node.args[0], fx.Node) else None
    if not isinstance(source, torch.Tensor) or not source.is_contiguous() or source.storage_offset() != 0:
        raise UnsupportedError("as_strided needs a contiguous tensor that starts at its storage")


def _argument(value: Any) -> Any:
    kinds: dict[type, Callable[[Any], Any]] = {fx.Node: lambda n: Ref(n.name), torch.dtype: dtype_of}
    for kind, convert in kinds.items():
        if isinstance(value, kind):
            return convert(value)
    if isinstance(value, (list, tuple)):
        return tuple([_argument(element) for element in value])
    if isinstance(value, dict):
        return {key: _argument(element) for key, element in value.items()}
    if isinstance(value, slice):
        return slice(*map(_argument, (value.start, value.stop, value.step)))
    if isinstance(value, torch.SymInt) and (number := value.node.maybe_as_int()) is not None:
        return number
    if value is None or isinstance(value, (int, float, complex, str, bool)) or value is Ellipsis:
        return value
    if isinstance(value, _IGNORED):
        return None
    raise UnsupportedError(f"graphc cannot read an argument of {type(value).__name__}: {value!r}"[:200])
