"""The plainest lowering: every node of a graph becomes a kernel of its own, run by the kernel interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from graphc.base.dtypes import DType
from graphc.base.sizes.size import is_one
from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import CONSTANT, Graph, Node
from graphc.ir.graph.interpret import Interpreter
from graphc.ir.kernel.index import Index, IndexLike, flatten
from graphc.ir.kernel.interpret import run_kernel
from graphc.ir.kernel.lowering import OperandRef
from graphc.ir.kernel.nest import NestBuilder, Scalar
from graphc.ir.kernel.statements import Buffer, Guard, Kernel
from graphc.ir.kernel.verify import verify_kernel
from graphc.ir.op import Attrs, OpDef, Trait, Types
from graphc.ir.types import TensorType, row_major_strides
from graphc.ops import dispatch
from graphc.ops.flow.loop import run_steps, scan
from graphc.ops.pointwise.complex import view_as_complex, view_as_real
from graphc.passes.split_complex import SplitComplex


class MemoryContext:
    """LowerContext with operands in buffers ``in0``, ``in1``, ... and the result in ``out``."""

    def __init__(self, type: TensorType):
        self.nest = NestBuilder()
        self.type = type
        self.own: list[Buffer] = []

    def load(self, operand: OperandRef, index: Sequence[IndexLike], guard: Guard = (), other: Any = 0) -> Scalar:
        place = flatten(index, row_major_strides(operand.shape))
        return self.nest.load_at(f"in{operand.position}", place, operand.dtype, guard, other)

    def broadcast(self, operand: OperandRef, index: Sequence[Index]) -> Scalar:
        tail = index[len(index) - len(operand.shape) :]
        return self.load(operand, [Index() if is_one(n) else i for i, n in zip(tail, operand.shape, strict=True)])

    def store(self, index: Sequence[IndexLike], value: Scalar, guard: Guard = (), combine: str | None = None) -> None:
        self.nest.store_at("out", flatten(index, row_major_strides(self.type.shape)), value, guard, combine)

    def scratch(self, dtype: DType, size: int) -> str:
        self.own.append(Buffer("work", dtype, size, "scratch"))
        return "work"


def lower_op(op: OpDef, types: Types, attrs: Attrs) -> Kernel:
    """One op as one kernel."""
    (type,) = op.result_types(types, attrs)
    c = MemoryContext(type)
    refs = [OperandRef(i, t) for i, t in enumerate(types)]
    if op.lower_nest is not None:
        if op.updates is not None:
            with c.nest.loops(type.shape) as index:
                c.store(index, c.load(refs[op.updates], index))
        op.lower_nest(c, *refs, **attrs)
    else:
        assert op.lower is not None, f"{op.name} has no kernel rule"
        with c.nest.loops(type.shape) as index:
            value = op.lower(c, index, *refs, **attrs)
            assert value.dtype is type.dtype, f"{op.name} lowers to {value.dtype}, its type is {type}"
            c.store(index, value)
    buffers = [Buffer(f"in{i}", t.dtype, t.size, "in") for i, t in enumerate(types)]
    role = "inout" if op.has(Trait.CHECK) else "out"
    result = Buffer("out", type.dtype, type.size, role)
    return Kernel(op.name, (*buffers, result, *c.own), c.nest.body())


class KernelByKernel(Interpreter):
    """Decomposes what can be, lowers the rest node by node, and runs the kernels."""

    def apply(self, node: Node, operands: list[np.ndarray]) -> Sequence[np.ndarray]:
        if node.op is CONSTANT:
            return (node.attrs["value"],)
        if node.op in (view_as_real.op, view_as_complex.op):  # what nothing is computed for
            return node.op.evaluate(operands, node.attrs)
        parts = decomposed(node) if not is_complex(node) else split(node)
        if parts is not None:
            return KernelByKernel().run(parts, operands)
        if node.op is scan.op:
            run = partial(KernelByKernel().run, node.attrs["body"])
            return run_steps(run, operands, node.attrs)
        if node.op.has(Trait.BRANCH) or node.op.has(Trait.WHILE):
            return self._held(node, operands)
        if not node.result.type.size:
            return (np.zeros(node.result.shape, node.result.dtype.numpy),)
        kernel = lower_op(node.op, tuple(v.type for v in node.operands), node.attrs)
        verify_kernel(kernel)
        result = np.zeros(node.result.shape, node.result.dtype.numpy)
        arrays = {f"in{i}": np.ascontiguousarray(a) for i, a in enumerate(operands)}
        run_kernel(kernel, arrays | {"out": result})
        return (result,)

    def _held(self, node: Node, operands: list[np.ndarray]) -> Sequence[np.ndarray]:
        """The results of a branch, or of a loop, whose graphs run kernel by kernel."""
        attrs = node.attrs
        if node.op.has(Trait.BRANCH):
            return KernelByKernel().run(attrs["then" if operands[0] else "otherwise"], operands[1:])
        present, rest = operands[: attrs["carries"]], operands[attrs["carries"] :]
        while KernelByKernel().run(attrs["test"], [*present, *rest])[0]:
            present = list(KernelByKernel().run(attrs["body"], [*present, *rest]))
        return present


def is_complex(node: Node) -> bool:
    """Whether a node has complex operands or results."""
    return any(v.dtype.is_complex for v in (*node.operands, *node.results))


def split(node: Node) -> Graph:
    """Return a graph of the node on real and imaginary parts."""
    graph = Graph(node.op.name)
    arguments = [graph.add_input(v.type, f"x{i}") for i, v in enumerate(node.operands)]
    graph.set_outputs(emit(graph, node.op, arguments, node.attrs))
    return SplitComplex().run(graph).graph


def decomposed(node: Node) -> Graph | None:
    """The node's decomposition as a graph of its own, or None when it has none."""
    if node.op.decompose is None:
        return None
    graph = Graph(node.op.name)
    arguments = [graph.add_input(v.type, f"x{i}") for i, v in enumerate(node.operands)]
    with dispatch.use(dispatch.GraphDispatcher(graph)):
        results = node.op.decompose(*arguments, **node.attrs)
    if results is None:
        return None
    graph.set_outputs(results if isinstance(results, tuple) else (results,))
    assert tuple(v.type for v in graph.outputs) == tuple(v.type for v in node.results)
    return graph
