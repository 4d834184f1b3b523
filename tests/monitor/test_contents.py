"""Contents of holders, compared value by value."""

from __future__ import annotations

import pytest

import graphc as gc
from graphc import nn
from graphc.monitor.contents import compared, contents_of, value_name
from graphc.monitor.holders import holders_of


def test_what_has_changed_is_compared():
    net = nn.Linear(2, 1)
    holders = holders_of([("net", net)])
    first = contents_of(holders)
    with gc.no_grad():
        net.bias.add_(1)
    second = contents_of(holders)
    values, missing = compared([(first[0], second[0])], None)
    assert [v.path for v in values if not v.is_equal] == ["net.bias"] and not missing
    values, _ = compared([(second[0], second[0])], None, {("module", "net"): first[0][2]})
    assert [v.path for v in values] == ["net.bias"] and values[0].is_equal
    net.weight.grad = gc.ones(1, 2)
    assert compared([(second[0], contents_of(holders)[0])], None)[1] == ["gradient of net.weight"]


@pytest.mark.parametrize(
    ("holder", "key", "name"),
    [
        ("net", "['tensors']['0.weight']", "net.0.weight"),
        ("net", "['gradients']['0.weight']", "gradient of net.0.weight"),
        ("opt", "['state']['state'][0]['exp_avg']", "opt state state.0.exp_avg"),
        ("x", "['tensors']['']", "x"),
        ("result", "[0]['loss']", "result[0]['loss']"),
        ("result", "", "result"),
    ],
)
def test_names_of_values(holder, key, name):
    assert value_name(holder, key) == name
