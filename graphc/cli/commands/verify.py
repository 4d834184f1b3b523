"""``graphc verify``: check every digest, limit, graph and weight of model files, without running anything in them."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

from graphc.cli import console
from graphc.cli.fields import Field
from graphc.models.file_report import FileReport, report_of

EXAMPLES = (
    "graphc verify net.gcm",
    "graphc verify models/ --json",
)
JSON = (
    Field("files[]", "object", "report on one file"),
    Field("files[].path", "string", "the file"),
    Field("files[].good", "boolean", "whether the file is intact"),
    Field("files[].problem", "string", "what is wrong; empty if the file is intact"),
    Field("files[].warnings[]", "string", "a valid but suspicious property", optional=True),
    Field("files[].entries[]", "object", "an entry", optional=True),
    Field("files[].entries[].name", "string", "its name"),
    Field("files[].entries[].nodes", "integer", "nodes of its graph"),
    Field("files[].entries[].samples", "integer", "number of sample calls for graphc selftest"),
    Field("files[].entries[].natives[]", "object", "one native code", optional=True),
    Field("files[].entries[].natives[].triple", "string", "LLVM target triple that it was built for"),
    Field("files[].entries[].natives[].cpu", "string", "processor that it was built for"),
    Field(
        "files[].entries[].natives[].features[]", "string", "an instruction set extension that it needs", optional=True
    ),
    Field("files[].entries[].natives[].runs_here", "boolean", "whether this machine and this graphc can run it"),
    Field("files[].entries[].natives[].why_not", "string", "why they cannot run it"),
    Field("files[].weights", "integer", "number of parameters and states"),
    Field("files[].weight_bytes", "integer", "their size", unit="B"),
)
SUFFIX = ".gcm"


def add_to(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="a model file, or a folder to search for model files")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the command; return DAMAGED if a file is not intact."""
    reports = []
    for path in _paths(options.files):
        reports.append(report_of(path))
        if not options.json:
            console.emit(_text(reports[-1]))
    if options.json:
        console.emit_json({"files": [{**asdict(r), "good": r.good} for r in reports]})
    return console.OK if all(r.good for r in reports) else console.DAMAGED


def _paths(texts: list[str]) -> list[Path]:
    """List the files, and every model file below the folders, sorted by name."""
    paths: list[Path] = []
    for text in texts:
        path = Path(text)
        if not path.is_dir():
            paths.append(path)
            continue
        below = sorted(p for p in path.rglob(f"*{SUFFIX}") if p.is_file())
        if not below:
            raise console.UsageError(f"there is no model file (*{SUFFIX}) below {text!r}")
        paths += below
    return paths


def _text(report: FileReport) -> str:
    if not report.good:
        return f"{report.path}: {console.paint('BAD', '31', console.sys.stdout)}: {report.problem}"
    names = ", ".join(entry["name"] for entry in report.entries)
    kinds = "entry" if len(report.entries) == 1 else "entries"
    size = console.bytes_text(report.weight_bytes)
    head = f"{report.path}: good: {kinds} {names}; {report.weights} weights, {size}{_natives(report.entries)}"
    return "\n".join((head, *(f"  warning: {warning}" for warning in report.warnings)))


def _natives(entries: list[dict[str, Any]]) -> str:
    """Summarize the native codes of all entries."""
    codes = [code for entry in entries for code in entry["natives"]]
    if not codes:
        return ""
    here = sum(code["runs_here"] for code in codes)
    return f"; {len(codes)} native codes, of which {here} can run here (with --trust only)"
