"""Changes between two calls: the table is complete, and wrong results are noticed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.errors import TraceError
from tools.nets import mutations
from tools.nets.changes import modes, optim, tensor
from tools.nets.changes.table import CHANGES
from tools.nets.run import BAD, DIFFERENT, EQUAL, FAILED, REFUSED, own_cache

READS = {
    "buffers", "call_super_init", "children", "dump_patches", "extra_repr", "forward", "get_buffer",
    "get_extra_state", "get_parameter", "get_submodule", "modules", "named_buffers", "named_children",
    "named_modules", "named_parameters", "parameters", "state_dict",
}  # fmt: skip
"""Methods and attributes of Module that change nothing."""
# Methods of half precision and other devices, which raise; hooks of state files; another name of add_module.
ELSEWHERE = {
    "bfloat16", "half", "cuda", "register_load_state_dict_post_hook", "register_load_state_dict_pre_hook",
    "register_state_dict_post_hook", "register_state_dict_pre_hook", "register_module",
}  # fmt: skip
MODULE_CHANGES = (
    "".join(Path(m.__file__ or "").read_text() for m in mutations.TABLES) + Path(modes.__file__).read_text()
)


def test_there_are_many_changes_and_each_case_has_one_name():
    names = mutations.cases(3)
    assert len(CHANGES) > 800 and len(set(names)) == len(names)
    assert sorted(names) == sorted(mutations.cases(4)) and names != mutations.cases(4)
    assert {case.split("/")[2] for case in names} == set(modes.MODES)


def test_a_run_tries_every_change_once_before_it_tries_one_twice():
    first = mutations.cases(0)[: len(CHANGES)]
    assert {case.split("/")[0] for case in first} == set(CHANGES)


def test_every_method_of_modules_is_tried_or_only_reads():
    names = {n for n in dir(nn.Module) if not n.startswith("_")} - READS - ELSEWHERE
    assert not sorted(n for n in names if f".{n}(" not in MODULE_CHANGES)


def test_every_in_place_method_of_tensors_is_tried():
    tried = {name.split(".")[1] for name in CHANGES if "." in name}
    assert set(tensor.in_place_methods()) - {"baddbmm_"} <= tried


def test_every_number_of_every_optimizer_and_every_schedule_is_tried():
    for name in optim.optimizers():
        assert all(f"{name}.{key}" in CHANGES for key in optim.numbers_of(name))
    assert set(optim.schedules()) == set(optim.SCHEDULES)


@pytest.mark.parametrize("mode", sorted(modes.MODES))
def test_a_model_that_nobody_changes_computes_the_same_in_every_mode(mode: str):
    assert mutations.judge_case(f"nothing/lean/{mode}") == (EQUAL, "")


def _remembers(scene):
    """Act as a wrong compiler, which keeps the first weights."""
    fixed = {}

    def call(*args):
        if not fixed:
            fixed.update({n: p.detach().clone() for n, p in scene.model.named_parameters()})
        with gc.no_grad():
            for name, parameter in scene.model.named_parameters():
                parameter.copy_(fixed[name])
        return scene.model(*args)

    return call


def _raises(error):
    def make(scene):
        calls = []

        def call(*args):
            calls.append(args)
            if len(calls) > modes.CALLS:
                raise error
            return scene.model(*args)

        return call

    return make


@pytest.mark.parametrize(
    ("make", "kind", "detail"),
    [
        (_remembers, DIFFERENT, "after 0 output"),
        (_raises(TraceError("changed", remedy="compile it again")), REFUSED, "after the change: TraceError: changed"),
        (_raises(ValueError("changed")), FAILED, "after the change: ValueError: changed"),
    ],
)
def test_stale_numbers_are_seen_and_errors_are_told_apart(make, kind: str, detail: str):
    def doubled(scene):
        scene.layer.weight.data = scene.layer.weight.data * 2

    outcome = modes.judge("lean", doubled, modes.CallMode("gradients", make))
    assert outcome.kind == kind and outcome.detail.startswith(detail)
    assert modes.judge("lean", lambda scene: None, modes.CallMode("gradients", make)).kind == (
        EQUAL if kind == DIFFERENT else kind
    )


def test_switches_of_the_process_are_as_before_when_a_case_is_over():
    before = gc.get_default_dtype(), gc.is_grad_enabled(), gc.is_inference_mode_enabled(), gc.get_rng_state().numpy()
    for name in ("default_dtype_of_all", "grad_mode_off", "inference_mode_entered", "seed_set"):
        mutations.judge_case(f"{name}/lean/compile")
    after = gc.get_default_dtype(), gc.is_grad_enabled(), gc.is_inference_mode_enabled(), gc.get_rng_state().numpy()
    assert before[:3] == after[:3] and np.array_equal(before[3], after[3])


def test_what_is_missing_has_another_type_or_differs_is_a_difference():
    a = {"x": np.ones(2), "y": np.ones(2, np.float32)}
    assert modes.first_difference(a, dict(a), True) == ""
    assert "only eager has it" in modes.first_difference(a, {"x": a["x"]}, True)
    assert modes.first_difference(a, {"x": a["x"]}, False) == ""
    assert "y: float64[2] instead of float32[2]" in modes.first_difference(a, {**a, "y": np.ones(2)}, True)
    assert modes.first_difference(a, {**a, "y": np.array([1, 1.001], np.float32)}, True).startswith(
        "y: 1 of 2 elements"
    )
    nan = {"x": np.array([np.nan, -0.0])}
    assert modes.first_difference(nan, {"x": np.array([np.nan, 0.0])}, True) == ""


@pytest.mark.slow
def test_a_seeded_sample_is_equal_or_refused():
    with own_cache(True):
        outcomes = {case: mutations.judge_case(case) for case in mutations.cases(20261122)[:40]}
    assert not {case: outcome for case, outcome in outcomes.items() if outcome.kind in BAD}
    assert sum(outcome.kind == EQUAL for outcome in outcomes.values()) > 30
