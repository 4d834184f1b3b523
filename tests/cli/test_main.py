"""The command line as a whole: usage, exit codes, interrupts, pipes, tracebacks only when asked for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import pytest

import graphc as gc
from graphc.base.version import VERSION
from graphc.cli import console
from graphc.cli.main import COMMANDS, ELSEWHERE, Parser, exit_code, main, no_command, option_meant
from graphc.errors import (
    ArgumentError,
    ArtifactError,
    CompileError,
    DTypeError,
    GraphcError,
    IndexRangeError,
    ParseError,
    ShapeError,
    StateDictError,
    TargetError,
    TraceError,
)
from graphc.runtime.code.code_memory import can_link
from tests.architecture.scan import ROOT
from tests.cli.conftest import Graphc

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


def spawn(*arguments: object, **options: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "graphc", *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, text=True, **{"env": ENVIRONMENT, **pipes, **options})  # type: ignore[call-overload]


def test_python_m_graphc_runs_commands(net: Path):
    process = spawn("run", net, "--input", "x=ones", "--print-top", 1)
    out, err = process.communicate()
    assert (process.returncode, err) == (0, "") and out.startswith("output: f32[2,4]")


def test_every_command_has_help(capsys: pytest.CaptureFixture[str]):
    for command in ("--help", *COMMANDS):
        assert main([command] if command == "--help" else [command, "--help"]) == 0
        out, err = capsys.readouterr()
        assert out.startswith("usage: graphc") and not err


HEAVY = ("numpy", "llvmlite", "networkx", "logging", "dataclasses")


@pytest.mark.parametrize(
    ("command", "spared"),
    [
        (["--help"], HEAVY),
        (["--version"], HEAVY),
        (["fly"], HEAVY[:3]),
        (["completion", "bash"], HEAVY[:3]),
        (["cache", "--json"], HEAVY[2:3]),
    ],
)
def test_commands_load_what_they_need(command: list[str], spared: tuple[str, ...]):
    program = (
        "import sys; from graphc.cli.main import main; main(sys.argv[2:]); "
        "sys.exit(any(name in sys.modules for name in sys.argv[1].split()))"
    )
    names = " ".join(spared)
    run = subprocess.run([sys.executable, "-c", program, names, *command], capture_output=True, env=ENVIRONMENT)
    assert run.returncode == 0, run.stderr


OTHERS = ("llvmlite", "networkx", "onnx", "google", "ml_dtypes", "PIL", "tqdm", "safetensors", "torch")
MODULES_OF_RUN = Path(__file__).with_name("modules_of_run.txt")


def modules_of(folder: Path, *command: str) -> set[str]:
    """Return the modules of graphc and the packages of OTHERS that a command loads in its second run."""
    program = "import sys; from graphc.cli.main import main; main(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    environment = {**ENVIRONMENT, "GRAPHC_CACHE": "on", "GRAPHC_CACHE_DIR": str(folder / "cache")}
    for _ in range(2):
        words = [sys.executable, "-c", program, *command]
        run = subprocess.run(words, capture_output=True, env=environment, text=True, check=True)
    return {n for n in run.stderr.splitlines()[-1].split() if n.startswith("graphc.") or n in OTHERS}


def test_a_run_loads_only_listed_modules(tmp_path: Path):
    path = tmp_path / "net.gcm"
    gc.export(gc.nn.Linear(3, 2).eval(), gc.zeros(2, 3), path=path)
    loaded = modules_of(tmp_path, "run", str(path), "--fill", "zeros")
    listed = set(MODULES_OF_RUN.read_text(encoding="utf-8").split())
    assert sorted(loaded - listed) == [], f"import these when they are needed, or add them to {MODULES_OF_RUN.name}"
    assert {"graphc.models.model_file", "graphc.runtime.loader"} <= loaded
    assert ("llvmlite" in loaded) != can_link()


def test_an_inspection_loads_neither_tracer_nor_compiler(tmp_path: Path):
    path = tmp_path / "net.gcm"
    gc.export(gc.nn.Linear(3, 2).eval(), gc.zeros(2, 3), path=path)
    packages = {".".join(name.split(".")[:2]) for name in modules_of(tmp_path, "inspect", str(path))}
    spared = {
        "graphc.nn",
        "graphc.tracing",
        "graphc.tensors",
        "graphc.codegen",
        "graphc.runtime",
        "llvmlite",
        "networkx",
    }
    assert packages & spared == set() and "graphc.ops" in packages


def test_version(graphc: Graphc):
    assert graphc("--version").out == f"graphc {VERSION}\n"


@pytest.mark.parametrize("arguments", [[], ["fly"], ["run"], ["compile", "a.py:B"], ["run", "a.gcm", "--what"]])
def test_usage(graphc: Graphc, arguments: list[str]):
    done = graphc(*arguments)
    assert done.code == console.USAGE and "usage: graphc" in done.err and not done.out


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (TargetError, console.USAGE),
        (console.UsageError, console.USAGE),
        (console.UserCodeError, console.COMPILE),
        (console.CompileFailure, console.COMPILE),
        (CompileError, console.COMPILE),
        (TraceError, console.COMPILE),
        (ParseError, console.COMPILE),
        (ArtifactError, console.DAMAGED),
        (ShapeError, console.MISMATCH),
        (DTypeError, console.MISMATCH),
        (IndexRangeError, console.MISMATCH),
        (ArgumentError, console.MISMATCH),
        (StateDictError, console.MISMATCH),
    ],
)
def test_exit_codes(error: type[GraphcError], code: int):
    assert exit_code(error("x")) == code


def test_a_fault_of_graphc_says_so(graphc: Graphc, net: Path, monkeypatch: pytest.MonkeyPatch):
    def fault(*_: object) -> None:
        raise RuntimeError("odd")

    monkeypatch.setattr("graphc.cli.commands.run.inputs.read", fault)
    done = graphc("run", net)
    assert done.code == console.INTERNAL
    assert done.err == "error: internal error: RuntimeError: odd\n  try    set GRAPHC_DEBUG=1 to see the traceback\n"


def test_memory_errors_are_no_faults(graphc: Graphc, net: Path, monkeypatch: pytest.MonkeyPatch):
    def exhausted(*_: object) -> None:
        raise MemoryError("1 EiB")

    monkeypatch.setattr("graphc.cli.commands.run.inputs.read", exhausted)
    assert graphc("run", net) == (console.COMPILE, "", "error: out of memory: 1 EiB\n")


def test_tracebacks_are_shown_when_asked_for(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    for value, shown in (("0", False), ("1", True)):
        monkeypatch.setenv("GRAPHC_DEBUG", value)
        assert main(["inspect", "missing.gcm"]) == console.USAGE
        err = capsys.readouterr().err
        assert ("Traceback" in err) == shown and "missing.gcm: No such file or directory" in err


def test_an_unknown_argument_names_the_one_that_was_meant(graphc: Graphc, net: Path):
    done = graphc("run", net, "--inputs", "x=ones")
    assert done.code == console.USAGE and done.err.startswith("usage: graphc run")
    assert "unknown arguments: --inputs x=ones; did you mean --input?" in done.err


def test_an_argument_that_is_like_no_other_is_given_no_advice(graphc: Graphc, net: Path):
    done = graphc("run", net, "--trunk")
    assert done.code == console.USAGE and done.err.rstrip().endswith("unknown arguments: --trunk")


@pytest.mark.parametrize("start", [[str(ROOT / "graphc_launch.py")], ["-m", "graphc"]])
def test_an_interrupt_while_modules_load_ends_quietly(tmp_path: Path, start: list[str]):
    (tmp_path / "numpy.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    command = [sys.executable, *start, "cache"]
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    done = subprocess.run(command, capture_output=True, text=True, env={**ENVIRONMENT, "PYTHONPATH": path})
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")
    done = subprocess.run([*command[:-1], "--version"], capture_output=True, text=True, env=ENVIRONMENT)
    assert (done.returncode, done.stdout) == (0, f"graphc {VERSION}\n")


def test_wrong_options_are_usage_errors(graphc: Graphc, net: Path, monkeypatch: pytest.MonkeyPatch):
    for variable in ("GRAPHC_VERIFY", "GRAPHC_DEBUG", "GRAPHC_LOGS"):
        monkeypatch.setenv(variable, "maybe")
        done = graphc("inspect", net)
        assert done.code == console.USAGE and f"{variable}='maybe'" in done.err
        monkeypatch.delenv(variable)


def test_a_reader_that_goes_away_is_no_error(net: Path):
    reader, writer = os.pipe()
    os.close(reader)
    process = spawn("ir", net, "--stage", "asm", stdout=writer)
    os.close(writer)
    _, err = process.communicate()
    assert (process.returncode, err) == (console.PIPE, "")


def test_an_interrupt_ends_quietly_and_leaves_nothing(models: Path):
    source = models.with_name("slow.py")
    source.write_text("import time\nprint('ready', flush=True)\ntime.sleep(60)\n")
    process = spawn("compile", f"{source}:f", "--input", "x:f32[4]", "-o", models.with_name("slow.gcm"))
    assert process.stderr is not None
    assert process.stderr.readline() == "ready\n"
    time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert (process.returncode, err) == (console.INTERRUPTED, "interrupted\n")
    assert not list(models.parent.glob("*.gcm")) and not list(models.parent.glob(".*"))


@pytest.mark.parametrize(
    "arguments",
    [
        ["bench", "--seconds", "60"],
        ["bench", "--seconds", "60", "--rounds", "1", "--streams", "3"],
        ["bench", "--seconds", "60", "--rate", "100"],
    ],
)
def test_an_interrupt_ends_a_measurement(net: Path, arguments: list[str]):
    process = spawn(arguments[0], net, *arguments[1:], env={**ENVIRONMENT, "GRAPHC_LOGS": "info"})
    assert process.stderr is not None
    while "object" not in (line := process.stderr.readline()) and line:
        pass
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err.splitlines()[-1]) == (console.INTERRUPTED, "", "interrupted")


def test_closed_streams(net: Path):
    command = f"{sys.executable} -m graphc"
    for line, code in ((f"run {net} --input x=ones >&- <&-", 0), (f"run {net}.none 2>&-", console.USAGE)):
        done = subprocess.run(f"{command} {line}", shell=True, env=ENVIRONMENT, capture_output=True, text=True)
        assert (done.returncode, done.stderr, done.stdout) == (code, "", "")


def test_warnings_are_one_line(net: Path):
    process = spawn(
        "run", net, "--input", "x=ones", env={**ENVIRONMENT, "GRAPHC_CACHE": "on", "GRAPHC_CACHE_DIR": "/dev/null/x"}
    )
    out, err = process.communicate()
    assert process.returncode == 0 and out.startswith("output")
    assert err.startswith("warning: the cache of compiled programs") and err.count("\n") == 1


def test_without_a_command_all_are_listed(graphc: Graphc):
    done = graphc()
    assert done.code == console.USAGE and not done.out and "trace a model and write it to a file" in done.err


def test_a_command_that_does_not_exist_names_one_that_does(graphc: Graphc):
    done = graphc("rum", "net.gcm")
    assert done.code == console.USAGE and done.err.endswith("unknown command 'rum'; did you mean run?\n")


def test_names_of_options_are_not_abbreviated(graphc: Graphc, net: Path):
    done = graphc("run", net, "--input", "x=ones", "--trus")
    assert done.code == console.USAGE and done.err.endswith("unknown arguments: --trus\n")


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
