"""Changes that alter results are undone, the others stay."""

from __future__ import annotations

from typing import Any

import graphc as gc
from graphc import nn
from graphc.quantization.rewrites import apply_changes


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.factor, self.unused = 2.0, 1.0

    def forward(self, x: Any) -> Any:
        return self.factor * x, (x > 0).to("i32")


def change(model: Any, name: str, value: float) -> Any:
    def apply() -> Any:
        old = getattr(model, name)
        setattr(model, name, value)
        return lambda: setattr(model, name, old)

    return apply


def test_only_changes_that_keep_the_results_stay():
    model, batch = Scaled(), ((gc.ones(3),), {})
    changes = [change(model, "unused", 5.0), change(model, "factor", 3.0), change(model, "factor", 2.00001)]
    assert apply_changes(model, batch, changes) == [0, 1, 2]  # together they keep it, since the last one counts
    model = Scaled()
    changes = [change(model, "unused", 5.0), change(model, "factor", 2.00001), change(model, "factor", 3.0)]
    assert apply_changes(model, batch, changes) == [0, 1]
    assert (model.unused, model.factor) == (5.0, 2.00001)


def test_no_change_keeps_everything():
    assert apply_changes(Scaled(), ((gc.ones(3),), {}), []) == []


def test_no_change_stays_where_results_are_not_seen():
    class Hidden(Scaled):
        def forward(self, x: Any) -> Any:
            super().forward(x)

    model = Hidden()
    assert apply_changes(model, ((gc.ones(3),), {}), [change(model, "unused", 5.0)]) == [] and model.unused == 1.0
