"""Suggestions for commands and arguments that do not exist."""

from __future__ import annotations

from importlib import import_module

import pytest

from graphc.cli.main import COMMANDS, Parser
from graphc.cli.suggestions import ELSEWHERE, no_command, option_meant

OPTIONS = ["-o", "--output", "--input", "--threads", "--trust", "--streams", "--print-top", "--shape"]


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("--inputs", "--input"),
        ("--out", "--output"),
        ("--thread=3", "--threads"),
        ("--print_top", "--print-top"),
        ("--nthreads", "--threads"),
        ("-nstreams", "--streams"),
        ("--shapes=1", "--shape"),
        ("--colour", None),
        ("net.gcm", None),
    ],
)
def test_an_option_that_is_like_it_is_named(given: str, meant: str | None):
    assert option_meant(given, OPTIONS) == meant


@pytest.mark.parametrize("given", ["--trus", "--trusted", "--tru", "--trust-file", "--Trust", "--trunk"])
def test_running_code_from_a_file_is_never_proposed(given: str):
    assert option_meant(given, OPTIONS) != "--trust"
    assert option_meant(given, ["--trust"]) is None


def test_a_command_that_is_like_it_is_named():
    assert no_command("benchmark", COMMANDS) == "unknown command 'benchmark'; did you mean bench?"
    assert "one of compile, run" in no_command("fly", COMMANDS)


def test_names_of_other_runners_lead_to_options_that_there_are():
    known = set()
    for name in ("run", "bench"):
        parser = Parser()
        import_module(f"graphc.cli.commands.{name}").add_to(parser)
        known |= {option for action in parser._actions for option in action.option_strings}
    assert set(ELSEWHERE.values()) <= known
