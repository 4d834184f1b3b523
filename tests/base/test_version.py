"""The version of graphc."""

from __future__ import annotations

import tomllib

from graphc.base.version import VERSION
from tests.architecture.scan import ROOT


def test_the_version_is_that_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == VERSION
