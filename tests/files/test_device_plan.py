"""Plans of programs on devices: their launches for given sizes, and their text."""

import dataclasses

import pytest

from graphc.base.errors import ArtifactError
from graphc.base.sizes.named_dims import Dim, dimensions
from graphc.files.device_plan import DevicePlan, LaunchSpec, LoopSpec, Place, StepSpec
from graphc.files.manifest import BufferSpec, Manifest, TargetSpec, from_json, to_json

TARGET = TargetSpec("nvptx64-nvidia-cuda", "sm_90", ())
BUFFERS = (
    BufferSpec("x", "f32", (8,), "input"),
    BufferSpec("y", "f32", (8,), "output"),
    BufferSpec("arena", "u8", (64,), "arena", written=True),
)


def launch(name, *places, **others):
    return LaunchSpec(name, f"k_{name}", others.pop("grid", 1), 32, 0, places, **others)


def plan(*launches, dims=(), checked=0):
    return DevicePlan(Manifest("main", "cuda", BUFFERS, 64, 0, TARGET, dims=dims), launches, checked, dims)


def names(made, sizes=None):
    return [s.kernel for s in made.steps(sizes)[0]]


def test_launches_run_in_order():
    made = plan(launch("a", Place("x"), Place("arena", 16)), launch("b", Place("arena", 16), Place("y")), checked=1)
    steps, checked = made.steps()
    assert [(s.symbol, s.places) for s in steps] == [("k_a", ((0, 0), (2, 16))), ("k_b", ((2, 16), (1, 0)))]
    assert checked == 1
    assert steps[0].arguments([1000, 2000, 3000]) == [1000, 3016]


def test_launches_in_loops_take_turns():
    outer, inner, other = LoopSpec("i", 2), LoopSpec("j", 2), LoopSpec("k", 0)
    made = plan(
        launch("first"),
        launch("a", loops=(outer,)),
        launch("b", Place("x", 4, (StepSpec("i", 100), StepSpec("j", 10))), loops=(outer, inner)),
        launch("c", loops=(outer, inner)),
        launch("d", loops=(outer,)),
        launch("never", loops=(other,)),
        launch("last"),
        checked=3,
    )
    assert names(made) == ["first", *["a", "b", "c", "b", "c", "d"] * 2, "last"]
    steps, checked = made.steps()
    assert [s.places[0][1] for s in steps if s.kernel == "b"] == [4, 14, 104, 114]
    assert checked == 11, "up to the last run of any that is checked"


def test_sizes_are_those_of_the_call():
    batch = Dim("batch", max=64, hint=32)
    dims = tuple(dimensions([batch]).values())
    loop = LoopSpec("i", batch)
    made = plan(
        launch("a", Place("arena", 4 * batch), grid=batch // 4 + 1, sizes=(batch, 2 * batch)),
        launch("b", Place("x", 0, (StepSpec("i", batch),)), loops=(loop,)),
        dims=dims,
    )
    steps, _ = made.steps({dims[0]: 3})
    assert (steps[0].grid, steps[0].sizes, steps[0].places) == (1, (3, 6), ((2, 12),))
    assert steps[0].arguments([0, 0, 100]) == [112, 3, 6]
    assert [s.places for s in steps[1:]] == [((0, 0),), ((0, 3),), ((0, 6),)]
    assert len(made.steps({dims[0]: 64})[0]) == 65


def test_plans_are_texts():
    batch = Dim("batch", max=64, hint=32)
    dims = tuple(dimensions([batch]).values())
    fixed = plan(launch("a", Place("x"), Place("y", 8)), launch("b", product={"m": 4, "epilogue": "relu"}), checked=2)
    open_ = plan(
        launch("a", Place("x", 4 * batch, (StepSpec("i", batch + 1),)), grid=batch, sizes=(batch,),
               loops=(LoopSpec("i", batch - 1),)),
        dims=dims,
    )  # fmt: skip
    product = launch("a", product={"epilogue": "relu", "a.rows": 4}, product_sizes={"b.columns": 2 * batch})
    library = plan(product, dims=dims)
    assert library.steps({dims[0]: 3})[0][0].product == {"epilogue": "relu", "a.rows": 4, "b.columns": 6}
    for made in (fixed, open_, library):
        again = from_json(DevicePlan, to_json(made))
        assert again == made
        assert to_json(again) == to_json(made)
    assert names(from_json(DevicePlan, to_json(open_)), {dims[0]: 3}) == ["a", "a"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"launches": (launch("a", Place("nowhere")),)},
        {"checked": 1},
        {"dims": tuple(dimensions([Dim("batch", hint=32)]).values())},
    ],
    ids=str,
)
def test_a_plan_that_contradicts_itself_is_refused(wrong):
    with pytest.raises(ArtifactError):
        dataclasses.replace(plan(), **wrong)


@pytest.mark.parametrize("wrong", [{"symbol": "a b"}, {"threads": 0}, {"threads": 2048}, {"shared": 1 << 20}], ids=str)
def test_a_launch_that_no_gpu_takes_is_refused(wrong):
    with pytest.raises(ArtifactError):
        dataclasses.replace(launch("a"), **wrong)
    with pytest.raises(ArtifactError, match="loop"):
        launch("a", Place("x", 0, (StepSpec("i", 4),)))
