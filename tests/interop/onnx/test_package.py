"""The ``onnx`` package behind one door: schemas by version, and what is said where it is not installed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from graphc.base.errors import ArgumentError
from graphc.base.installation import install_command
from graphc.interop.onnx.package import newest_versions, onnx_package, schema


def test_without_the_package_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ArgumentError) as found:
        onnx_package()
    assert f"install onnx: {install_command('onnx')}" in str(found.value)


onnx = pytest.importorskip("onnx")


def known(op: str, version: int, domain: str = "") -> object:
    found = schema(domain, op, version)
    assert found is not None
    return found


def test_schemas_are_those_of_the_version():
    assert known("Add", 7).types(2, 1) == (0,)
    assert [known("Softmax", v).defaults["axis"].i for v in (11, 13)] == [1, -1]
    assert known("Clip", 6).counts[:2] == (1, 1) and known("Clip", 13).counts[:2] == (1, 3)


def test_types_of_results_are_those_of_inputs_or_unknown():
    assert known("Where", 16).types(3, 1) == (1,)
    assert known("Split", 13).types(2, 3) == (0, 0, 0)
    assert known("RandomUniform", 1).types(0, 1) == (None,)
    assert known("Cast", 13).types(1, 1) == (None,)


def test_schemas_say_what_must_be_there():
    assert known("Cast", 13).attributes["to"] == (onnx.AttributeProto.INT, True)
    assert known("Conv", 11).needed == {0, 1}


@pytest.mark.parametrize(("domain", "op", "version"), [("", "Ununtrium", 17), ("own", "Add", 1), ("", "Add", 2**40)])
def test_operators_that_there_are_not_have_no_schema(domain: str, op: str, version: int):
    assert schema(domain, op, version) is None


def test_the_newest_versions_are_those_of_the_package():
    assert newest_versions()[""] == onnx.defs.onnx_opset_version()


def test_functions_are_those_of_the_package():
    found = schema("", "Mish", 18)
    assert found is not None and found.function == onnx.defs.get_schema("Mish", 18).function_body
    add = schema("", "Add", 14)
    assert add is not None and add.function is None


USES = """
assert onnx.onnx_ml_pb2.ModelProto is onnx.ModelProto and onnx.onnx_cpp2py_export.defs.get_schema("Relu", 14, "").name
model = onnx.shape_inference.infer_shapes(onnx.ModelProto.FromString(data))
node = onnx.helper.make_node("Relu", ["y"], ["z"])
model.graph.node.append(node)
onnx.checker.check_model(model)
onnx.version_converter.convert_version(model, 21)
print(onnx.printer.to_text(node), onnx.numpy_helper.to_array(onnx.helper.make_tensor("t", 1, [1], [2.0])))
"""


@pytest.mark.parametrize("order", ["gc.from_onnx(data)\nimport onnx", "import onnx\ngc.from_onnx(data)"])
def test_the_package_is_whole_before_and_after_reading(order: str):
    text = '<ir_version: 9, opset_import: ["": 18]> g (float[2] x) => (float[2] y) { y = Relu(x) }'
    imports = "import onnx.shape_inference, onnx.checker, onnx.version_converter, onnx.printer, onnx.numpy_helper"
    code = f"import sys, graphc as gc\ndata = bytes.fromhex(sys.argv[1])\n{order}\n{imports}\n{USES}"
    data = onnx.parser.parse_model(text).SerializeToString().hex()
    done = subprocess.run([sys.executable, "-c", code, data], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.split() == ["z", "=", "Relu", "(y)", "[2.]"], done.stderr
