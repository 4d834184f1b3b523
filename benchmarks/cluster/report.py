"""Tables of measured and computed scaling: figures, checks of the model, and predictions for many ranks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import inf
from typing import Any

from benchmarks.cluster.bucket_plan import plan_of
from benchmarks.cluster.networks import Cost, Link, Network, errors, fit, interpolated
from benchmarks.cluster.step_model import Assumed, PaperRow, Plan, plain, scale, slower
from benchmarks.harness.results import OWN, cell, format_table

Row = Mapping[str, Any]
Measured = Mapping[str, Any]


def rows_of(measured: Measured, mode: str, peer: str = "") -> Iterator[Row]:
    """Yield the measurements of a kind that did not fail."""
    for row in measured["rows"]:
        if row["mode"] == mode and "problem" not in row and row["peer"] == (peer or row["peer"]):
            yield row


def times_of(row: Row) -> dict[int, float]:
    return {int(nbytes): min(rounds) for nbytes, rounds in row["seconds"].items()}


def plans_of(measured: Measured) -> dict[str, Plan]:
    """Return the recorded plans by case, each on the fewest ranks, at the speed of a rank alone."""
    plans: dict[str, Plan] = {}
    for row in sorted(rows_of(measured, "training", OWN), key=lambda r: r["ranks"]):
        if row["plan"] and row["case"] not in plans:
            plan = plan_of(row["case"], row["samples"], row["plan"])
            plans[row["case"]] = slower(plan, min(row["seconds"]["silent"]) / plan.seconds)
    return plans


@dataclass(frozen=True)
class Training:
    """A training step on several ranks: the fastest call of all rounds."""

    case: str
    peer: str
    ranks: int
    samples: int
    alone: float
    """Seconds of a step of one rank, while the others wait."""
    beside: float
    """Seconds of all ranks at once, without reductions."""
    parallel: float
    reduction: float
    """Seconds of the reductions alone."""

    @property
    def efficiency(self) -> float:
        """Return the samples per second of all ranks, over those of one times the number of ranks."""
        return self.alone / self.parallel

    @property
    def bound(self) -> float:
        """Return compute / (compute + reduction), with the time of one rank alone."""
        return self.alone / (self.alone + self.reduction)

    @property
    def rate(self) -> float:
        return self.ranks * self.samples / self.parallel


def trainings(measured: Measured) -> list[Training]:
    steps = []
    for row in rows_of(measured, "training"):
        best = {kind: min(row["seconds"][kind]) for kind in ("alone", "beside", "parallel", "reduction")}
        facts = row["case"], row["peer"], row["ranks"], row["samples"]
        steps.append(Training(*facts, **best))
    return steps


@dataclass(frozen=True)
class StepCheck:
    """Prediction of the model for a measured step, in seconds."""

    case: str
    ranks: int
    measured: float
    predicted: float
    """Prediction from the measured times of all-reduces."""
    fitted: float
    """Prediction from the line through those times on the fewest ranks."""


@dataclass(frozen=True)
class Checks:
    """The model beside the measurements."""

    local: Link
    """Link fitted to the times of rings on the fewest ranks."""
    ranks: int
    reductions: dict[int, dict[int, float]]
    """Relative errors of the model, by ranks and bytes."""
    steps: list[StepCheck]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def checked(measured: Measured) -> Checks:
    """Fit the model to the all-reduces on the fewest ranks, and compare it with all others and with steps."""
    reductions = {row["ranks"]: times_of(row) for row in rows_of(measured, "reductions", OWN) if row["ranks"] > 1}
    if not reductions:
        raise SystemExit("no all-reduce of several ranks was measured, which the model begins with")
    fewest = min(reductions)
    link = fit(reductions[fewest], fewest)
    costs = {ranks: _ring(link, ranks, fewest, measured["cores"]) for ranks in reductions}
    ring_errors = {ranks: errors(times, costs[ranks]) for ranks, times in reductions.items()}
    plans, steps = plans_of(measured), []
    for row in trainings(measured):
        if row.peer == OWN and row.case in plans and row.ranks in reductions:
            plan = slower(plans[row.case], row.beside / row.alone)
            measured_cost, line = interpolated(reductions[row.ranks]), costs[row.ranks]
            predicted, fitted = (plain(plan, cost, overlap=0.0).seconds for cost in (measured_cost, line))
            steps.append(StepCheck(row.case, row.ranks, row.parallel, predicted, fitted))
    return Checks(link, fewest, ring_errors, steps)


def _ring(link: Link, ranks: int, fewest: int, cores: int) -> Cost:
    """Return a ring in one machine, whose cores are shared where there are more ranks than on the run of the fit."""
    shared = max(1.0, ranks / cores) / max(1.0, fewest / cores)
    return Network(link.shared_by(shared), link, ranks).all_reduce(ranks)


Paper = Sequence[tuple[Assumed, Mapping[str, list[PaperRow]]]]
"""Assumptions, each with the rows of each case."""


def on_paper(measured: Measured, assumed: Sequence[Assumed]) -> Paper:
    """Return the rows of all cases whose plan is known."""
    plans = {case: plan for case, plan in plans_of(measured).items() if plan.buckets}
    return [(one, {case: scale(plan, one) for case, plan in plans.items()}) for one in assumed]


def paper_as_json(paper: Paper) -> list[dict[str, Any]]:
    return [
        {**asdict(assumed), "cases": {case: [asdict(row) for row in rows] for case, rows in cases.items()}}
        for assumed, cases in paper
    ]


# ---- text


def report(measured: Measured, checks: Checks, paper: Paper) -> str:
    note = measured.get("note", "")
    sections = [
        f"{measured['cpu']}, {measured['cores']} cores, each rank on one; {measured['rounds']} rounds. {note}".rstrip(),
        "## All-reduces",
        *_reductions(measured, checks),
        "## Training, measured",
        *_trainings(measured),
        "## The model and the measurements",
        *_checks(checks),
        "## On paper",
        *(text for one in paper for text in _paper(measured, *one)),
    ]
    problems = [
        f"{r['mode']} {r.get('case', '')} {r['peer']}: {r['problem']}" for r in measured["rows"] if "problem" in r
    ]
    return "\n\n".join([*sections, *problems])


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.4g}"


def _reductions(measured: Measured, checks: Checks) -> list[str]:
    rows = list(rows_of(measured, "reductions"))
    sizes = sorted({n for row in rows for n in times_of(row)})
    names = [f"{row['peer']}, {row['ranks']}" for row in rows]
    modelled = [f"model, {n}" for n in checks.reductions]
    lines = []
    for nbytes in sizes:
        seconds = [times_of(row).get(nbytes) for row in rows]
        off = [errors_.get(nbytes) for errors_ in checks.reductions.values()]
        cells = ["-" if t is None else _ms(t) for t in seconds] + [cell(e, "+.0%") for e in off]
        lines.append([f"{nbytes >> 10} KiB", *cells])
    link = checks.local
    said = (
        "Milliseconds by bytes and ranks, the best round. The last columns show the error of a ring over a link of "
        f"{_link_text(link)}, fitted to {checks.ranks} ranks."
    )
    return [said, format_table(["bytes", *names, *modelled], lines)]


def _trainings(measured: Measured) -> list[str]:
    heads = ["case", "ranks", "step of", "one rank ms", "beside ms", "parallel ms", "reduction ms", "samples/s"]
    heads += ["efficiency", "compute / (compute + reduction)", "of it"]
    lines = []
    for row in trainings(measured):
        times = [_ms(t) for t in (row.alone, row.beside, row.parallel, row.reduction)]
        shares = [f"{x:.1%}" for x in (row.efficiency, row.bound, row.efficiency / row.bound)]
        lines.append([row.case, str(row.ranks), row.peer, *times, f"{row.rate:.4g}", *shares])
    said = (
        "A step of one rank while the others wait (*one rank*), of all ranks at once without reductions (*beside*) and "
        "with them (*parallel*), and the reductions alone: the fastest call of all rounds, each on the slowest rank."
    )
    return [said, format_table(heads, lines)]


def _checks(checks: Checks) -> list[str]:
    heads = ["case", "ranks", "measured ms", "model ms", "off", "with the fitted link ms", "off"]
    lines = []
    for step in checks.steps:
        cells = [_ms(step.predicted), f"{step.predicted / step.measured - 1:+.1%}"]
        cells += [_ms(step.fitted), f"{step.fitted / step.measured - 1:+.1%}"]
        lines.append([step.case, str(step.ranks), _ms(step.measured), *cells])
    said = (
        "A rank has one core here, so a reduction and computing do not overlap (overlap 0). The model takes the "
        "recorded plan of the compiled step with free reductions, and slows it down by the measured factor of ranks "
        "that run at once."
    )
    return [said, format_table(heads, lines)]


def _paper(measured: Measured, assumed: Assumed, cases: Mapping[str, list[PaperRow]]) -> list[str]:
    local, remote, speed = assumed.network.local, assumed.network.remote, assumed.speed
    said = (
        f"Assumptions: ranks compute {speed:g} times as fast as a core here, {assumed.network.per_node} to a machine. "
        f"A machine has a link of {remote.bandwidth / 1e9:g} GB/s and {1e6 * remote.latency:g} µs; within a machine "
        f"{_link_text(local)}. Computing continues for {assumed.overlap:.0%} of the time of reductions. The table uses "
        "the better of ring and tree. *Exposed* is the time that computing waits."
    )
    plans, sections = plans_of(measured), [said]
    for case, rows in cases.items():
        plan = plans[case]
        sections.append(
            f"{case}: {plan.samples} samples and {_ms(plan.seconds / speed)} ms of computing per rank, "
            f"{len(plan.buckets)} buckets of {plan.nbytes / 1e6:.4g} MB together"
        )
        lines = [_paper_line(*pair) for pair in zip(rows[::2], rows[1::2], strict=True)]
        sections.append(format_table(_PAPER, lines))
    return sections


def _link_text(link: Link) -> str:
    text = f"{link.bandwidth / 1e9:.3g} GB/s and {1e6 * link.latency:.3g} µs"
    if link.cached < inf:
        text += f", and {link.beyond / 1e9:.3g} GB/s beyond {link.cached / (1 << 20):.3g} MiB"
    return text


_PAPER = ["ranks", "step ms", "efficiency", "exposed of communication ms", "ZeRO-1: step ms", "efficiency", "exposed"]


def _paper_line(first: PaperRow, zero: PaperRow) -> list[str]:
    cells = [str(first.ranks)]
    for row in (first, zero):
        waits = f"{_ms(row.exposed)} of {_ms(row.communication)} ({row.how})"
        cells += [_ms(row.seconds), f"{row.efficiency:.1%}", waits]
    return cells
