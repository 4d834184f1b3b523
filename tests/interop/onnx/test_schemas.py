"""Operator schemas by version: the table, and the package for what the table lacks."""

from __future__ import annotations

import pytest

from graphc.interop.onnx import schemas
from graphc.interop.onnx.schemas import newest_version, row_of, schema

onnx = pytest.importorskip("onnx")


def known(op: str, version: int, domain: str = "") -> schemas.Schema:
    result = schema(domain, op, version)
    assert result is not None
    return result


def test_schemas_are_those_of_the_version():
    assert known("Add", 7).types(2, 1) == (0,)
    assert [known("Softmax", v).defaults["axis"] for v in (11, 13)] == [1, -1]
    assert known("Clip", 6).counts[:2] == (1, 1) and known("Clip", 13).counts[:2] == (1, 3)
    assert [known("Add", v).since for v in (1, 5, 6, 7, 12, 14)] == [1, 1, 6, 7, 7, 14]


def test_types_of_results_are_those_of_inputs_or_unknown():
    assert known("Where", 16).types(3, 1) == (1,)
    assert known("Split", 13).types(2, 3) == (0, 0, 0)
    assert known("RandomUniform", 1).types(0, 1) == (None,)
    assert known("Cast", 13).types(1, 1) == (None,)


def test_schemas_say_what_must_be_there():
    assert known("Cast", 13).attributes["to"] == (onnx.AttributeProto.INT, True)
    assert [i for i in range(4) if known("Conv", 11).is_required(i)] == [0, 1]


def test_defaults_have_the_types_of_read_attributes():
    assert known("Softmax", 13).defaults == {"axis": -1}
    assert known("BatchNormalization", 15).defaults["epsilon"] == float(onnx.numpy_helper.np.float32(1e-5))
    assert known("Pad", 18).defaults["mode"] == "constant"
    assert known("RNN", 14).defaults["activations"] == ("Tanh", "Tanh")


@pytest.mark.parametrize(("domain", "op", "version"), [("", "Ununtrium", 17), ("own", "Add", 1), ("", "Add", 2**40)])
def test_operators_that_there_are_not_have_no_schema(domain: str, op: str, version: int):
    assert schema(domain, op, version) is None


def test_the_table_agrees_with_the_package():
    compared = 0
    for raw in onnx.defs.get_all_schemas_with_history():
        newest = newest_version(raw.domain)
        if newest is None or raw.since_version <= newest:
            result = known(raw.name, raw.since_version, raw.domain)
            assert result == schemas._schema(raw.since_version, row_of(raw)), raw.name
            compared += 1
    assert compared > 600


def test_versions_beyond_the_table_come_from_the_package(monkeypatch: pytest.MonkeyPatch):
    rows = {("", "Softmax"): [(11, '[[["T",0]],[["T",0]],{"axis":[2,false,1]},[1,1,1,1]]')]}
    monkeypatch.setattr(schemas, "_table", lambda: (rows, {"": 12}))
    schema.cache_clear()
    try:
        assert [known("Softmax", v).defaults["axis"] for v in (12, 13)] == [1, -1]
        assert known("Softmax", 13).since == 13
    finally:
        schema.cache_clear()
    assert newest_version("", 12) == 12 and newest_version("", 13) == onnx.defs.onnx_opset_version()


def test_other_domains_have_no_newest_version():
    assert newest_version("com.microsoft", 7) is None
