"""Random quantized graphs: a seeded sample has the codes of ONNX's evaluator, and other codes are noticed."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime", reason="the net compares with ONNX Runtime")
pytest.importorskip("torch", reason="the runner of nets uses PyTorch")

from tests.interop.onnx.one_node import needs_exact_bytes
from tools.nets import run
from tools.nets.quantized import exact
from tools.nets.quantized.builder import QuantizedBuilder, drawn
from tools.nets.quantized.evaluators import compiled, evaluated, runtime

SAMPLE = 40


@needs_exact_bytes
def test_no_graph_of_a_sample_differs():
    outcomes = {name: exact.judge(name) for name in islice(exact.NET.cases(2), SAMPLE)}
    assert not {name: o for name, o in outcomes.items() if o.kind in run.BAD or o.kind == run.REFUSED}
    assert sum(o.kind == run.EQUAL for o in outcomes.values()) > SAMPLE * 3 // 4


def test_a_name_means_the_same_graph():
    one, same, other = (drawn(3, number, exact.STEPS) for number in (1, 1, 2))
    assert one.model() == same.model() != other.model()
    assert all((one.feeds()[n] == same.feeds()[n]).all() for n in one.feeds())


def _with(step) -> QuantizedBuilder:
    """Return the first graph of some to which a step adds a block with different codes."""
    for number in range(200):
        builder = QuantizedBuilder(7, number)
        builder.input()
        if builder.add(step) and np.ptp(builder.arrays[builder.values[-1].name].astype(int)) > 3:
            return builder
    raise AssertionError(f"{step.__name__} fits no graph")


@pytest.mark.parametrize("step", dict.fromkeys(exact.STEPS), ids=lambda step: step.__name__)
def test_every_block_is_valid_and_has_the_shape_that_later_blocks_expect(step):
    onnx = pytest.importorskip("onnx")
    builder = _with(step)
    onnx.checker.check_model(builder.model(), full_check=True)
    results = evaluated(builder.model(), builder.feeds())
    assert {name: a.shape for name, a in results.items()} == {name: builder.shapes[name] for name in results}


def _block(builder: QuantizedBuilder) -> tuple[dict[str, np.ndarray], str]:
    """Return the values of a graph of one block, and the name of its result."""
    feeds = builder.feeds()
    return {**feeds, **compiled(builder.model(), feeds)}, builder.blocks[0].outputs[0]


def test_a_code_that_differs_is_wrong_unless_onnxruntime_has_it_too():
    builder = _with(exact.product_blocks.linear_matmul)
    values, name = _block(builder)
    assert exact.block_differences(builder, builder.blocks[0], values) == []
    values[name] = values[name] ^ 1
    (difference,) = exact.block_differences(builder, builder.blocks[0], values)
    theirs = runtime(builder.part(builder.blocks[0]), values | builder.feeds())
    assert difference.codes == values[name].size and difference.wrong
    assert theirs is None or str(theirs[name].flat[0]) in difference.wrong


def test_one_unit_is_undecided_in_the_middle_of_two_codes_alone():
    codes, near = np.array([3, 4, 9], np.uint8), np.array([4, 4, 9], np.uint8)
    difference = exact._difference("kind", near, codes, codes, [codes, near])
    assert (difference.undecided, difference.wrong) == (1, "")
    assert exact._difference("kind", near, codes, codes, [codes, codes]).wrong.startswith("4, not 3 at [0]")
    two_units = np.array([5, 4, 9], np.uint8)
    assert exact._difference("kind", two_units, codes, two_units, [codes, two_units]).wrong
