"""State of compiled steps: saved, loaded in a new process, copied, and refused."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import graphc
from graphc import nn, optim
from graphc.errors import StateDictError
from graphc.nn import functional as F
from tests.steps.step_loops import batch, classifier

RESUME = """
import sys
import graphc
from tests.steps import test_step_state as t

model, step, schedule = t.begin()
saved = graphc.load_state(sys.argv[1])
model.load_state_dict(saved["model"])
step.load_state_dict(saved["step"])
schedule.load_state_dict(saved["schedule"])
t.train(step, schedule, range(5, 11))
graphc.save_state(t.ends(model, step), sys.argv[2])
"""


def begin(**more):
    """A step with everything that has state."""
    model = classifier().float()
    optimizer = optim.AdamW(model.parameters(), lr=0.02)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=20)
    options = {"accumulate": 3, "clip_norm": 0.5, "ema": 0.9, "loss_scale": "dynamic"} | more
    return model, graphc.compile_step(model, F.cross_entropy, optimizer, **options), schedule


def train(step, schedule, numbers):
    for i in numbers:
        step(batch(i)[0].float(), batch(i)[1])
        if i % 3 == 2:
            schedule.step()


def ends(model, step):
    return {"model": dict(model.state_dict()), "ema": dict(step.ema.state_dict()), "next": graphc.rand(3)}


def assert_same(a, b):
    assert a["next"].tolist() == b["next"].tolist()
    for key in ("model", "ema"):
        for name, value in a[key].items():
            assert value.tolist() == b[key][name].tolist(), name


def test_training_goes_on_in_a_new_process_bit_for_bit(tmp_path: Path):
    graphc.manual_seed(7)
    model, step, schedule = begin()
    train(step, schedule, range(5))
    saved = {"model": dict(model.state_dict()), "step": step.state_dict(), "schedule": schedule.state_dict()}
    paths = tmp_path / "saved.safetensors", tmp_path / "ends.npz"
    graphc.save_state(saved, paths[0])
    train(step, schedule, range(5, 11))
    subprocess.run(
        [sys.executable, "-c", RESUME, str(tmp_path / "saved.safetensors"), str(tmp_path / "ends.npz")], check=True
    )
    assert_same(ends(model, step), graphc.load_state(tmp_path / "ends.npz"))


@pytest.mark.parametrize("make", [copy.deepcopy, lambda pair: pickle.loads(pickle.dumps(pair))])
def test_a_copy_goes_on_as_the_original_does(make):
    graphc.manual_seed(7)
    model, step, schedule = begin()
    train(step, schedule, range(4))
    other_model, other_step, other_schedule = make((model, step, schedule))
    state = graphc.get_rng_state()
    train(step, schedule, range(4, 9))
    expected = ends(model, step)
    graphc.set_rng_state(state)
    train(other_step, other_schedule, range(4, 9))
    assert_same(expected, ends(other_model, other_step))


def test_loading_into_a_step_that_has_run_forgets_what_it_had_added_up():
    graphc.manual_seed(7)
    model, step, schedule = begin()
    train(step, schedule, range(3))
    saved = copy.deepcopy((model.state_dict(), step.state_dict(), schedule.state_dict()))
    results = []
    for _ in range(2):
        train(step, schedule, range(5))
        results.append(copy.deepcopy(ends(model, step)))
        for owner, found in zip((model, step, schedule), copy.deepcopy(saved), strict=True):
            owner.load_state_dict(found)
    assert_same(*results)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"ema": None}, "averages of weights"),
        ({"loss_scale": None}, "a dynamic loss scale"),
        ({"accumulate": 2}, "saved after 2 micro-batches"),
    ],
)
def test_the_state_of_another_kind_of_step_is_refused_and_nothing_changes(other, message):
    _, step, schedule = begin()
    train(step, schedule, range(2))
    _, another, _ = begin(**other)
    before = another.state_dict()["random"].tolist()
    with pytest.raises(StateDictError, match=message):
        another.load_state_dict(step.state_dict())
    assert another.state_dict()["random"].tolist() == before
    with pytest.raises(StateDictError, match="lacks 'version'"):
        step.load_state_dict({})
    wrong = step.state_dict() | {"optimizers": []}
    with pytest.raises(StateDictError, match="0 optimizers, this one has 1"):
        step.load_state_dict(wrong)


def test_the_state_of_optimizers_and_counts_of_steps_come_back():
    net = nn.Linear(2, 1)
    first, second = optim.Adam([net.weight]), optim.SGD([net.bias], momentum=0.9)
    step = graphc.compile_step(net, lambda y: y.sum(), [first, second])
    for _ in range(3):
        step(graphc.ones(1, 2))
    twin = copy.deepcopy(net)
    others = optim.Adam([twin.weight]), optim.SGD([twin.bias], momentum=0.9)
    again = graphc.compile_step(twin, lambda y: y.sum(), list(others))
    again.load_state_dict(step.state_dict())
    assert [o.step_count for o in others] == [3, 3]
    step(graphc.ones(1, 2))
    again(graphc.ones(1, 2))
    assert net.weight.equal(twin.weight) and net.bias.equal(twin.bias)
