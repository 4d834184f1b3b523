"""Errors of MPI become errors of graphc."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from graphc.base.errors import DistributedError
from graphc.distributed.mpi import Mpi


class Refusal(RuntimeError):
    """As mpi4py's exception."""


class Communicator:
    """As mpi4py's, of which every message is cut off."""

    def Get_rank(self) -> int:
        return 0

    def Get_size(self) -> int:
        return 2

    def __getattr__(self, name: str) -> Any:
        def refuse(*arguments: Any) -> None:
            raise Refusal("Message truncated")

        return refuse


LIBRARY = SimpleNamespace(SUM=0, PROD=1, MIN=2, MAX=3, IN_PLACE=4, Exception=Refusal)
ONE = np.ones(2)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("all_reduce", (ONE, ONE, "sum")),
        ("all_reduce", (ONE.astype(np.float16), ONE.astype(np.float16), "sum")),
        ("reduce_scatter", (ONE, ONE[:1], "max")),
        ("all_gather", (ONE, np.ones((2, 2)))),
        ("broadcast", (ONE, 1)),
        ("all_to_all", (ONE, ONE)),
        ("barrier", ()),
        ("gather_objects", (1,)),
        ("duplicate", ()),
    ],
)
def test_errors_of_mpi_are_named(name: str, arguments: tuple[Any, ...]):
    with pytest.raises(DistributedError, match="failed in MPI: Message truncated") as caught:
        getattr(Mpi(Communicator(), LIBRARY), name)(*arguments)
    assert "GRAPHC_DISTRIBUTED_CHECK=1" in str(caught.value)
    assert isinstance(caught.value.__cause__, Refusal)
