"""Backend interface of the ``onnx`` package, which its test runner can drive: ``prepare(model).run(inputs)``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.base.errors import GraphcError
from graphc.interop.onnx.module import OnnxModule, from_onnx
from graphc.interop.onnx.package import onnx_package
from graphc.interop.onnx.values import Value
from graphc.tape.grad_mode import no_grad


class Prepared:
    """Runnable ONNX model: arrays in, arrays out."""

    def __init__(self, module: OnnxModule, device: str):
        self.module = module
        self.device = device

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Return the results as arrays of the model's element types, lists for sequences, None for absent optional
        values.

        ``inputs`` is a sequence in the order of the model's inputs, or a dictionary by name.
        """
        by_name = isinstance(inputs, dict)
        args = () if by_name else tuple(inputs) if isinstance(inputs, (list, tuple)) else (inputs,)
        with no_grad():
            results = self.module.run(args, inputs if by_name else {})
        return tuple([_array(value) for value in results])


def _array(value: Any) -> Any:
    if isinstance(value, Value):
        return value.array
    return [_array(v) for v in value] if isinstance(value, list) else value


def supports_device(device: str) -> bool:
    """Check whether graphc runs models on an ONNX device: CPU, or CPU:0."""
    return device.partition(":")[0] == "CPU"


def is_compatible(model: Any, device: str = "CPU", **kwargs: Any) -> bool:
    """Check whether graphc has a rule for each operator of a ModelProto."""
    try:
        from_onnx(model)
    except GraphcError:
        return False
    return supports_device(device)


def prepare(model: Any, device: str = "CPU", **kwargs: Any) -> Prepared:
    """Return a ModelProto in runnable form. Raises what ``from_onnx`` raises."""
    return Prepared(from_onnx(model), device)


def run_model(model: Any, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
    """Return the results of a ModelProto for its inputs."""
    return prepare(model, device).run(inputs)


def run_node(
    node: Any, inputs: Sequence[Any], device: str = "CPU", outputs_info: Any = None, **kwargs: Any
) -> tuple[Any, ...]:
    """Return the results of a NodeProto for arrays in the order of its inputs.

    The newest version of its operator applies.
    """
    helper = onnx_package().helper
    ports = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.asarray(x).dtype), np.shape(x))
        for name, x in zip([n for n in node.input if n], inputs, strict=True)
    ]
    outputs = [helper.make_empty_tensor_value_info(name) for name in node.output]
    return run_model(helper.make_model(helper.make_graph([node], "node", ports, outputs)), inputs, device)
