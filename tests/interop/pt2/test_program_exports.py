"""Models that PyTorch exports here, read where torch cannot be imported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from tests.interop.pt2 import models  # noqa: E402
from tests.interop.pt2.test_program import LIMIT, distances  # noqa: E402


@pytest.mark.filterwarnings("ignore")
def test_exported_models_run_without_torch(tmp_path: Path):
    samples = models.samples()
    for name, sample in samples.items():
        models.save(sample, str(tmp_path / f"{name}.pt2"))
        (tmp_path / f"{name}.json").write_text(json.dumps(models.calls(sample)), encoding="utf-8")
    found = distances(tmp_path)
    assert set(found) == {f"{n}{c}" for n in samples for c in ("", " compiled")}
    assert {n: d for n, d in found.items() if isinstance(d, str) or d > LIMIT} == {}
