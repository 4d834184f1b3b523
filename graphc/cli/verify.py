"""``graphc verify``: whether model files are whole: every digest, limit, graph and weight; nothing in them is run."""

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
    Field("files[]", "object", "what was found in a file"),
    Field("files[].path", "string", "the file"),
    Field("files[].good", "boolean", "whether nothing is wrong"),
    Field("files[].problem", "string", "what is wrong; empty where the file is whole"),
    Field("files[].warnings[]", "string", "what is allowed, and may not be what was meant", optional=True),
    Field("files[].entries[]", "object", "an entry", optional=True),
    Field("files[].entries[].name", "string", "its name"),
    Field("files[].entries[].nodes", "integer", "nodes of its graph"),
    Field("files[].entries[].samples", "integer", "sample calls for a self test"),
    Field("files[].entries[].natives[]", "object", "a native code", optional=True),
    Field("files[].entries[].natives[].triple", "string", "the kind of machine that it is for"),
    Field("files[].entries[].natives[].cpu", "string", "the processor that it is for"),
    Field("files[].entries[].natives[].features[]", "string", "an extension that it needs", optional=True),
    Field("files[].entries[].natives[].runs_here", "boolean", "whether this machine and this graphc can run it"),
    Field("files[].entries[].natives[].why_not", "string", "why they cannot"),
    Field("files[].weights", "integer", "parameters and states"),
    Field("files[].weight_bytes", "integer", "their size", unit="B"),
)
SUFFIX = ".gcm"


def add_to(parser: argparse.ArgumentParser) -> None:
    """Gives the command's parser its arguments."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="a model file, or a folder with model files below it")
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the command; DAMAGED where a file is not whole."""
    reports = []
    for path in _paths(options.files):
        reports.append(report_of(path))
        if not options.json:
            console.emit(_text(reports[-1]))
    if options.json:
        console.emit_json({"files": [{**asdict(r), "good": r.good} for r in reports]})
    return console.OK if all(r.good for r in reports) else console.DAMAGED


def _paths(texts: list[str]) -> list[Path]:
    """The files, and of folders all model files below, in order of their names."""
    found: list[Path] = []
    for text in texts:
        path = Path(text)
        if not path.is_dir():
            found.append(path)
            continue
        below = sorted(p for p in path.rglob(f"*{SUFFIX}") if p.is_file())
        if not below:
            raise console.UsageError(f"there is no model file (*{SUFFIX}) below {text!r}")
        found += below
    return found


def _text(report: FileReport) -> str:
    if not report.good:
        return f"{report.path}: {console.paint('BAD', '31', console.sys.stdout)}: {report.problem}"
    names = ", ".join(entry["name"] for entry in report.entries)
    kinds = "entry" if len(report.entries) == 1 else "entries"
    size = console.bytes_text(report.weight_bytes)
    head = f"{report.path}: good: {kinds} {names}; {report.weights} weights, {size}{_natives(report.entries)}"
    return "\n".join((head, *(f"  warning: {warning}" for warning in report.warnings)))


def _natives(entries: list[dict[str, Any]]) -> str:
    """What is said of native codes."""
    codes = [code for entry in entries for code in entry["natives"]]
    if not codes:
        return ""
    here = sum(code["runs_here"] for code in codes)
    return f"; {len(codes)} native codes, of which {here} can run here (with --trust only)"
