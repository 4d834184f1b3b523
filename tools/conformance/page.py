"""The table of conformance, as lines for a terminal and as a page of the docs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from tools.conformance import functions, layers, operators, optimizers

_COLUMNS = {
    "operators": operators.COLUMNS,
    "layers": layers.COLUMNS,
    "optimizers": optimizers.COLUMNS,
    "functions": functions.COLUMNS,
}
_SOURCES = {
    "operators": "`op_db` of `torch.testing._internal.common_methods_invocations`",
    "layers": "`module_db` of `torch.testing._internal.common_modules`",
    "optimizers": "`optim_db` of `torch.testing._internal.common_optimizers`",
    "functions": "`umath-validation-set-*.csv` of numpy",
}


def summary(found: dict[str, Any]) -> list[str]:
    """One line for each column, and for each table."""
    lines = []
    for suite, column, subjects, _, passed, failed, left_out in _totals(found):
        share = 100 * passed / max(passed + failed, 1)
        ran = f"{subjects} subjects: {passed} of {passed + failed} samples ({share:.2f}%)"
        lines.append(f"{suite} {column}, {ran}, {left_out} left out")
    for suite, standing in found["standing"].items():
        missing = [n for n, s in standing.items() if s == "missing"]
        mapped = sum(s == "mapped" for s in standing.values())
        lines.append(f"{suite}: {mapped} mapped, {len(missing)} missing of {len(standing)}: {' '.join(missing)}")
    return lines


def _totals(found: dict[str, Any]) -> Iterator[tuple[str, str, int, str, int, int, int]]:
    """Table, column, subjects of which a sample was compared, most samples of each, passed, failed, left out."""
    for suite, column in dict.fromkeys((r["suite"], r["column"]) for r in found["rows"]):
        rows = [r for r in found["rows"] if (r["suite"], r["column"]) == (suite, column)]
        passed, failed = sum(r["passed"] for r in rows), sum(len(r["failed"]) for r in rows)
        most = " or ".join(sorted({"all" if r["most"] is None else str(r["most"]) for r in rows}))
        compared = sum(1 for r in rows if r["passed"] or r["failed"])
        yield suite, column, compared, most, passed, failed, sum(n for r in rows for n in r["excluded"].values())


def page(found: dict[str, Any]) -> str:
    """The page docs/conformance.md of a run."""
    first, *later = found["commits"]
    states = first + (f", and of what was mended since at {' and '.join(later)}," if later else "")
    lines = [
        "# Conformance",
        "",
        "The front end beside PyTorch 2.13 by the tables with which PyTorch tests itself, and beside numpy's tables of",
        "correctly rounded functions. Written by `python -m tools.conformance --all --write docs/conformance.md`;",
        f"this is a run at {states} with samples of seed {found['seed']}, of each subject at most as",
        "many as its column says. Subjects that do not count in a column have no sample there: no gradient, no",
        "wrong call, no such element type.",
        "",
        "| table | column | subjects | of each | passed | of | share | left out |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for suite, column, subjects, most, passed, failed, left_out in _totals(found):
        share = 100 * passed / max(passed + failed, 1)
        text = _COLUMNS[suite][column]
        figures = f"{passed} | {passed + failed} | {share:.2f}% | {left_out}"
        lines.append(f"| {suite} | {text} | {subjects} | {most} | {figures} |")
    lines += [
        "",
        "Tolerances are those of `torch.testing`, or what the table states for an operator. A result in f32 beyond",
    ]
    lines += [
        "them passes where it is no farther from the result in f64 than PyTorch's own is, or within them of it.",
        "Gradients of a matrix that is taken as symmetric or triangular are compared as PyTorch's table checks them:",
        "as gradients of what such a matrix was computed of, since those of PyTorch may have parts in both triangles.",
        "",
    ]
    lines += _subjects(found) + _left_out(found) + _failures(found)
    return "\n".join(lines) + "\n"


def _subjects(found: dict[str, Any]) -> list[str]:
    lines = [
        "## Subjects",
        "",
        "| table | source | entries | mapped | left out | missing |",
        "|---|---|---|---|---|---|",
    ]
    for suite, standing in found["standing"].items():
        count = Counter("left out" if s not in ("mapped", "missing") else s for s in standing.values())
        figures = " | ".join(str(n) for n in (len(standing), count["mapped"], count["left out"], count["missing"]))
        lines.append(f"| {suite} | {_SOURCES[suite]} | {figures} |")
    lines += ["", "| reason | left out |", "|---|---|"]
    reasons: dict[str, list[str]] = {}
    for standing in found["standing"].values():
        for name, state in standing.items():
            if state not in ("mapped", "missing"):
                reasons.setdefault(state, []).append(name)
    lines += [f"| {reason} | {_names(names)} |" for reason, names in reasons.items()]
    missing = [n for standing in found["standing"].values() for n, s in standing.items() if s == "missing"]
    return [*lines, *(["", f"Missing: {_names(missing)}."] if missing else []), ""]


def _names(names: list[str]) -> str:
    return ", ".join(f"`{n}`" for n in names)


def _left_out(found: dict[str, Any]) -> list[str]:
    count: Counter[str] = Counter()
    for row in found["rows"]:
        count.update(row["excluded"])
    lines = ["## Samples that are no calls of graphc", "", "| reason | samples |", "|---|---|"]
    return [*lines, *(f"| {reason} | {n} |" for reason, n in count.most_common()), ""]


def _failures(found: dict[str, Any]) -> list[str]:
    rows = [r for r in found["rows"] if r["failed"]]
    if not rows:
        return ["## What differs", "", "Nothing."]
    lines = ["## What differs", "", "| table | subject | column | samples | the first |", "|---|---|---|---|---|"]
    for r in rows:
        first = r["failed"][0].replace("|", "/")[:200]
        lines.append(f"| {r['suite']} | `{r['subject']}` | {r['column']} | {len(r['failed'])} | {first} |")
    return lines
