"""``graphc selftest``: the sample calls of a model file, run by what is compiled here and by each code in the file."""

from __future__ import annotations

import argparse

from graphc.checks.self_test import SelfTestCase, selftest
from graphc.cli import arguments, console, targets
from graphc.cli.fields import Field

EXAMPLES = (
    "graphc selftest net.gcm",
    "graphc selftest net.gcm --trust --json",
    "graphc selftest net.gcm --target avx2 --rtol 1e-5",
)
JSON = (
    Field("path", "string", "the file"),
    Field("good", "boolean", "whether some code was run, and none gave another output than is allowed"),
    Field("cases[]", "object", "all sample calls of an entry, run by one code"),
    Field("cases[].entry", "string", "the entry"),
    Field("cases[].code", "string", "compiled, or the machine that code in the file is for"),
    Field("cases[].good", "boolean", "whether no output differs by more than is allowed; true of what was not run"),
    Field("cases[].skipped", "string", "why the code was not run; empty where it was"),
    Field("cases[].calls", "integer", "sample calls that were run"),
    Field("cases[].error", "number", "the largest difference, in units of what is allowed"),
    Field("cases[].absolute", "number", "the largest difference"),
    Field("cases[].relative", "number", "the largest difference as a share of what was expected"),
)


def add_to(parser: argparse.ArgumentParser) -> None:
    """Gives the command's parser its arguments."""
    parser.add_argument("model", metavar="FILE", help="a model file with sample calls (export(..., golden=True))")
    parser.add_argument("--rtol", type=arguments.tolerance, metavar="X", help="allowed share of what is expected")
    parser.add_argument("--atol", type=arguments.tolerance, metavar="X", help="allowed difference besides")
    parser.add_argument("--trust", action="store_true", help="run object code from the file too (from who you trust)")
    arguments.add_machine(parser)
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the command; WRONG where an output differs by more than is allowed."""
    with targets.compiling():
        found = selftest(options.model, options.trust, target=options.machine, rtol=options.rtol, atol=options.atol)
    if not found.cases:
        raise console.UsageError(f"{options.model} holds no sample calls", remedy="graphc.export(..., golden=True)")
    if options.json:
        console.emit_json({"path": found.path, "good": found.good, "cases": [_facts(c) for c in found.cases]})
    else:
        console.emit(f"{found}\n{'good' if found.good else 'BAD'}")
    return console.OK if found.good else console.WRONG


def _facts(case: SelfTestCase) -> dict[str, object]:
    return {
        "entry": case.entry,
        "code": case.code,
        "good": case.good,
        "skipped": case.skipped,
        "calls": case.calls,
        "error": case.error,
        "absolute": case.absolute,
        "relative": case.relative,
    }
