"""Cases of public functions: complete, with the intended operands, and wrong results are noticed."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import graphc as gc
from graphc.errors import ShapeError
from tools.nets import forms, functions, operands
from tools.nets.run import BAD, DIFFERENT, EQUAL, FAILED, REFUSED


def test_every_public_function_has_samples_or_a_reason():
    assert not [name for name in forms.public() if not forms.forms_of(name)]
    shorts = {name.rpartition(".")[2] for name in forms.public()}
    unused = {form.partition(".")[0] for form in forms.FORMS} - shorts
    assert not {name for name in unused if f"{name}_" not in shorts}
    everything = {"graphc.trace", *gc.__all__, *gc.nn.functional.__all__, *dir(gc.Tensor)}
    assert everything >= forms.NOT_CALLED, "a name that is left out does not exist any more"


def test_every_form_has_a_result_for_some_operands():
    without = []
    for name in forms.public():
        for number in range(len(forms.forms_of(name))):
            calls = (functions.make(f"{name}#{number}:{seed}") for seed in range(40))
            with np.errstate(all="ignore"):
                good = any(functions.run(c.function, functions.tensors_of(c, False)).error is None for c in calls)
            if not good:
                without.append(f"{name}#{number}")
    assert not without


def test_cases_go_on_for_ever_and_depend_on_the_seed():
    first = list(itertools.islice(functions.cases(1), 5000))
    assert len(set(first)) == len(first) and first[0] != next(iter(functions.cases(2)))
    assert {case.partition("#")[0] for case in first} >= set(forms.public())


@pytest.mark.parametrize("layout", operands.LAYOUTS)
def test_layouts_hold_the_values_at_other_strides(layout: str):
    array = np.arange(12.0).reshape(3, 4)
    array_ = operands.laid_out(array, layout)
    expected = np.broadcast_to(array[:1], array.shape) if layout == "expanded" else array
    assert np.array_equal(array_, expected) and not np.shares_memory(array_, array)
    assert (array_.strides == array.strides) == (layout == "dense")


def test_operands_hold_all_that_is_easily_forgotten():
    chance = np.random.default_rng(0)
    choice = operands.choose(chance)._replace(special=True, float_type="float32", shape=(500,))
    values = operands.array_of(operands.FLOAT, choice, chance)
    assert np.isnan(values).any() and np.isposinf(values).any() and np.isneginf(values).any()
    assert np.signbit(values[values == 0]).any() and (np.abs(values[values != 0]) < np.finfo("float32").tiny).any()
    indices = operands.array_of(operands.n(3, 9), choice, chance)
    assert indices.min() >= 0 and indices.max() < 3
    limits = operands.array_of(operands.i(200), choice._replace(any_type="int8"), chance)
    assert {-128, 127} <= set(limits.tolist())
    assert {()} | {(0,)} <= set(operands.SHAPES)


def _results(*values, gradients=(), error=None):
    return functions.Results([np.asarray(v) for v in values], list(gradients), error)


def test_what_differs_is_told_apart():
    one = _results(np.float32(1))
    assert functions.compare("x", one, _results(np.float32(1.00001)), functions.TOLERANCE) is None
    assert functions.compare("x", one, _results(np.float32(1.00001)), None).kind == DIFFERENT
    assert functions.compare("x", one, _results(1.0), functions.TOLERANCE).kind == DIFFERENT
    assert functions.compare("x", _results(np.nan), _results(np.inf), functions.TOLERANCE).kind == DIFFERENT
    assert functions.compare("x", _results(np.nan), _results(np.nan), None) is None
    assert functions.compare("x", _results(3), _results(4), functions.TOLERANCE).kind == DIFFERENT
    raised = _results(error=ShapeError("no"))
    assert functions.compare("x", raised, one, functions.TOLERANCE).kind == DIFFERENT
    assert functions.compare("x", one, raised, functions.TOLERANCE).kind == REFUSED
    assert functions.compare("x", raised, _results(error=TypeError("no")), functions.TOLERANCE).kind == FAILED
    assert functions.compare("x", raised, raised, functions.TOLERANCE) is None


def test_a_wrong_kernel_is_seen(monkeypatch: pytest.MonkeyPatch):
    """Native code of another function in the place of the right one."""
    numbered = (f"graphc.sin#0:{number}" for number in itertools.count())
    case = next(c for c in numbered if np.isfinite(functions.make(c).arrays[0]).sum() > 1)
    assert functions.judge(case).kind == EQUAL
    compiled = gc.compile(lambda x: [gc.sin(x) + 0.01])
    monkeypatch.setattr(gc, "compile", lambda function: compiled)
    outcome = functions.judge(case)
    assert outcome.kind == DIFFERENT and outcome.detail.startswith("compiled: result 0")


def test_a_seeded_sample_agrees():
    outcomes = {case: functions.judge(case) for case in itertools.islice(functions.cases(20261130), 60)}
    assert not {case: outcome for case, outcome in outcomes.items() if outcome.kind in BAD}


def test_further_nan_of_products_with_zeros_are_no_finding_and_lost_ones_are():
    name = next(n for n in forms.public() if n.endswith("functional.conv_transpose2d"))
    call = functions.make(f"{name}#0:0")
    images = np.ones((1, 3, 4, 5))
    weights = np.ones((3, 2, 3, 3))
    weights[1, 1, 0, 2] = np.inf
    call = call._replace(arrays=[images, weights, np.zeros(2)], layouts=["dense"] * 3, differentiable=[True] * 3)
    with np.errstate(all="ignore"):
        expected = functions.run(call.function, functions.tensors_of(call, True))
        native = functions.run(gc.compile(call.function), functions.tensors_of(call, True))
        assert functions.compare("compiled", expected, native, functions.TOLERANCE).kind == DIFFERENT
        assert functions._compare_native(call, expected, native) is None
        finite = native._replace(values=[np.nan_to_num(v, nan=0, posinf=0, neginf=0) for v in native.values])
        assert functions._compare_native(call, expected, finite).kind == DIFFERENT
        more = native._replace(values=[np.full_like(v, np.nan) for v in native.values])
        assert functions._compare_native(call, expected, more).kind == DIFFERENT
