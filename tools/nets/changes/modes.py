"""Modes of calling the model of a scene, eagerly and compiled, and the comparison of both records."""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import graphc as gc
from graphc.base.difference import EXACT, Tolerance, difference, largest
from graphc.eager.dispatcher import references
from graphc.errors import GraphcError
from tools.nets.changes.scene import SEED, Arrays, Scene, staged, state_of, tensors_of
from tools.nets.run import DIFFERENT, EQUAL, FAILED, REFUSED, Outcome

Mutation = Callable[[Scene], Any]
"""Changes a scene; a generator prepares up to its first ``yield``, before the first call, and changes after it."""
CALLS = 2
"""Calls before the change, and after it: the second may take a shorter path than the first."""
RELATIVE, ABSOLUTE = 2e-4, 2e-5
"""Differences that rounding explains, where a part of a model is in f32 and values are around 1."""


class CallMode(NamedTuple):
    """A protocol of calls, and how the callable is made."""

    protocol: str
    """``gradients``, ``inference``, ``train``, ``step`` or ``export``."""
    make: Callable[[Scene], Callable[..., Any]]
    """Returns the callable that replaces the model."""


def _plain(scene: Scene) -> Callable[..., Any]:
    return lambda *args: scene.model(*args)


def _compiled(scene: Scene) -> Callable[..., Any]:
    return gc.compile(scene.model)


def _frozen(scene: Scene) -> Callable[..., Any]:
    return gc.compile(scene.model, freeze=True)


def _by_method(scene: Scene) -> Callable[..., Any]:
    scene.model.compile()
    return _plain(scene)


def _child(scene: Scene) -> Callable[..., Any]:
    scene.body.compile()
    return _plain(scene)


def _child_inside(scene: Scene) -> Callable[..., Any]:
    scene.body.compile()
    return gc.compile(scene.model)


def _function(scene: Scene) -> Callable[..., Any]:
    model = scene.model

    def function(*args: Any) -> Any:
        return model(*args)

    return gc.compile(function)


MODES = {
    "compile": CallMode("gradients", _compiled),
    "inference": CallMode("inference", _compiled),
    "freeze": CallMode("inference", _frozen),
    "method": CallMode("gradients", _by_method),
    "function": CallMode("gradients", _function),
    "child": CallMode("gradients", _child),
    "child_inside": CallMode("gradients", _child_inside),
    "train": CallMode("train", _compiled),
    "step": CallMode("step", _compiled),
    "export": CallMode("export", _compiled),
}


class Played(NamedTuple):
    """Results of a run, and the error that ended it."""

    record: Arrays
    changed: bool
    """Whether it came to the change."""
    error: Exception | None


def play(kind: str, mutation: Mutation, mode: CallMode, compiled: bool, still: bool = False) -> Played:
    """Call, change, call again; with ``still`` do everything but the change."""
    record: Arrays = {}
    stage = ["before"]
    with staged(kind) as scene, references():
        try:
            _play(scene, still_of(mutation) if still else mutation, mode, compiled, record, stage)
        except Exception as error:
            return Played(record, stage[0] == "after", error)
    return Played(record, True, None)


def still_of(mutation: Mutation) -> Mutation:
    """Return a mutation that prepares like the given one, but changes nothing."""

    def still(scene: Scene) -> Any:
        change = mutation(scene) if inspect.isgeneratorfunction(mutation) else iter([None])
        next(change)
        yield
        del change

    return still


def _play(scene: Scene, mutation: Mutation, mode: CallMode, compiled: bool, record: Arrays, stage: list[str]) -> None:
    """Run the protocol; ``stage`` holds its present stage, for errors."""
    change = mutation(scene) if inspect.isgeneratorfunction(mutation) else None
    if change is not None:
        next(change)
    if scene.optimizer is None:
        scene.prepare()
    gc.manual_seed(SEED)
    gc.set_grad_enabled(mode.protocol not in ("inference", "export"))
    call = _step(scene) if compiled and mode.protocol == "step" else (mode.make if compiled else _plain)(scene)
    for number in range(CALLS):
        _call(scene, mode, call, compiled, record, f"before {number}")
    stage[0] = "after"
    if change is None:
        mutation(scene)
    else:
        next(change, None)
    if mode.protocol == "export":
        _export(scene, compiled, record)
        return
    for number in range(CALLS):
        _call(scene, mode, call, compiled, record, f"after {number}")


