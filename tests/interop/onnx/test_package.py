"""The ``onnx`` package behind one door: functions of operators, and a missing package."""

from __future__ import annotations

import subprocess
import sys

import pytest

from graphc.base.errors import ArgumentError
from graphc.base.installation import install_command
from graphc.interop.onnx.package import function_body, onnx_package


def test_without_the_package_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [n for n in sys.modules if n == "onnx" or n.startswith("onnx.")]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ArgumentError) as raised:
        onnx_package()
    assert f"install onnx: {install_command('onnx')}" in str(raised.value)


onnx = pytest.importorskip("onnx")


def test_functions_are_those_of_the_package():
    assert function_body("", "Mish", 18) == onnx.defs.get_schema("Mish", 18).function_body
    assert function_body("", "Add", 14) is None and function_body("own", "Mish", 18) is None


USES = """
assert onnx.onnx_ml_pb2.ModelProto is onnx.ModelProto and onnx.onnx_cpp2py_export.defs.get_schema("Relu", 14, "").name
model = onnx.shape_inference.infer_shapes(onnx.ModelProto.FromString(data))
gc.from_onnx(model)
node = onnx.helper.make_node("Relu", ["y"], ["z"])
model.graph.node.append(node)
onnx.checker.check_model(model)
onnx.version_converter.convert_version(model, 21)
print(onnx.printer.to_text(node), onnx.numpy_helper.to_array(onnx.helper.make_tensor("t", 1, [1], [2.0])))
"""
TEXT = '<ir_version: 9, opset_import: ["": 18]> g (float[2] x) => (float[2] y) { y = Relu(x) }'


def run(code: str, implementation: str = "") -> str:
    """Return what a process prints that gets a small model as ``data``."""
    data = onnx.parser.parse_model(TEXT).SerializeToString().hex()
    head = "import os, sys\n"
    head += f"os.environ['PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION'] = {implementation!r}\n" if implementation else ""
    code = f"{head}import graphc as gc\ndata = bytes.fromhex(sys.argv[1])\n{code}"
    done = subprocess.run([sys.executable, "-c", code, data], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("implementation", ["", "python"])
@pytest.mark.parametrize("order", ["gc.from_onnx(data)\nimport onnx", "import onnx\ngc.from_onnx(data)"])
def test_the_package_is_whole_before_and_after_reading(order: str, implementation: str):
    imports = "import onnx.shape_inference, onnx.checker, onnx.version_converter, onnx.printer, onnx.numpy_helper"
    assert run(f"{order}\n{imports}\n{USES}", implementation).split() == ["z", "=", "Relu", "(y)", "[2.]"]


def test_reading_a_model_imports_neither_the_package_nor_protobuf():
    imported = "[n for n in sys.modules if n.split('.')[0] in ('onnx', 'google')]"
    assert run(f"gc.from_onnx(data)\nprint({imported})") == "[]\n"
