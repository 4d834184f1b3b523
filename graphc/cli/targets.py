"""TARGET arguments: ``file.py:Name`` or ``package.module:Name`` to a model that can be traced."""

from __future__ import annotations

import argparse
import difflib
import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from graphc.base.dtypes import BY_NAME
from graphc.base.errors import ArgumentError, ArtifactError, GraphcError, RealtimeError, StateDictError, TargetError
from graphc.base.sizes.dims import has_sizes
from graphc.checkpoints.weights import weights_for
from graphc.cli.arrays import parse_types, specs_at
from graphc.cli.console import CompileFailure, UsageError, UserCodeError, say
from graphc.codegen.machine.costs import DEFAULT, Costs
from graphc.files.manifest import TensorSpec
from graphc.ir.graph.graph import Graph
from graphc.nn.module import Module
from graphc.passes.base import Pass, PassResult, with_costs
from graphc.passes.pipeline import Arranged, arrange
from graphc.tensors.creation import from_numpy

_LISTED = 8
FORMS = (
    "file.py:Name or package.module:Name, where Name is a Module class, an instance, or a function; "
    "or a .pt2 or .onnx file"
)

PASS_FORMS = "file.py:Name or package.module:Name, where Name is a pass, its class, or a list of passes"


def is_target(text: str) -> bool:
    """Whether an argument is ``place:Name`` and not the path of an existing file."""
    place, colon, name = text.rpartition(":")
    return bool(colon and place and name) and not Path(text).exists()


def resolve(text: str) -> Callable[..., Any]:
    """The model that TARGET names: a Module (classes and factories are called without arguments), or a function of
    tensors. Raises TargetError when there is none, UserCodeError when the user's code raises."""
    place, colon, name = text.rpartition(":")
    if not colon or not place or not name:
        remedy = f"{text}:Name, with the name of a Module class" if text.endswith(".py") else FORMS
        raise TargetError(f"{text!r} names no model", remedy=remedy)
    return _build(_named(_import(place), text), text)


def resolve_passes(texts: Sequence[str], beside: str = "") -> Arranged:
    """The passes that ``--passes`` names: each ``place:Name`` is a pass, a class that makes one without arguments, or a
    list of both. A file that also holds the model, the target ``beside``, has been run by then and is not run again.

    Raises TargetError where there is none, UsageError for what is no pass, UserCodeError."""
    found: list[Any] = []
    for text in texts:
        place, _, name = text.rpartition(":")
        if not place or not name:
            raise TargetError(f"{text!r} names no passes", remedy=PASS_FORMS)
        known = place.endswith(".py") and place == beside.rpartition(":")[0]
        named = _named(sys.modules[_module_name(Path(place))] if known else _import(place), text)
        for one in named if isinstance(named, (list, tuple)) else (named,):
            found.append(guarded(one, f"making {text}") if inspect.isclass(one) else one)
    try:
        arrange(found)
    except ArgumentError as error:
        raise UsageError(f"--passes: {error.what}", remedy=error.remedy) from None
    return arrange([_Guarded.of(one) for one in found])


@dataclass(frozen=True)
class _Guarded:
    """A pass of a user: needs, does and leaves what that does. What it raises and prints is user code's."""

    name: str
    after: str
    costs: Costs
    step: Pass

    @staticmethod
    def of(step: Pass) -> _Guarded:
        return _Guarded(step.name, getattr(step, "after", ""), getattr(step, "costs", DEFAULT), step)

    def run(self, graph: Graph) -> PassResult:
        return guarded(partial(with_costs(self.step, self.costs).run, graph), "run")


def _named(module: ModuleType, text: str) -> Any:
    """What ``place:Name`` names in the module of that place."""
    place, _, name = text.rpartition(":")
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise TargetError(f"{place} has no {name!r}", remedy=_suggest(module))
        found = getattr(found, part)
    return found


def _import(place: str) -> ModuleType:
    return _import_file(Path(place)) if place.endswith(".py") else _import_module(place)


def _module_name(path: Path) -> str:
    """The name under which the module of a file is known."""
    return f"graphc_target_{path.stem}"


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise TargetError(f"there is no file {str(path)!r}", remedy=FORMS)
    name = _module_name(path)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise TargetError(f"{str(path)!r} cannot be imported", remedy=FORMS)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.resolve().parent))
    guarded(lambda: spec.loader.exec_module(module), f"importing {path}")  # type: ignore[union-attr]
    return module


def _import_module(name: str) -> ModuleType:
    if not all(part.isidentifier() for part in name.split(".")):
        raise TargetError(f"{name!r} is no module name", remedy=FORMS)
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return guarded(lambda: importlib.import_module(name), f"importing {name}")
    except UserCodeError as error:
        cause = error.__cause__
        if isinstance(cause, ModuleNotFoundError) and cause.name and name.startswith(cause.name):
            raise TargetError(f"there is no module {cause.name!r}", remedy=FORMS) from cause
        raise


def guarded(run: Callable[[], Any], doing: str) -> Any:
    """Runs user code; what it raises, graphc's own errors aside, becomes a UserCodeError that names the line.

    What it prints goes to stderr, since stdout is for the command's data.
    """
    try:
        with redirect_stdout(sys.stderr):
            return run()
    except GraphcError:
        raise
    # NOTE: code of the user raises what it likes.
    except Exception as error:
        what = f"{doing}: {type(error).__name__}: {error}"
        raise UserCodeError(what, origin=_place_of(error), remedy=_spelling(error)) from error


