"""The command ``graphc``: parse arguments, run one command, and turn errors into messages and exit codes."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import textwrap
import threading
from collections.abc import Iterable, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

from graphc.base.errors import (
    ArgumentError,
    ArtifactError,
    DTypeError,
    GraphcError,
    IndexRangeError,
    RealtimeError,
    ShapeError,
    StateDictError,
    TargetError,
)
from graphc.base.lazy import deferred
from graphc.base.version import VERSION
from graphc.cli import console
from graphc.cli.console import UsageError

close_matches = deferred("difflib:get_close_matches")
LIKENESS = 0.7
"""Least similarity (difflib's ratio) at which an existing option is suggested."""
NEVER = ("--trust",)
"""Options that are never suggested: ``--trust`` runs code from a file, so users must know it before they ask for it."""
ELSEWHERE = {
    "--batch": "--shape",
    "--benchmark_min_time": "--duration",
    "--benchmark_repetitions": "--rounds",
    "--data_shape": "--shape",
    "--exportOutput": "--output",
    "--exportTimes": "--json",
    "--fill-mode": "--fill",
    "--function": "--entry",
    "--infStreams": "--streams",
    "--iterations": "--rounds",
    "--loadInputs": "--input",
    "--niter": "--rounds",
    "--nireq": "--streams",
    "--nstreams": "--streams",
    "--nthreads": "--threads",
    "--number": "--rounds",
    "--print-time": "--json",
    "--repeat": "--rounds",
    "--shapes": "--shape",
    "--warmUp": "--warmup",
}
"""Options of other model runners, and the option here that does the same (docs/runners.md)."""


def option_meant(argument: str, options: Sequence[str]) -> str | None:
    """Return the option most similar to an unknown argument, or None if no option resembles it."""
    name = argument.partition("=")[0]
    if not name.startswith("-"):
        return None
    name = f"--{name.lstrip('-')}"
    usable = [option for option in options if option not in NEVER]
    if ELSEWHERE.get(name) in usable:
        return ELSEWHERE[name]
    starts = [option for option in usable if len(name) > 3 and option.startswith(name)]
    dashed = name.replace("_", "-").lower()
    matches = [option for option in usable if option == dashed] or starts or close_matches(name, usable, 1, LIKENESS)
    return matches[0] if matches else None


def no_command(name: str, commands: Iterable[str]) -> str:
    """Return the error message for an unknown command, with the closest existing one."""
    matches = close_matches(name, list(commands), 1, 0.6)
    suggestion = f"did you mean {matches[0]}?" if matches else f"choose one of {', '.join(commands)}"
    return f"unknown command {name!r}; {suggestion}"


COMMANDS = {
    "compile": "trace a model and write it to a file",
    "run": "run a model file on arrays, images, or folders of them",
    "ir": "print a stage of the compiler",
    "bench": "measure how fast a model file runs, alone or compared with others",
    "profile": "measure the time of each kernel of a model",
    "tune": "search for a faster schedule of a model on this machine",
    "explain": "show what the compiler decided and why",
    "check": "check that every compiler pass preserves a model's results",
    "inspect": "show the contents of a model file",
    "summary": "show the layers of a model",
    "train": "train a model file on data in files",
    "generate": "continue a text with a language model",
    "chat": "talk with a language model",
    "diff": "compare two models",
    "verify": "check that model files are intact",
    "selftest": "run the sample calls of a model file",
    "viz": "draw the graph of a model",
    "view": "show a model on one page: layers, passes, kernels and their times",
    "cache": "list, measure or empty the cache of compiled programs",
    "targets": "list the machines that graphc compiles for, and which run here",
    "doctor": "check this machine: what graphc can use and what is missing",
    "completion": "print a shell script that completes commands and arguments",
}
"""Purpose of each command. A command is a module of this package, which is imported when the command is used.

The module has ``add_to(parser)``, which adds arguments and sets ``run``, the function from options to an exit code;
``EXAMPLES``, command lines; and, if the command has ``--json``, ``JSON``, the fields that it prints
(``graphc/cli/fields.py``)."""

read_options = deferred("graphc.base.config:read")


class Formatter(argparse.HelpFormatter):
    """Help formatter that keeps the line breaks of examples."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if "\n" in text else super()._fill_text(text, width, indent)


class Parser(argparse.ArgumentParser):
    """Parser that names the command whose arguments are wrong and suggests the right one; no abbreviations."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **{"allow_abbrev": False, "formatter_class": Formatter, **kwargs})

    def format_help(self) -> str:
        """Format the help without the double backquotes of descriptions."""
        return super().format_help().replace("``", "")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:  # type: ignore[override]
        """Parse as the base class does, but report unknown arguments here instead of in the parent parser."""
        namespace, unknown = super().parse_known_args(args, namespace)
        if unknown:
            options = [name for action in self._actions for name in action.option_strings]
            meant = option_meant(unknown[0], options)
            self.error(f"unknown arguments: {' '.join(unknown)}" + (f"; did you mean {meant}?" if meant else ""))
        return namespace, unknown


def load_command(name: str) -> ModuleType:
    """Import the module of a command. An interrupt during the import ends the process."""
    # NOTE: an import can turn a KeyboardInterrupt into an ImportError.
    handler = signal.getsignal(signal.SIGINT)
    guarded = handler is signal.default_int_handler and threading.current_thread() is threading.main_thread()
    if guarded:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        return import_module(f"graphc.cli.commands.{name}")
    finally:
        if guarded:
            signal.signal(signal.SIGINT, handler)


def build_parser(used: str | None = None) -> argparse.ArgumentParser:
    """Build the parser with all commands; only the ``used`` one gets its arguments."""
    parser = Parser(
        prog="graphc",
        description="Compile neural networks to native code and run them.",
        epilog="Exit codes: 0 done, 1 internal error, 2 usage, 3 compile error, 4 damaged or foreign file, "
        "5 inputs or weights do not fit the model, 6 a check, comparison or assertion failed, 130 interrupted.",
    )
    parser.add_argument("--version", action="version", version=f"graphc {VERSION}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=Parser)
    for name, purpose in COMMANDS.items():
        command = commands.add_parser(name, help=purpose)
        if name == used:
            module = load_command(name)
            command.description = " ".join((module.__doc__ or "").split())
            command.epilog = textwrap.indent("\n".join(("examples:", *module.EXAMPLES)), "  ").removeprefix("  ")
            module.add_to(command)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code.

    Errors become messages on stderr; GRAPHC_DEBUG=1 adds the traceback.
    """
    console.open_streams()
    words = sys.argv[1:] if argv is None else argv
    used = next((word for word in words if not word.startswith("-")), None)
    try:
        parser = build_parser(used)
        if not words:
            parser.print_help(sys.stderr)
            return console.USAGE
        if used not in COMMANDS and not {"-h", "--help", "--version"} & {*words}:
            parser.error(no_command(used, COMMANDS) if used else "no command given")
        options = parser.parse_args(words)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else console.USAGE
    except BrokenPipeError:
        return _reader_is_gone()
    try:
        _check_environment()
        code = options.run(options)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        console.say("interrupted")
        return console.INTERRUPTED
    except BrokenPipeError:
        return _reader_is_gone()
    # NOTE: every error of a command is reported; known kinds have their own exit code.
    except Exception as error:
        if _debugging():
            sys.excepthook(type(error), error, error.__traceback__)
        return _report(error)


def _reader_is_gone() -> int:
    # NOTE: the interpreter flushes stdout once more at exit; that must not fail again.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return console.PIPE


def _check_environment() -> None:
    try:
        read_options()
    except ArgumentError as error:
        raise UsageError(error.what, remedy=error.remedy) from error


def _debugging() -> bool:
    try:
        return read_options().debug
    except ArgumentError:
        return False


def _report(error: Exception) -> int:
    """Print an error and return its exit code."""
    if isinstance(error, GraphcError):
        console.complain(str(error))
        return exit_code(error)
    if isinstance(error, OSError):
        location = f"{error.filename}: " if error.filename else ""
        console.complain(f"{location}{error.strerror or error}")
        return console.USAGE
    if isinstance(error, MemoryError):
        console.complain(f"out of memory: {error}")
        return console.COMPILE
    console.complain(
        f"internal error: {type(error).__name__}: {error}\n  try    set GRAPHC_DEBUG=1 to see the traceback"
    )
    return console.INTERNAL


def exit_code(error: GraphcError) -> int:
    """Return the exit code of an error. Errors while compiling arrive as CompileFailure."""
    if isinstance(error, UsageError | TargetError):
        return console.USAGE
    if isinstance(error, ArtifactError):
        return console.DAMAGED
    if isinstance(error, RealtimeError):
        return console.WRONG
    if isinstance(error, ArgumentError | ShapeError | DTypeError | IndexRangeError | StateDictError):
        return console.MISMATCH
    return console.COMPILE
