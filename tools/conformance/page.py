"""The table of conformance, as lines for a terminal and as a page of the docs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from tools.conformance import functions, layers, operators, optimizers, singular

_COLUMNS = {
    "operators": operators.COLUMNS,
    "layers": layers.COLUMNS,
    "optimizers": optimizers.COLUMNS,
    "functions": functions.COLUMNS,
    "singular": singular.COLUMNS,
}
_SOURCES = {
    "operators": "`op_db` of `torch.testing._internal.common_methods_invocations`",
    "layers": "`module_db` of `torch.testing._internal.common_modules`",
    "optimizers": "`optim_db` of `torch.testing._internal.common_optimizers`",
    "functions": "`umath-validation-set-*.csv` of numpy",
    "singular": "`tools/nets/forms.py` and `tests/distributions/cases.py`, at singular points",
}


def summary(results: dict[str, Any]) -> list[str]:
    """Return one line for each column, and for each table."""
    lines = []
    for suite, column, subjects, _, passed, failed, left_out in _totals(results):
        share = 100 * passed / max(passed + failed, 1)
        ran = f"{subjects} subjects: {passed} of {passed + failed} samples ({share:.2f}%)"
        lines.append(f"{suite} {column}, {ran}, {left_out} left out")
    for suite, standing in results["standing"].items():
        missing = [n for n, s in standing.items() if s == "missing"]
        mapped = sum(s == "mapped" for s in standing.values())
        lines.append(f"{suite}: {mapped} mapped, {len(missing)} missing of {len(standing)}: {' '.join(missing)}")
    return lines


def _totals(results: dict[str, Any]) -> Iterator[tuple[str, str, int, str, int, int, int]]:
    """Yield table, column, number of subjects with a compared sample, most samples of each, passed, failed, left
    out."""
    for suite, column in dict.fromkeys((r["suite"], r["column"]) for r in results["rows"]):
        rows = [r for r in results["rows"] if (r["suite"], r["column"]) == (suite, column)]
        passed, failed = sum(r["passed"] for r in rows), sum(len(r["failed"]) for r in rows)
        most = " or ".join(sorted({"all" if r["most"] is None else str(r["most"]) for r in rows}))
        compared = sum(1 for r in rows if r["passed"] or r["failed"])
        yield suite, column, compared, most, passed, failed, sum(n for r in rows for n in r["excluded"].values())


def page(results: dict[str, Any]) -> str:
    """Return the page docs/conformance.md of a run."""
    first, *later = results["commits"]
    states = first + (f" (fixes since: {', '.join(later)})" if later else "")
    lines = [
        "# Conformance",
        "",
        "This page compares graphc with PyTorch 2.13 by PyTorch's own test tables, and with numpy's tables of",
        "correctly rounded functions. `python -m tools.conformance --all --write docs/conformance.md` writes it.",
        "",
        f"- Commit {states}; samples of seed {results['seed']}.",
        "- The column *of each* limits the samples of each subject.",
        "- A column counts a subject only if it has a sample: a gradient, a wrong call, or such an element type.",
        "",
        "| table | column | subjects | of each | passed | of | share | left out |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for suite, column, subjects, most, passed, failed, left_out in _totals(results):
        share = 100 * passed / max(passed + failed, 1)
        text = _COLUMNS[suite][column]
        figures = f"{passed} | {passed + failed} | {share:.2f}% | {left_out}"
        lines.append(f"| {suite} | {text} | {subjects} | {most} | {figures} |")
    lines += [
        "",
        "Tolerances come from `torch.testing`, or from the table for an operator. A result in f32 beyond them",
        "passes if it is at least as close to the result in f64 as PyTorch's own, or within the tolerance of it.",
        "Gradients of a symmetric or triangular matrix are compared as PyTorch's table checks them: with respect to",
        "the matrix from which it was computed, since PyTorch's may have entries in both triangles.",
        "",
    ]
    lines += _subjects(results) + _left_out(results) + _failures(results)
    return "\n".join(lines) + "\n"


def _subjects(results: dict[str, Any]) -> list[str]:
    lines = [
        "## Subjects",
        "",
        "| table | source | entries | mapped | left out | missing |",
        "|---|---|---|---|---|---|",
    ]
    for suite, standing in results["standing"].items():
        count = Counter("left out" if s not in ("mapped", "missing") else s for s in standing.values())
        figures = " | ".join(str(n) for n in (len(standing), count["mapped"], count["left out"], count["missing"]))
        lines.append(f"| {suite} | {_SOURCES[suite]} | {figures} |")
    lines += ["", "| reason | left out |", "|---|---|"]
    reasons: dict[str, list[str]] = {}
    for standing in results["standing"].values():
        for name, state in standing.items():
            if state not in ("mapped", "missing"):
                reasons.setdefault(state, []).append(name)
    lines += [f"| {reason} | {_names(names)} |" for reason, names in reasons.items()]
    missing = [n for standing in results["standing"].values() for n, s in standing.items() if s == "missing"]
    return [*lines, *(["", f"Missing: {_names(missing)}."] if missing else []), ""]


def _names(names: list[str]) -> str:
    return ", ".join(f"`{n}`" for n in names)


def _left_out(results: dict[str, Any]) -> list[str]:
    count: Counter[str] = Counter()
    for row in results["rows"]:
        count.update(row["excluded"])
    lines = ["## Excluded samples", "", "| reason | samples |", "|---|---|"]
    return [*lines, *(f"| {reason} | {n} |" for reason, n in count.most_common()), ""]


def _failures(results: dict[str, Any]) -> list[str]:
    rows = [r for r in results["rows"] if r["failed"]]
    if not rows:
        return ["## Differences", "", "Nothing."]
    lines = ["## Differences", "", "| table | subject | column | samples | the first |", "|---|---|---|---|---|"]
    for r in rows:
        first = r["failed"][0].replace("|", "/")[:200]
        lines.append(f"| {r['suite']} | `{r['subject']}` | {r['column']} | {len(r['failed'])} | {first} |")
    return lines
