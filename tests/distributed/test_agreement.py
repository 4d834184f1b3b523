"""Modules that differ between processes are refused by all of them when they are made parallel."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import graphc as gc
from graphc import nn
from graphc.base.errors import DistributedError
from graphc.distributed import group, threads
from graphc.distributed.agreement import SHOWN, agree
from graphc.nn.parallel import DistributedDataParallel


class Net(nn.Module):
    def __init__(self, *names: str, width: int = 3):
        super().__init__()
        for name in names or ("first", "last"):
            setattr(self, name, nn.Linear(4, width))


def frozen() -> Net:
    net = Net()
    net.last.bias.requires_grad_(False)
    return net


def with_buffer() -> Net:
    net = Net()
    net.register_buffer("scale", gc.ones(2))
    return net


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Net(width=5), "first.weight is f32[5, 4], trained, not f32[3, 4], trained"),
        (lambda: Net("first"), "last.weight is missing; last.bias is missing"),
        (lambda: Net("first", "last", "more"), "more.weight is there only; more.bias is there only"),
        (lambda: Net("last", "first"), "the same entries in another order"),
        (lambda: Net().double(), "first.weight is f64[3, 4], trained, not f32[3, 4], trained"),
        (frozen, "last.bias is f32[3], not f32[3], trained"),
        (with_buffer, "scale is there only"),
    ],
    ids=["shape", "missing", "more", "order", "type", "frozen", "buffer"],
)
def test_a_module_that_differs_is_refused_by_all(make: Callable[[], Net], text: str):
    def ranks(rank: int) -> str:
        with pytest.raises(DistributedError) as caught:
            DistributedDataParallel(make() if rank == 1 else Net())
        return str(caught.value)

    for said in threads.run(3, ranks):
        assert "parameters of rank 1 differ from those of rank 0: " in said
        assert text in said


def test_a_long_list_of_differences_is_cut():
    def ranks(rank: int) -> str:
        with pytest.raises(DistributedError) as caught:
            agree(group(), "numbers", {str(i): i * rank for i in range(1, 9)}, "none")
        return str(caught.value)

    for said in threads.run(3, ranks):
        assert said.startswith("numbers of ranks 1, 2 differ from those of rank 0: 1 is 1, not 0; ")
        assert f"; {8 - SHOWN} more" in said


def test_tables_that_agree_are_no_error():
    threads.run(2, lambda rank: agree(group(), "numbers", {"a": 1}, "none"))