@contextmanager
def compiling() -> Iterator[None]:
    """Turns errors of tracing and compiling into CompileFailure, so that they are told from errors of a call."""
    try:
        yield
    except (ArtifactError, RealtimeError, TargetError, UserCodeError, UsageError):
        raise
    except GraphcError as error:
        raise CompileFailure(error.what, where=error.where, origin=error.origin, remedy=error.remedy) from error


def _spelling(error: Exception) -> str | None:
    """The name that was meant by an attribute that does not exist."""
    if not isinstance(error, AttributeError) or not error.name or error.obj is None:
        return None
    return next(iter(difflib.get_close_matches(error.name, dir(error.obj), 1)), None)


def _place_of(error: Exception) -> str | None:
    """File and line of the last frame outside of graphc and the standard import machinery."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    package = str(Path(__file__).resolve().parents[1])
    place = None
    trace = error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith((package, "<frozen")):
            place = f"{file}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


def _suggest(module: ModuleType) -> str:
    names = [n for n, v in vars(module).items() if isinstance(v, type) and issubclass(v, Module) and v is not Module]
    own = [n for n in names if vars(module)[n].__module__ == module.__name__]
    return f"it has {', '.join(own or names)}" if names else FORMS


def _build(found: Any, text: str) -> Callable[..., Any]:
    if isinstance(found, Module):
        return found
    if not callable(found):
        raise TargetError(f"{text} is a {type(found).__name__}, which cannot be traced", remedy=FORMS)
    needed = _required(found)
    if isinstance(found, type):
        if not issubclass(found, Module):
            raise TargetError(f"{text} is no Module class", remedy=FORMS)
        if needed:
            what = ", ".join(needed)
            raise TargetError(
                f"{text} needs arguments ({what})", remedy="a function without arguments that returns one"
            )
    elif needed:
        return found
    model = guarded(found, f"building {text}")
    if not callable(model):
        raise TargetError(f"{text}() returned a {type(model).__name__}, which cannot be traced", remedy=FORMS)
    return model


def _required(function: Callable[..., Any]) -> list[str]:
    """Names of the positional parameters that have no default."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [p.name for p in parameters if p.kind in kinds and p.default is p.empty]


def examples(model: Callable[..., Any], texts: Sequence[str]) -> tuple[list[Any], Any]:
    """Example tensors (zeros, of the expected sizes) and whole numbers in the order of the model's parameters, from
    ``--input`` types, and the shapes with named dimensions, None where there are none.

    Raises UsageError for a name that ``forward`` does not have, one given twice, and one that is missing.
    """
    specs = parse_types(texts)
    function = model.forward if isinstance(model, Module) else model
    names = _positional(function)
    order = names or [s.name for s in specs]
    given: dict[str, TensorSpec] = {}
    for spec in specs:
        if spec.name not in order:
            raise UsageError(f"the model has no input {spec.name!r}", remedy=f"one of {', '.join(order)}")
        if spec.name in given:
            raise UsageError(f"--input {spec.name!r} is given twice")
        given[spec.name] = spec
    last = max((order.index(n) for n in [*given, *_required(function)] if n in order), default=-1)
    missing = [n for n in order[: last + 1] if n not in given]
    if missing:
        raise UsageError(f"no type for input {missing[0]!r}", remedy=f"--input {missing[0]}:f32[1,28]")
    found = [given[n] for n in order[: last + 1]]
    made = [_example(s) for s in specs_at(found, {})]
    dims = [s.shape if s.equals is None else s.equals for s in found]
    return made, dims if any(has_sizes(s.pattern) for s in found) else None


def _example(spec: TensorSpec) -> Any:
    """Zeros, or of a whole number that is a size this."""
    if spec.equals is not None:
        return spec.equals
    return from_numpy(np.zeros(spec.shape, BY_NAME[spec.dtype].numpy))


def _positional(function: Callable[..., Any]) -> list[str]:
    """Names of the positional parameters; empty when there may be any number of them."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return []
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return []
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


def load_weights(model: Callable[..., Any], options: argparse.Namespace) -> None:
    """Copies the weights that ``--weights`` names into a module, and says what was found in the file.

    Raises StateDictError when they do not fit (with ``--no-strict`` names that only one of the two has are left out),
    ArtifactError for a damaged file, FileNotFoundError."""
    if not isinstance(model, Module):
        raise UsageError("--weights needs a Module, the target is a function")
    if not Path(options.weights).exists():
        raise FileNotFoundError(2, "no such file", options.weights)
    found = weights_for(model, options.weights, options.weights_entry)
    for note in found.notes:
        say(f"note: {note}")
    try:
        keys = model.load_state_dict(found.state, strict=not options.no_strict)
    except StateDictError as error:
        error.remedy = error.remedy and "--no-strict takes what fits by name"
        raise
    _say_names(options.weights, "names that only the model has stay as constructed", keys.missing_keys)
    _say_names(options.weights, "names that only the file has are left out", keys.unexpected_keys)


def _say_names(path: str, what: str, names: Sequence[str]) -> None:
    if names:
        more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
        say(f"note: {path}: {what}: {', '.join(map(repr, names[:_LISTED]))}{more}")


def is_random(text: str, model: Any) -> bool:
    """Whether TARGET names what made ``model``, a module with parameters, and not the module itself."""
    place, _, name = text.rpartition(":")
    if not isinstance(model, Module) or not name or next(model.parameters(), None) is None:
        return False
    module = sys.modules.get(_module_name(Path(place)) if place.endswith(".py") else place)
    return module is not None and _named(module, text) is not model
