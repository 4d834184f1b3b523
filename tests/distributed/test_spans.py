"""When reductions were begun, done and waited for."""

import numpy as np

import graphc.distributed as dist
from graphc.base.progress import note
from graphc.distributed import threads
from graphc.distributed.channel import Channel
from graphc.distributed.group import group
from graphc.distributed.spans import REDUCE, START, WAIT


def reduce_twice(rank: int) -> None:
    channel, x = Channel(group()), np.ones(4, np.float32)
    for name in ("b0", "b1"):
        channel.reduce(f"{rank} {name}", x, np.empty_like(x)).wait()


def test_each_reduction_is_begun_done_and_waited_for():
    with dist.timeline() as spans:
        threads.run(2, reduce_twice)
    assert sorted((s.kind, s.name) for s in spans) == sorted(
        (kind, f"{rank} {name}") for kind in (START, REDUCE, WAIT) for rank in (0, 1) for name in ("b0", "b1")
    )
    for name in ("0 b0", "1 b1"):
        found = {s.kind: s for s in spans if s.name == name}
        assert found[START].begin <= found[REDUCE].begin <= found[REDUCE].end <= found[WAIT].end
        assert {s.nbytes for s in found.values()} == {16}


def test_nothing_is_recorded_where_nobody_asks():
    with dist.timeline() as outer:
        note(REDUCE, "outer", 0.0, 1)
        with dist.timeline() as inner:
            note(REDUCE, "inner", 0.0, 1)
    note(REDUCE, "nobody", 0.0, 1)
    assert ([s.name for s in outer], [s.name for s in inner]) == (["outer"], ["inner"])
