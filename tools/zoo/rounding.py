"""Rounding of quantised models: how far ONNX Runtime strays from itself, and whether single operators have its codes.

A sum in another order may round to the neighbouring code. Deep and recurrent networks multiply that step, so that two
right programs differ by any amount. ``moved_results`` measures the amount by ONNX Runtime alone. ``codes`` finds faults
below it: each quantised operator computes from ONNX Runtime's own operands, and must give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx

from benchmarks.peers.onnx_calls import onnx_session

Arguments = Mapping[str, np.ndarray]
Call = Callable[[bytes, list[np.ndarray]], Sequence[np.ndarray]]
"""Computes the results of a model."""
DRAWS = 16
"""Models with moved weights. A code close to the middle of two changes in about every other one."""
EXACT = frozenset({"ConvInteger", "DequantizeLinear", "DynamicQuantizeLinear", "MatMulInteger", "QuantizeLinear"})
"""Quantised operators without an elementary function or a sum in f32: their results have one right value."""


def moved_results(path: Path, cases: Sequence[Arguments]) -> Iterator[list[list[np.ndarray]]]:
    """Yield ONNX Runtime's results of all cases for each draw, after f32 weights and inputs were moved at random.

    Each number moves by one unit in the last place, up or down, or stays. Single numbers stay: they are exponents and
    limits.
    """
    for seed in range(DRAWS):
        rng = np.random.default_rng(seed)
        model = onnx.load(path)
        for tensor in _constants(model).values():
            if tensor.data_type == onnx.TensorProto.FLOAT:
                moved = _moved(onnx.numpy_helper.to_array(tensor), rng)
                tensor.CopyFrom(onnx.numpy_helper.from_array(moved, tensor.name))
        session = onnx_session(model.SerializeToString())
        yield [session.run(None, {name: _moved(array, rng) for name, array in case.items()}) for case in cases]


def _moved(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    if array.dtype != np.float32 or array.size <= 1:
        return array
    towards = rng.choice(np.array([-np.inf, 0.0, np.inf], np.float32), array.shape)
    return np.where(np.isfinite(array) & (towards != 0), np.nextafter(array, towards), array)


def _constants(model: onnx.ModelProto) -> dict[str, onnx.TensorProto]:
    """Return the tensors of initializers and of the nodes Constant, by name."""
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    values = [(n, a) for n in model.graph.node if n.op_type == "Constant" for a in n.attribute if a.name == "value"]
    return tensors | {node.output[0]: attribute.t for node, attribute in values}


def codes(path: Path, case: Arguments, call: Call) -> tuple[int, int]:
    """Return how many elements the quantised operators of a model compute, and how many differ from ONNX Runtime's.

    ``call`` computes a model of these operators, each with operands of its own.
    """
    model = onnx.load(path)
    nodes = [node for node in model.graph.node if node.op_type in EXACT]
    if not nodes:
        return 0, 0
    names = dict.fromkeys(name for node in nodes for name in (*node.input, *node.output) if name)
    constants = _constants(model)
    inner = [name for name in names if name not in constants and name not in case]
    values = dict(case) | dict(zip(inner, _values(model, inner, case), strict=True))
    operands = [name for name in dict.fromkeys(name for node in nodes for name in node.input) if name in values]
    results = [name for node in nodes for name in node.output if name]
    separate = _separate(model, nodes, operands, values, constants)
    found = call(separate.SerializeToString(), [values[name] for name in operands])
    differing = [int((a != values[name]).sum()) for name, a in zip(results, found, strict=True)]
    return sum(values[name].size for name in results), sum(differing)


def _values(model: onnx.ModelProto, names: Sequence[str], case: Arguments) -> list[np.ndarray]:
    """Return inner values of a model."""
    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    del whole.graph.output[:]
    whole.graph.output.extend([onnx.ValueInfoProto(name=name) for name in names])
    return onnx_session(whole.SerializeToString()).run(list(names), dict(case))


def _separate(
    model: onnx.ModelProto,
    nodes: Sequence[onnx.NodeProto],
    operands: Sequence[str],
    values: Arguments,
    constants: Mapping[str, onnx.TensorProto],
) -> onnx.ModelProto:
    """Return a model of some nodes only, whose operands are inputs or constants."""

    def port(name: str, label: str) -> onnx.ValueInfoProto:
        kind = onnx.helper.np_dtype_to_tensor_dtype(values[name].dtype)
        return onnx.helper.make_tensor_value_info(label, kind, values[name].shape)

    copies, stored = [], {}
    for node in nodes:
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        for i, name in enumerate(node.input):
            if name in constants:
                stored[name] = onnx.TensorProto()
                stored[name].CopyFrom(constants[name])
                stored[name].name = name
            elif name:
                copy.input[i] = f"operand {name}"
        copies.append(copy)
    inputs = [port(name, f"operand {name}") for name in operands]
    outputs = [port(name, name) for node in nodes for name in node.output if name]
    graph = onnx.helper.make_graph(copies, "separate", inputs, outputs, list(stored.values()))
    return onnx.helper.make_model(graph, opset_imports=list(model.opset_import), ir_version=model.ir_version)
