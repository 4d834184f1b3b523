"""``graphc selftest``: run the sample calls of a model file with new code and with each native code in it."""

from __future__ import annotations

import argparse

from graphc.checks.self_test import SelfTestCase, selftest
from graphc.cli import arguments, comparison, console, targets
from graphc.cli.fields import Field, below

EXAMPLES = (
    "graphc selftest net.gcm",
    "graphc selftest net.gcm --trust --json",
    "graphc selftest net.gcm --target avx2 --rtol 1e-5",
)
JSON = (
    Field("path", "string", "the file"),
    Field("good", "boolean", "whether some code ran and every output was within the tolerance"),
    Field("cases[]", "object", "all sample calls of one entry, run by one code"),
    Field("cases[].entry", "string", "the entry"),
    Field("cases[].code", "string", "compiled, or the machine that the code in the file was built for"),
    Field("cases[].good", "boolean", "whether every output is within the tolerance; true if the code was not run"),
    Field("cases[].skipped", "string", "why the code was not run; empty if it was"),
    Field("cases[].calls", "integer", "sample calls that were run"),
    Field("cases[].error", "number", "the largest difference as a multiple of the tolerance, like ``ratio``"),
    *below("cases[]", comparison.JSON),
)


def add_to(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="FILE", help="a model file with sample calls (export(..., golden=True))")
    parser.add_argument(
        "--rtol", type=arguments.tolerance, metavar="X", help="relative tolerance: fraction of the expected value"
    )
    parser.add_argument(
        "--atol", type=arguments.tolerance, metavar="X", help="absolute tolerance, added to the relative one"
    )
    parser.add_argument(
        "--trust", action="store_true", help="run object code from the file too (only if you trust its author)"
    )
    arguments.add_machine(parser)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the command; return WRONG if an output is outside the tolerance."""
    with targets.compiling():
        report = selftest(options.model, options.trust, target=options.machine, rtol=options.rtol, atol=options.atol)
    if not report.cases:
        raise console.UsageError(
            f"{options.model} holds no sample calls", remedy="export it with graphc.export(..., golden=True)"
        )
    if options.json:
        console.emit_json({"path": report.path, "good": report.good, "cases": [_facts(c) for c in report.cases]})
    else:
        console.emit(f"{report}\n{'good' if report.good else 'BAD'}")
    return console.OK if report.good else console.WRONG


def _facts(case: SelfTestCase) -> dict[str, object]:
    return {
        "entry": case.entry,
        "code": case.code,
        "good": case.good,
        "skipped": case.skipped,
        "calls": case.calls,
        "error": case.error,
        **case.difference.as_json(),
    }
