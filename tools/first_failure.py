"""A plugin of pytest that writes the first test that fails into the file that an environment variable names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

VARIABLE = "GRAPHC_FIRST_FAILURE"


def pytest_runtest_logreport(report: Any) -> None:
    """A test, or what it needs, has run."""
    _note(report)


def pytest_collectreport(report: Any) -> None:
    """A file was read."""
    _note(report)


def _note(report: Any) -> None:
    file = Path(os.environ[VARIABLE])
    if report.failed and not file.exists():
        file.write_text(report.nodeid, encoding="utf-8")
