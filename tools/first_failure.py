"""pytest plugin that writes the first failing test into the file named by an environment variable."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

VARIABLE = "GRAPHC_FIRST_FAILURE"


def pytest_runtest_logreport(report: Any) -> None:
    """Record the test if a phase of it failed."""
    _note(report)


def pytest_collectreport(report: Any) -> None:
    """Record the file if it could not be collected."""
    _note(report)


def _note(report: Any) -> None:
    file = Path(os.environ[VARIABLE])
    if report.failed and not file.exists():
        file.write_text(report.nodeid, encoding="utf-8")
