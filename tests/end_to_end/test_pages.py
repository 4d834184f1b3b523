"""The programs on the pages about data and watching run as they stand there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", ["data.md", "monitor.md"])
def test_programs_run(name: str, tmp_path: Path):
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) >= 3
    (tmp_path / "page.py").write_text(f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n" + "\n".join(blocks))
    done = subprocess.run(
        [sys.executable, "page.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
