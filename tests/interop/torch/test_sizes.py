"""Symbolic sizes of PyTorch as sizes of graphc."""

from __future__ import annotations

from typing import Any

import pytest

from graphc.base.sizes.size import is_size

torch = pytest.importorskip("torch")
sizes: Any = pytest.importorskip("graphc.interop.torch.sizes")


def test_symbols_are_dimensions_with_their_ranges_and_expressions_are_computed_of_them():
    dim = torch.export.Dim("batch", min=2, max=64)
    program = torch.export.export(torch.nn.Flatten(0), (torch.ones(4, 3),), dynamic_shapes={"input": {0: dim}})
    shapes = [n.meta["val"].shape for n in program.graph.nodes if n.op != "output"]
    found = sizes.GraphSizes()
    batch, three = found.shape(shapes[0])
    assert is_size(batch) and three == 3
    (flat,) = found.shape(shapes[-1])
    assert flat == 3 * batch
    (dimension,) = [atom for atoms, _ in batch.terms for atom, _ in atoms]
    assert (dimension.low, dimension.high, dimension.hint) == (2, 64, 4)
