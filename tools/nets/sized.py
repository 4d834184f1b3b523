"""The net of sizes: random programs with named dimensions, compiled once, against eager mode at each size.

``python -m tools.nets.sized --seconds 60 --seed 1 --results sized.jsonl``. Values, gradients and buffers of one
compiled function at eight sizes (the hints, the least, the greatest, ones, sizes around vectors and tiles), of the
traced graph bound to these sizes, and of a model file. Outcome ``specialised``: right, by more than one program.
"""

from __future__ import annotations

import logging
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

import graphc
from graphc.base.sizes.named_dims import dimensions
from graphc.ir.graph.graph import input_class, input_path
from graphc.ir.graph.interpret import bind, evaluate
from tools.nets import compare, run
from tools.nets.families.table import FAMILIES_OF_SIZES, draw_sized
from tools.nets.program import Program, SizedProgram, as_array
from tools.nets.programs import cases_of, judge_drawn
from tools.nets.reduce import reduced

SPECIALISED = "specialised"
"""Right, but by more than one program: something was assumed of sizes, or there can be no program for all."""
FILES = 3
"""One program in this many goes through a model file, too."""
FIRST = 5
"""One program in this many is called with unexpected sizes first."""
_PER_SIZE = "is compiled for each size"


def judge(name: str) -> run.Outcome:
    """Draw the program of a name, run it at all sizes, and reduce it if it fails."""
    return judge_drawn(name, draw_sized, judged)


def judged(program: SizedProgram, number: int = 0) -> run.Outcome:
    """Compare a program at all sizes, and reduce it if it fails."""
    checks: list[Callable[[SizedProgram], compare.Verdict]] = [bound, compiled]
    if number % FILES == 0:
        checks.append(from_file)
    if number % FIRST == 0:
        program = program.only((2, 0, 1, *range(3, len(program.sizes))))
    if not _is_possible(program):
        return run.Outcome("dropped", "eager mode refuses it")
    last = run.Outcome(run.EQUAL)
    for check in checks:
        verdict = check(program)
        if verdict.outcome in run.BAD:
            small = reduced(
                program, lambda p, check=check, kind=verdict[:3]: bool(p.dims) and check(p)[:3] == kind, [_smaller]
            )
            return run.Outcome(verdict.outcome, f"{check(small).detail}\n{small.text()}")
        if verdict.outcome != run.EQUAL:
            last = run.Outcome(verdict.outcome, f"{verdict.stage}: {verdict.detail}\n{program.text()}")
    return last


def _is_possible(program: SizedProgram) -> bool:
    """Return whether eager mode takes it, at the first sizes at least."""
    with quiet():
        try:
            first = program.at(0)
            first.net(graphc)(*first.tensors(graphc))
        except Exception:
            return False
    return True


def _smaller(program: SizedProgram) -> Iterator[SizedProgram]:
    body, outputs = program.program.body, program.program.outputs
    if len(outputs) > 1:
        yield from (program.without(body, (name,)) for name in outputs)
    for i in range(len(body)):
        # A result of a statement before, where the last ones are not needed.
        names = [n.strip(" ,") for n in body[i].partition(" = ")[0].split(",") if n.strip().startswith("v")]
        if i + 1 < len(body) and names and "." not in names[0]:
            yield program.without(body[: i + 1], (names[0],))
    for i in range(len(body)):
        rest = (*body[:i], *body[i + 1 :])
        try:
            yield program.without(rest, outputs)
        except ValueError:
            continue
    count = len(program.sizes)
    if count > 1:
        yield from (program.only((n,)) for n in range(count))
        yield from (program.only((0, n)) for n in range(1, count) if count > 2)


# ---- the ways


@contextmanager
def quiet() -> Iterator[list[str]]:
    """Hide warnings of numpy and Python in the body; collect those of compiling."""
    logged: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: logged.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("graphc")
    logger.addHandler(handler)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            yield logged
    finally:
        logger.removeHandler(handler)


class _Way(NamedTuple):
    """A way to run a program at all its sizes, after one compilation or trace."""

    stage: str
    expected: Callable[[Program], compare.Record]
    """Returns what eager mode computes with the arguments of one of the sizes."""
    actual: Callable[[Program, dict[str, int]], compare.Record]
    holds: Callable[[dict[str, int]], bool] = lambda sizes: True
    """Returns whether the assumptions of the trace hold at the sizes."""


def _at_all_sizes(program: SizedProgram, way: _Way) -> compare.Verdict | None:
    """Return the verdict on the first of the sizes at which a way fails or differs."""
    for number, sizes in enumerate(program.sizes):
        plain = program.at(number)
        if not way.holds(sizes):
            continue
        try:
            expected = way.expected(plain)
        except Exception:
            continue  # compiled code may refuse a program that eager mode refuses at some size
        try:
            record = way.actual(plain, sizes)
        except Exception as error:
            return _failed(way.stage, sizes, error)
        if verdict := _compared(plain, way.stage, sizes, record, expected):
            return verdict
    return None


def _inference(net: Any, plain: Program) -> compare.Record:
    with graphc.no_grad():
        return _values(net(*plain.tensors(graphc, gradients=False)))


def _values(results: Any) -> compare.Record:
    return {f"value {i}": as_array(r) for i, r in enumerate(results)}


