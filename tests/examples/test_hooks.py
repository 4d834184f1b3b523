"""examples/hooks.py: one line of statistics per module, and no call is seen after the hooks are removed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.examples.run_example import run_example

pytest.importorskip("sklearn")
pytest.importorskip("tqdm")


def test_every_module_is_watched_for_every_step(tmp_path: Path):
    header, *lines = run_example("hooks.py", "--steps", "3", folder=tmp_path).splitlines()
    rows = {name: values for name, *values in map(str.split, lines)}
    assert header.split()[:2] == ["module", "calls"]
    assert list(rows) == ["conv1", "conv2", "conv2_drop", "fc1", "fc2"]
    for calls, _, deviation, dead, gradient in rows.values():
        assert calls == "3"
        assert float(deviation) > 0
        assert 0 < float(dead.rstrip("%")) < 100
        assert float(gradient) > 0
