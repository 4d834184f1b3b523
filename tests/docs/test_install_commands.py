"""Install commands of pages, messages and CI name extras and dependency groups that exist."""

from __future__ import annotations

import re
import tomllib

from graphc.base.installation import DISTRIBUTION
from tests.architecture.scan import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = set(PROJECT["project"]["optional-dependencies"])
GROUPS = PROJECT["dependency-groups"]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob(".ci/*")]
SOURCES = [path for folder in ("graphc", "benchmarks", "examples") for path in (ROOT / folder).rglob("*.py")]
INSTALLED_EXTRAS = re.compile(r"pip\"? install[^\n`]*?(\S*)\[([\w,]+)\]")
INSTALLED_GROUP = re.compile(r"pip\"? install[^\n`]* --group ([\w:]+)")


def test_pages_install_the_clone_with_extras_that_exist():
    commands = [found for path in PAGES for found in INSTALLED_EXTRAS.findall(path.read_text("utf-8"))]
    assert len(commands) > 10
    assert {source.strip("'\"") for source, _ in commands} == {"."}
    assert {extra for _, extras in commands for extra in extras.split(",")} <= EXTRAS


def test_pages_install_groups_that_exist():
    groups = [group for path in PAGES for group in INSTALLED_GROUP.findall(path.read_text("utf-8"))]
    assert set(groups) >= {"dev", "test", "conformance", "bench", "hub"}
    assert set(groups) <= set(GROUPS)


def test_messages_ask_for_extras_and_groups_that_exist():
    text = "\n".join(path.read_text("utf-8") for path in SOURCES)
    assert set(re.findall(r"install_command\(['\"]([a-z]\w*)['\"]", text)) <= EXTRAS
    assert set(re.findall(r"group_command\(['\"](\w+)['\"]", text)) <= set(GROUPS) - {"dev"}


def test_groups_are_for_developers_and_extras_for_users():
    assert not EXTRAS & set(GROUPS)


def test_the_group_of_developers_has_the_extras_that_tests_need():
    (own,) = (text for text in GROUPS["dev"] if isinstance(text, str) and text.startswith(DISTRIBUTION))
    assert own == f"{DISTRIBUTION}[interop,images,pictures,onnx,monitor,mpi]"
