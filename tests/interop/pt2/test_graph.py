"""Graphs: steps with their arguments, results and lines; and every use comes after what it uses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from graphc.base.location import Location
from graphc.errors import ArtifactError, GraphcError, UnsupportedError
from graphc.interop.aten.graph import AtenGraph, Ref
from graphc.interop.pt2.graph import modules_of, place_of, read_graph
from tests.interop.pt2.kept import field, members

TRACE = (
    'File "/home/a/net.py", line 7, in forward\n    x = self.conv(x)\n'
    '  File "/x/site-packages/torch/nn/modules/conv.py", line 553, in forward\n    return self._conv'
)


def tensor(name: str) -> dict[str, Any]:
    return {"as_tensor": {"name": name}}


def node(target: str, inputs: list[Any], outputs: list[Any], **more: Any) -> dict[str, Any]:
    entries = [{"name": n, "arg": a, "kind": k} for n, a, k in inputs]
    return {"target": target, "inputs": entries, "outputs": outputs, "metadata": {}, "name": "n"} | more


def graph(nodes: list[Any], outputs: list[Any], inputs: Any = ("x",), **more: Any) -> dict[str, Any]:
    tables: dict[str, Any] = {name: {} for name in ("tensor_values", "sym_int_values", "sym_bool_values")}
    arguments = [tensor(n) if isinstance(n, str) else n for n in inputs]
    return {"inputs": arguments, "outputs": outputs, "nodes": nodes, **tables, **more}


def argument(value: Any) -> Any:
    """Return the reader's value for one argument."""
    step = node("torch.ops.aten.f.default", [("a", value, 1)], [tensor("y")])
    graph_read = read_graph(field(graph([step], [tensor("y")], ("x", {"as_sym_int": {"as_name": "n"}}))))
    return graph_read.steps[0].args


def test_a_graph_of_a_file_reads_as_pytorch_prints_it():
    model = json.loads(members("convolution")["convolution/models/model.json"])
    text = str(read_graph(field(model["graph_module"]["graph"]), "main"))
    lines = [line.strip() for line in text.splitlines()]
    assert "relu = aten.relu.default(batch_norm)" in lines
    assert "mean = aten.mean.dim(relu, [2, 3])" in lines
    assert "conv2d = aten.conv2d.default(x, p_conv_weight, p_conv_bias, [1, 1], [1, 1])" in lines


@pytest.mark.parametrize(
    ("value", "expected_value"),
    [
        ({"as_none": True}, None),
        (tensor("x"), Ref("x")),
        ({"as_tensors": [{"name": "x"}, {"name": "x"}]}, (Ref("x"), Ref("x"))),
        ({"as_nested_tensors": [[{"name": "x"}], []]}, ((Ref("x"),), ())),
        ({"as_optional_tensors": [{"as_none": True}, tensor("x")]}, (None, Ref("x"))),
        ({"as_optional_tensor": tensor("x")}, Ref("x")),
        ({"as_int": -3}, -3),
        ({"as_ints": [1, 2]}, (1, 2)),
        ({"as_int_lists": [[1], [2]]}, ((1,), (2,))),
        ({"as_float": 2}, 2.0),
        ({"as_float": "-Infinity"}, float("-inf")),
        ({"as_floats": [0.5]}, (0.5,)),
        ({"as_bool": False}, False),
        ({"as_bools": [True]}, (True,)),
        ({"as_string": "tanh"}, "tanh"),
        ({"as_strings": ["a"]}, ("a",)),
        ({"as_sym_int": {"as_name": "n"}}, Ref("n")),
        ({"as_sym_int": {"as_int": 4}}, 4),
        ({"as_sym_ints": [{"as_name": "n"}, {"as_int": 4}]}, (Ref("n"), 4)),
        ({"as_sym_float": {"as_float": 0.5}}, 0.5),
        ({"as_sym_bool": {"as_bool": True}}, True),
        ({"as_string_to_argument": {"a": {"as_int": 1}}}, {"a": 1}),
    ],
)
def test_arguments_are_values(value: Any, expected_value: Any):
    assert argument(value) == (expected_value,)
    assert type(argument(value)[0]) is type(expected_value)


@pytest.mark.parametrize("value", [{"as_device": {"type": "cpu"}}, {"as_layout": 7}, {"as_memory_format": 2}])
def test_arguments_about_memory_are_left_out(value: Any):
    assert argument(value) == ()


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ({"as_custom_obj": {"name": "x", "class_fqn": "y"}}, UnsupportedError),
        ({"as_complex": {"real": 0.0, "imag": 1.0}}, UnsupportedError),
        ({"as_scalar_type": 9}, UnsupportedError),
        ({"as_new": 1}, ArtifactError),
        (tensor("later"), ArtifactError),
        ({"as_sym_int": {"as_name": "later"}}, ArtifactError),
        ({"as_optional_tensor": {"as_int": 1}}, ArtifactError),
        ({"as_sym_int": {"as_text": 1}}, ArtifactError),
        ({"as_int": 1 << 64}, ArtifactError),
        ({"as_int": True}, ArtifactError),
        ({"as_ints": 3}, ArtifactError),
        ({}, ArtifactError),
        (None, ArtifactError),
    ],
)
def test_wrong_arguments_are_refused(value: Any, kind: type[GraphcError]):
    with pytest.raises(kind):
        argument(value)