def _step(scene: Scene) -> Callable[..., Any]:
    return gc.compile_step(scene.model, scene.loss, scene.optimizer)


def _call(scene: Scene, mode: CallMode, call: Callable[..., Any], compiled: bool, record: Arrays, prefix: str) -> None:
    """Call once in the protocol, and record the results and the state."""
    x = scene.next_input()
    args = (x, *scene.extra)
    scene.model.zero_grad()
    if mode.protocol == "step":
        loss = call(args, scene.target()) if compiled else _eager_step(scene, args)
        tensors_of(f"{prefix} loss", loss, record)
    else:
        output = call(*args)
        tensors_of(f"{prefix} output", output, record)
        if getattr(output, "requires_grad", False):
            (output * weights_like(output)).sum().backward()
        if x.grad is not None and mode.protocol != "step":
            record[f"{prefix} gradient of the input"] = np.array(x.grad.numpy(force=True))
        if mode.protocol == "train":
            scene.optimizer.step()
    if mode.protocol in ("train", "step"):
        if scene.scheduler is not None:
            scene.scheduler.step()
        _optimizer_state(scene, record, prefix)
    state_of(prefix, scene.model, mode.protocol != "step", record)


def _eager_step(scene: Scene, args: tuple[Any, ...]) -> Any:
    loss = scene.loss(scene.model(*args), scene.target())
    first = loss[0] if isinstance(loss, tuple) else loss
    first.backward()
    scene.optimizer.step()
    scene.model.zero_grad()
    return loss


def weights_like(output: Any) -> Any:
    """Return the factors of an output in the sum whose gradient is taken."""
    values = np.random.default_rng(5).uniform(0.5, 1.5, output.shape)
    return gc.tensor(values).to(output.dtype)


def _optimizer_state(scene: Scene, record: Arrays, prefix: str) -> None:
    for number, group in enumerate(scene.optimizer.param_groups):
        for index, param in enumerate(group["params"]):
            tensors_of(f"{prefix} state {number}.{index}", dict(scene.optimizer.state.get(param, {})), record)


def _export(scene: Scene, compiled: bool, record: Arrays) -> None:
    """Call the exported model for the first time after the change."""
    args = (scene.next_input().detach(), *scene.extra)
    if not compiled:
        tensors_of("after 0 output", scene.model(*args), record)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.gcm"
        gc.export(scene.model, *args, path=path)
        arrays = [a.numpy() for a in args if isinstance(a, gc.Tensor)]
        tensors_of("after 0 output", gc.load(path)(*arrays), record)


def judge(kind: str, mutation: Mutation, mode: CallMode) -> Outcome:
    """Play a change eagerly and compiled in a mode, and compare."""
    expected, compiled = play(kind, mutation, mode, False), play(kind, mutation, mode, True)
    difference = first_difference(expected.record, compiled.record, compiled.error is None and expected.error is None)
    if compiled.error is None and expected.error is not None:
        return Outcome(DIFFERENT, f"eager raises {_text(expected.error)}, compiled gives a value")
    if difference:
        return Outcome(DIFFERENT, difference)
    if compiled.error is None:
        return Outcome(EQUAL)
    if expected.error is not None and _alike(expected.error, compiled.error):
        return Outcome(EQUAL)
    when = "after the change" if compiled.changed else "before the change"
    return Outcome(REFUSED if isinstance(compiled.error, GraphcError) else FAILED, f"{when}: {_text(compiled.error)}")


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _alike(expected: Exception, actual: Exception) -> bool:
    """Return whether ``except`` that catches the first catches the second too."""
    return isinstance(actual, (type(expected), GraphcError))


def first_difference(expected: Arrays, actual: Arrays, complete: bool) -> str:
    """Describe the first difference; empty where there is none. ``complete`` demands equal numbers of records."""
    names = [name for name in expected if name in actual]
    missing = sorted({*expected, *actual} - set(names)) if complete else []
    if missing:
        who = "eager" if missing[0] in expected else "compiled"
        return f"{missing[0]}: only {who} has it"
    for name in names:
        a, b = expected[name], actual[name]
        allowed = Tolerance(RELATIVE, ABSOLUTE * max(1.0, largest(a)))
        apart = difference(name, b, a, allowed if a.dtype.kind in "fc" else EXACT, same_dtype=True)
        if not apart.is_within:
            return str(apart)
    return ""
