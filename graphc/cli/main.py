"""The command ``graphc``: parses arguments, runs one command, and turns errors into messages and exit codes."""

from __future__ import annotations

import argparse
import difflib
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from graphc.base import config
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
from graphc.cli import console
from graphc.cli.console import UsageError

COMMANDS = {
    "compile": "trace a model and write it to a file",
    "run": "run a model file on arrays",
    "ir": "print a stage of the compiler",
    "bench": "measure a model file",
    "profile": "show where the time of a model goes",
    "tune": "find the fastest register blocks for a model",
    "explain": "show what the compiler decided and why",
    "check": "check every pass of compiling a model against what it means",
    "inspect": "show what a model file holds",
    "summary": "show the layers of a model",
    "viz": "draw the graph of a model",
    "cache": "show or empty the cache of compiled programs",
    "doctor": "show what of this machine can be used, and what is missing for GPUs",
}
"""Each is a module of this package, which is loaded when the command is used."""


LIKENESS = 0.8
"""From which on an option that exists is taken for what was meant by one that does not (difflib's ratio)."""


class Parser(argparse.ArgumentParser):
    """A parser that names the command whose arguments are wrong, and the argument that was meant."""

    def format_help(self) -> str:
        """As of the base class, without the marks of code in descriptions."""
        return super().format_help().replace("``", "")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:  # type: ignore[override]
        """As of the base class, but what is not known is an error here and not in the parser above."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            options = [name for action in self._actions for name in action.option_strings]
            meant = difflib.get_close_matches(unknown[0].partition("=")[0], options, 1, LIKENESS)
            self.error(f"unknown arguments: {' '.join(unknown)}" + (f"; {meant[0]} exists" if meant else ""))
        return found, unknown


def build_parser(used: str | None = None) -> argparse.ArgumentParser:
    """The parser with all commands, of which the ``used`` one has its arguments."""
    parser = argparse.ArgumentParser(
        prog="graphc",
        description="Compiles modules to native code and runs them.",
        epilog="Exit codes: 0 done, 1 internal error, 2 usage, 3 compile error, 4 damaged or foreign file, "
        "5 inputs or weights that do not fit, 6 a check that found something wrong.",
    )
    parser.add_argument("--version", action="version", version=f"graphc {config.VERSION}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=Parser)
    for name, purpose in COMMANDS.items():
        command = commands.add_parser(name, help=purpose)
        if name == used:
            module = import_module(f"graphc.cli.{name}")
            command.description = module.__doc__
            module.add_to(command)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code. Errors become messages on stderr, never a traceback
    (GRAPHC_DEBUG=1 shows it)."""
    console.open_streams()
    given = sys.argv[1:] if argv is None else argv
    parser = build_parser(next((word for word in given if not word.startswith("-")), None))
    if not given:
        parser.print_help(sys.stderr)
        return console.USAGE
    try:
        options = parser.parse_args(argv)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else console.USAGE
    try:
        _check_environment()
        code = options.run(options)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        console.say("interrupted")
        return console.INTERRUPTED
    except BrokenPipeError:
        # NOTE: the interpreter flushes stdout once more at exit; that must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return console.PIPE
    except Exception as error:
        if _debugging():
            traceback.print_exc()
        return _report(error)


def _check_environment() -> None:
    try:
        config.read()
    except ArgumentError as error:
        raise UsageError(error.what, remedy=error.remedy) from error


def _debugging() -> bool:
    try:
        return config.read().debug
    except ArgumentError:
        return False


def _report(error: Exception) -> int:
    """Prints an error; returns its exit code."""
    if isinstance(error, GraphcError):
        console.complain(str(error))
        return exit_code(error)
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        console.complain(f"{place}{error.strerror or error}")
        return console.USAGE
    if isinstance(error, MemoryError):
        console.complain(f"out of memory: {error}")
        return console.COMPILE
    console.complain(f"internal error: {type(error).__name__}: {error}\n  try    GRAPHC_DEBUG=1 shows where")
    return console.INTERNAL


def exit_code(error: GraphcError) -> int:
    """The exit code of an error; what is raised while compiling comes as CompileFailure."""
    if isinstance(error, UsageError | TargetError):
        return console.USAGE
    if isinstance(error, ArtifactError):
        return console.DAMAGED
    if isinstance(error, RealtimeError):
        return console.WRONG
    if isinstance(error, ArgumentError | ShapeError | DTypeError | IndexRangeError | StateDictError):
        return console.MISMATCH
    return console.COMPILE