def test_keywords_keep_their_names_and_places_of_memory_do_not():
    inputs = [("self", tensor("x"), 1), ("dtype", {"as_scalar_type": 5}, 2), ("device", {"as_none": True}, 2)]
    graph_read = read_graph(field(graph([node("torch.ops.aten.to.dtype", inputs, [tensor("y")])], [tensor("y")])))
    assert graph_read.steps[0].args == (Ref("x"),) and list(graph_read.steps[0].kwargs) == ["dtype"]
    twice = [*inputs, ("dtype", {"as_scalar_type": 5}, 2)]
    with pytest.raises(ArtifactError, match="given twice"):
        read_graph(field(graph([node("torch.ops.aten.to.dtype", twice, [tensor("y")])], [tensor("y")])))


def shown(outputs: list[Any], **more: Any) -> list[str]:
    step = node("torch.ops.aten.f.default", [("a", tensor("x"), 1)], outputs, **more)
    return [str(s) for s in read_graph(field(graph([step], []))).steps]


def test_several_results_are_taken_apart():
    call_line = "n.0 = aten.f.default(x)"
    assert shown([tensor("a"), {"as_none": True}, tensor("b")]) == [
        call_line,
        "a = operator.getitem(n.0, 0)",
        "b = operator.getitem(n.0, 2)",
    ]
    assert shown([{"as_tensors": [{"name": "a"}]}]) == [call_line, "a = operator.getitem(n.0, 0)"]
    assert shown([]) == [call_line] and shown([{"as_none": True}]) == [call_line]
    nested = shown([tensor("a"), {"as_tensors": [{"name": "b"}]}])
    assert nested == [call_line, "a = operator.getitem(n.0, 0)", "result.2 = operator.getitem(n.0, 1)",
                      "b = operator.getitem(result.2, 0)"]  # fmt: skip


def test_higher_order_operators_give_a_tuple_unless_they_say_otherwise():
    assert shown([tensor("a")], is_hop_single_tensor_return=True) == ["a = aten.f.default(x)"]
    assert shown([tensor("a")], is_hop_single_tensor_return=False)[1] == "a = operator.getitem(n.0, 0)"


def test_graphs_of_branches_are_constants():
    inner = graph(
        [node("torch.ops.aten.neg.default", [("self", tensor("z"), 1)], [tensor("w")])], [tensor("w")], ("z",)
    )
    inputs = [("", tensor("x"), 1), ("", {"as_graph": {"name": "yes", "graph": inner}}, 1)]
    step = node("torch.ops.higher_order.cond", inputs, [tensor("y")])
    graph_read = read_graph(field(graph([step], [tensor("y")])))
    assert graph_read.steps[0].target == "higher_order.cond" and graph_read.steps[0].args == (Ref("x"), Ref("yes"))
    branch = graph_read.constants["yes"]
    assert isinstance(branch, AtenGraph) and str(branch.steps[0]) == "w = aten.neg.default(z)"


def test_branches_nested_too_deeply_and_two_graphs_of_one_name_are_refused():
    inner = graph([], [tensor("x")])
    for _ in range(20):
        inner = graph([node("f", [("", {"as_graph": {"name": "g", "graph": inner}}, 1)], [tensor("y")])], [])
    with pytest.raises(UnsupportedError, match="16 levels deep"):
        read_graph(field(inner))
    two = [("", {"as_graph": {"name": "g", "graph": graph([], [tensor("x")] * n)}}, 1) for n in (1, 2)]
    with pytest.raises(ArtifactError, match="two graphs 'g'"):
        read_graph(field(graph([node("f", two, [tensor("y")])], [])))


def test_operators_on_numbers_have_the_names_of_python():
    inputs = [("a", {"as_sym_int": {"as_name": "n"}}, 1), ("b", {"as_int": 2}, 1)]
    step = node("_operator.mul", inputs, [{"as_sym_int": {"as_name": "m"}}])
    arguments = ({"as_sym_int": {"as_name": "n"}},)
    graph_read = read_graph(field(graph([step], [{"as_sym_int": {"as_name": "m"}}], arguments)))
    assert str(graph_read.steps[0]) == "m = operator.mul(n, 2)" and graph_read.output == [Ref("m")]


def test_plain_inputs_have_the_names_of_the_signature():
    graph_read = read_graph(field(graph([], [], ({"as_float": 3.0}, {"as_none": True}))), names={0: "scale"})
    assert graph_read.inputs == ["scale", "arg1"]


def test_two_values_of_one_name_are_refused():
    step = node("torch.ops.aten.neg.default", [("self", tensor("x"), 1)], [tensor("x")])
    with pytest.raises(ArtifactError, match="two values 'x'"):
        read_graph(field(graph([step], [])))


def test_lines_are_those_of_the_user_and_of_python_files():
    stack = "L__self__,,__main__.Net;L__self__conv,conv@1,torch.nn.modules.conv.Conv2d"
    metadata = field({"stack_trace": TRACE, "nn_module_stack": stack})
    assert place_of(metadata) == Location("conv", "/home/a/net.py", 7)
    assert modules_of(metadata) == [("", "Net"), ("conv", "Conv2d")]
    for file in ("/dev/zero", "/etc/passwd", "x" * 2000 + ".py"):
        assert place_of(field({"stack_trace": f'File "{file}", line 3, in f'})).file == ""