def compiled(program: SizedProgram) -> compare.Verdict:
    """Return one compiled function at all sizes: values, gradients, buffers."""
    with quiet() as logged:
        first = program.at(0)
        net, eager = first.net(graphc), first.net(graphc)
        state = {name: value.detach().clone() for name, value in net.state_dict().items()}
        call = graphc.compile(net, dims=program.named())

        def record(module: Any, function: Any, plain: Program) -> compare.Record:
            module.load_state_dict(state)
            return compare.values_and_gradients(plain, graphc, module, function, plain.tensors(graphc))

        way = _Way("compiled", lambda plain: record(eager, eager, plain), lambda plain, _: record(net, call, plain))
        if verdict := _at_all_sizes(program, way):
            return verdict
        if len(call.variants) > 1:
            return compare.Verdict(SPECIALISED, "compiled", "", _reasons(call, logged))
    return compare.Verdict(run.EQUAL)


def _reasons(call: Any, logged: Sequence[str]) -> str:
    """Return why there are several programs."""
    general = [t for t in logged if _PER_SIZE in t]
    assumed = [str(a) for t in call._traces for a in t.traced.assumptions.found.values()]
    return f"{len(call.variants)} programs; {'; '.join(dict.fromkeys(general + assumed)) or 'no reason'}"


def _all_hold(assumptions: Any, program: SizedProgram) -> Callable[[dict[str, int]], bool]:
    dims = dimensions(n for shape in program.named() for n in shape)
    return lambda sizes: all(a.holds({dims[n]: k for n, k in sizes.items()}) for a in assumptions)


def bound(program: SizedProgram) -> compare.Verdict:
    """Return the traced graph, bound to each of the sizes and interpreted."""
    with quiet():
        first = program.at(0)
        net = first.net(graphc)
        try:
            with graphc.no_grad():
                graph = graphc.trace(net, *first.tensors(graphc, gradients=False), dims=program.named())
        except Exception as error:
            return _failed("traced", program.sizes[0], error)

        def interpreted(plain: Program, sizes: dict[str, int]) -> compare.Record:
            fixed = bind(graph, {n: k for n, k in sizes.items() if n in graph.dims})
            inputs = iter([i.memory() for i in plain.inputs])
            arguments = [
                next(inputs) if input_class(v) == "input" else as_array(graph.bound[input_path(v)])
                for v in graph.inputs
            ]
            results = evaluate(fixed, arguments)[: len(plain.outputs)]
            return {f"value {i}": np.asarray(r) for i, r in enumerate(results)}

        way = _Way(
            "bound",
            lambda plain: _inference(first.net(graphc), plain),
            interpreted,
            _all_hold(graph.assumptions, program),
        )
        return _at_all_sizes(program, way) or compare.Verdict(run.EQUAL)


def from_file(program: SizedProgram) -> compare.Verdict:
    """Return a model file, written and loaded once, called at all sizes."""
    with quiet() as logged, tempfile.TemporaryDirectory() as folder:
        first = program.at(0)
        net, path = first.net(graphc).eval(), Path(folder) / "net.gcm"
        eager = first.net(graphc).eval()
        try:
            examples = first.tensors(graphc, gradients=False)
            manifest = graphc.export(net, *examples, path=path, dims=program.named())
            model = graphc.load(path)
        except Exception as error:
            return _failed("file", program.sizes[0], error)
        way = _Way(
            "file",
            lambda plain: _inference(eager, plain),
            lambda plain, _: _values(model(*plain.tensors(graphc, gradients=False))),
            _all_hold(manifest.assumptions, program),
        )
        if verdict := _at_all_sizes(program, way):
            return verdict
        if why := [t for t in logged if _PER_SIZE in t]:
            return compare.Verdict(SPECIALISED, "file", "", why[0])
    return compare.Verdict(run.EQUAL)


def _failed(stage: str, sizes: dict[str, int], error: Exception) -> compare.Verdict:
    verdict = compare.failure_of(stage, error)
    return verdict._replace(detail=f"{verdict.detail} at {sizes}")


def _compared(
    plain: Program, stage: str, sizes: dict[str, int], record: compare.Record, expected: compare.Record
) -> compare.Verdict | None:
    """Return a verdict where two records differ by more than rounding."""
    try:
        compare.differ(record, expected, compare.precision_of(plain))
    except compare.Mismatch as mismatch:
        mode = "compiled" if stage == "compiled" else "inference"
        if mismatch.what == "value" and compare.is_spread(plain, mode, record, expected):
            return None
        if mismatch.what == "value" and _is_unsure(plain, mode, record, expected):
            return compare.Verdict("ill-conditioned", stage, "", str(mismatch))
        kind = f"{stage} {mismatch.label.split()[0]} {mismatch.what}"
        return compare.Verdict(run.DIFFERENT, stage, kind, f"{kind}: {mismatch} at {sizes}")
    return None


def _is_unsure(plain: Program, mode: str, actual: compare.Record, expected: compare.Record) -> bool:
    """Return whether both differ from PyTorch's numbers by as little as these change when inputs are rounded another
    way."""
    try:
        theirs = compare.recorded(plain, torch, mode)
    except Exception:
        return False
    return all(compare.is_unsure(plain, mode, record, theirs) for record in (actual, expected))


NET = run.Net("sized", (__doc__ or "").partition("\n")[0], cases_of(FAMILIES_OF_SIZES), judge)

if __name__ == "__main__":
    sys.exit(run.main(NET))
