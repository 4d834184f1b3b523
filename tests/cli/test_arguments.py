"""Types of command line arguments, and ``--target`` of the commands that run what they compile."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from types import ModuleType

import pytest

from graphc.cli import arguments as cli_arguments
from graphc.cli import console
from graphc.cli.arguments import count, seconds, threads
from graphc.cli.commands import profile
from graphc.codegen.machine.target import STRICT, host_target, named_targets, target_named
from graphc.compiler import stages
from graphc.models import model_programs
from graphc.runtime.threads import MAX_THREADS, get_num_threads, set_num_threads
from tests.cli.conftest import Graphc
from tests.native import priced, target_or_skip
from tests.passes import choosing


def test_counts():
    assert count("12") == 12
    for text in ("0", "-1", "x", "1.5", ""):
        with pytest.raises(argparse.ArgumentTypeError):
            count(text)


def test_seconds():
    assert seconds("0.25") == 0.25
    for text in ("0", "-1", "x", "nan", "inf", ""):
        with pytest.raises(argparse.ArgumentTypeError):
            seconds(text)


def test_threads_hold_from_now_on():
    before = get_num_threads()
    try:
        assert threads("3") == get_num_threads() == 3
        for text in ("0", "x", str(MAX_THREADS + 1)):
            with pytest.raises(argparse.ArgumentTypeError):
                threads(text)
        assert get_num_threads() == 3
    finally:
        set_num_threads(before)


OTHER = next(name for name in ("neon", "avx2") if target_named(name).triple[:3] != host_target().triple[:3])
SHORT = ["--seconds", "0.001"]
COMMANDS = {
    "run": ["--input", "zeros"],
    "bench": SHORT,
    "bench --breakdown": SHORT,
    "profile": SHORT,
    "tune": SHORT,
}


@pytest.fixture
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tuning needs one."""
    monkeypatch.setenv("GRAPHC_CACHE", "on")
    monkeypatch.setenv("GRAPHC_CACHE_DIR", str(tmp_path / "cache"))


def arguments(command: str, model: Path, target: str) -> list[object]:
    name, *more = command.split()
    return [name, model, *COMMANDS[command], "--target", target, *more]


@pytest.mark.usefixtures("cached")
@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_compiled_is_for_the_target(command: str, net: Path, graphc: Graphc, monkeypatch: pytest.MonkeyPatch):
    target_or_skip("sse2")
    built: list[str] = []

    class Recorded(stages.Stages):
        def __init__(self, *given, **named):
            super().__init__(*given, **named)
            built.append(self.target.features)

    monkeypatch.setattr("graphc.cli.sources.Stages", Recorded)
    monkeypatch.setattr(model_programs, "Stages", Recorded)
    assert graphc(*arguments(command, net, "sse2")).code == console.OK
    assert built and set(built) == {target_named("sse2").features}


@pytest.mark.usefixtures("cached")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_target_that_this_machine_cannot_run_is_refused(command: str, net: Path, graphc: Graphc):
    done = graphc(*arguments(command, net, OTHER))
    assert done.code == console.COMPILE
    assert f"code for {OTHER} does not run here" in done.err and not done.out


@pytest.mark.usefixtures("cached")
@pytest.mark.parametrize("command", COMMANDS)
def test_an_unknown_target_is_refused_with_the_known_ones(command: str, net: Path, graphc: Graphc):
    done = graphc(*arguments(command, net, "pdp11"))
    assert done.code == console.USAGE and all(name in done.err for name in named_targets())


@pytest.mark.parametrize(
    ("command", "owner", "found_by"),
    [
        ("ir", cli_arguments, "target_named"),
        ("explain", cli_arguments, "target_named"),
        ("profile", profile, "running_target"),
    ],
)
def test_passes_of_a_user_choose_by_the_costs_of_the_target(
    command: str, owner: ModuleType, found_by: str, net: Path, graphc: Graphc, monkeypatch: pytest.MonkeyPatch
):
    target, step = priced(host_target(), fusion={"parts": 7}), choosing.Choosing()
    monkeypatch.setattr(owner, found_by, lambda name: target)
    monkeypatch.setattr(choosing, "step", step, raising=False)
    more = SHORT if command == "profile" else []
    assert graphc(command, net, "--passes", f"{choosing.__name__}:step", *more).code == console.OK
    assert step.told == [target.costs]


@pytest.mark.parametrize("name", ["Fails", "fails_late"])
@pytest.mark.parametrize(
    "command",
    [
        ["ir", "--stage", "optimized"],
        ["explain"],
        ["explain", "--precision", "int8"],
        ["profile", *SHORT],
        ["compile", "-o", "net.gcm"],
        ["compile", "--precision", "int8", "-o", "net.gcm"],
    ],
    ids=" ".join,
)
def test_a_pass_of_a_user_that_fails_is_named_with_its_line(
    command: list[str], name: str, passes: Path, graphc: Graphc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    done = graphc(*command, f"{passes}:cosine", "--input", "x:f32[4]", "--passes", f"{passes}:{name}")
    assert done.code == console.COMPILE and done.out == ""
    assert "pass fails failed" in done.err and "ZeroDivisionError" in done.err and "talk" in done.err
    assert f"{passes}:{1 + passes.read_text().splitlines().index('        return 1 / 0')}" in done.err


@pytest.mark.parametrize(("target", "stages_run"), [("host", False), ("sse2", False), ("avx2", True)])
def test_code_in_a_file_runs_where_it_is_for_the_target(
    models: Path, tmp_path: Path, graphc: Graphc, target: str, stages_run: bool
):
    target_or_skip("avx2")
    path = tmp_path / "n.gcm"
    made = ["compile", f"{models}:double", "--input", "x:f32[2]", "-o", path, "--native", "--target", "sse2"]
    assert graphc(*made).code == console.OK
    done = graphc("bench", path, "--trust", *SHORT, "--target", target, "--json")
    assert done.code == console.OK and bool(json.loads(done.out)["stages"]) == stages_run


def test_machines_are_those_of_the_compiler():
    named = named_targets()
    strict = ["host", *(name for name, target in named.items() if target.gpu is None)]
    assert cli_arguments.machines() == ("host", *named, *(name + STRICT for name in strict))
