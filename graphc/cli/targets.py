"""TARGET arguments: resolve ``file.py:Name`` or ``package.module:Name`` to a model that can be traced."""

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
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from graphc.base.dtypes import BY_NAME
from graphc.base.errors import ArgumentError, ArtifactError, GraphcError, RealtimeError, StateDictError, TargetError
from graphc.base.lazy import deferred
from graphc.base.records import dataclass
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
from graphc.tracing.dims import Dims

by_name = deferred("graphc.cli.arguments:by_name")
_LISTED = 8
FORMS = (
    "file.py:Name or package.module:Name, where Name is a Module class, an instance, or a function; "
    "or a .pt2, .onnx or .mlir file"
)

PASS_FORMS = "file.py:Name or package.module:Name, where Name is a pass, its class, or a list of passes"


def is_target(text: str) -> bool:
    """Check whether an argument is ``origin:Name`` and not the path of an existing file."""
    origin, colon, name = text.rpartition(":")
    return bool(colon and origin and name) and not Path(text).exists()


def resolve(text: str) -> Callable[..., Any]:
    """Return the model that TARGET names: a Module, or a function of tensors.

    Module classes and factories are called without arguments. Raises TargetError for an unknown name, UserCodeError if
    the user's code raises.
    """
    origin, colon, name = text.rpartition(":")
    if not colon or not origin or not name:
        remedy = f"write {text}:Name with the name of a Module class" if text.endswith(".py") else f"write {FORMS}"
        raise TargetError(f"{text!r} names no model", remedy=remedy)
    return _build(_named(_import(origin), text), text)


def resolve_passes(texts: Sequence[str], model_target: str = "") -> Arranged:
    """Return the passes that ``--passes`` names.

    Each ``origin:Name`` is a pass, a class that can be called without arguments to make one, or a list of both. A file
    that also holds the model (``model_target``) has already been imported and is not imported again.

    Raises TargetError for an unknown name, UsageError for any other object, UserCodeError.
    """
    passes: list[Any] = []
    for text in texts:
        origin, _, name = text.rpartition(":")
        if not origin or not name:
            raise TargetError(f"{text!r} names no passes", remedy=f"write {PASS_FORMS}")
        is_imported = origin.endswith(".py") and origin == model_target.rpartition(":")[0]
        named = _named(sys.modules[_module_name(Path(origin))] if is_imported else _import(origin), text)
        for step in named if isinstance(named, (list, tuple)) else (named,):
            passes.append(guarded(step, f"making {text}") if inspect.isclass(step) else step)
    try:
        arrange(passes)
    except ArgumentError as error:
        raise UsageError(f"--passes: {error.what}", remedy=error.remedy) from None
    return arrange([_GuardedPass.of(step) for step in passes])


@dataclass(frozen=True)
class _GuardedPass:
    """The user's pass, run so that its errors are reported as user code's and its prints go to stderr."""

    name: str
    after: str
    costs: Costs
    step: Pass

    @staticmethod
    def of(step: Pass) -> _GuardedPass:
        return _GuardedPass(step.name, getattr(step, "after", ""), getattr(step, "costs", DEFAULT), step)

    def run(self, graph: Graph) -> PassResult:
        return guarded(partial(with_costs(self.step, self.costs).run, graph), "run")


def _named(module: ModuleType, text: str) -> Any:
    """Return the object that ``origin:Name`` names in the module of that origin."""
    origin, _, name = text.rpartition(":")
    value: Any = module
    for attribute in name.split("."):
        if not hasattr(value, attribute):
            raise TargetError(f"{origin} has no {name!r}", remedy=_suggest(module))
        value = getattr(value, attribute)
    return value


def _import(origin: str) -> ModuleType:
    return _import_file(Path(origin)) if origin.endswith(".py") else _import_module(origin)


def _module_name(path: Path) -> str:
    """Return the name in ``sys.modules`` of a module imported from a file."""
    return f"graphc_target_{path.stem}"


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise TargetError(f"there is no file {str(path)!r}", remedy=f"write {FORMS}")
    name = _module_name(path)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise TargetError(f"{str(path)!r} cannot be imported", remedy=f"write {FORMS}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.resolve().parent))
    guarded(lambda: spec.loader.exec_module(module), f"importing {path}")  # type: ignore[union-attr]
    return module


def _import_module(name: str) -> ModuleType:
    if not all(word.isidentifier() for word in name.split(".")):
        raise TargetError(f"{name!r} is not a module name", remedy=f"write {FORMS}")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return guarded(lambda: importlib.import_module(name), f"importing {name}")
    except UserCodeError as error:
        cause = error.__cause__
        if isinstance(cause, ModuleNotFoundError) and cause.name and name.startswith(cause.name):
            raise TargetError(f"there is no module {cause.name!r}", remedy=f"write {FORMS}") from cause
        raise


def guarded(run: Callable[[], Any], doing: str) -> Any:
    """Run user code; an error other than graphc's own becomes a UserCodeError that names the line.

    Its prints go to stderr, since stdout is for the command's data.
    """
    try:
        with redirect_stdout(sys.stderr):
            return run()
    except GraphcError:
        raise
    # NOTE: user code can raise anything.
    except Exception as error:
        what = f"{doing}: {type(error).__name__}: {error}"
        raise UserCodeError(what, origin=_location_of(error), remedy=_spelling(error)) from error


@contextmanager
def compiling() -> Iterator[None]:
    """Turn errors of tracing and compiling into CompileFailure, to tell them from errors of a call."""
    try:
        yield
    except (ArtifactError, RealtimeError, TargetError, UserCodeError, UsageError):
        raise
    except GraphcError as error:
        raise CompileFailure(error.what, where=error.where, origin=error.origin, remedy=error.remedy) from error


def _spelling(error: Exception) -> str | None:
    """Suggest the attribute closest to the one missing in an AttributeError."""
    if not isinstance(error, AttributeError) or not error.name or error.obj is None:
        return None
    match = next(iter(difflib.get_close_matches(error.name, dir(error.obj), 1)), None)
    return f"write {match}" if match else None


def _location_of(error: Exception) -> str | None:
    """Return file and line of the last frame outside of graphc and the import machinery."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    package = str(Path(__file__).resolve().parents[1])
    location = None
    trace = error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith((package, "<frozen")):
            location = f"{file}:{trace.tb_lineno}"
        trace = trace.tb_next
    return location


def _suggest(module: ModuleType) -> str:
    names = [n for n, v in vars(module).items() if isinstance(v, type) and issubclass(v, Module) and v is not Module]
    own = [n for n in names if vars(module)[n].__module__ == module.__name__]
    return f"choose one of {', '.join(own or names)}" if names else f"write {FORMS}"


def _build(named: Any, text: str) -> Callable[..., Any]:
    if isinstance(named, Module):
        return named
    if not callable(named):
        raise TargetError(f"{text} is a {type(named).__name__}, which cannot be traced", remedy=f"write {FORMS}")
    needed = _required(named)
    if isinstance(named, type):
        if not issubclass(named, Module):
            raise TargetError(f"{text} is not a Module class", remedy=f"write {FORMS}")
        if needed:
            what = ", ".join(needed)
            raise TargetError(
                f"{text} needs arguments ({what})", remedy="name a function without arguments that returns a model"
            )
    elif needed:
        return named
    model = guarded(named, f"building {text}")
    if not callable(model):
        raise TargetError(
            f"{text}() returned a {type(model).__name__}, which cannot be traced", remedy=f"write {FORMS}"
        )
    return model


def _required(function: Callable[..., Any]) -> list[str]:
    """Return the names of the positional parameters without a default."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [p.name for p in parameters if p.kind in kinds and p.default is p.empty]


def examples(model: Callable[..., Any], texts: Sequence[str]) -> tuple[list[Any], Any]:
    """Return example inputs in the order of the model's parameters, and their shapes if some have named dimensions.

    ``texts`` are ``--input`` types. Tensors are zeros of the expected sizes; integers are sizes. Raises UsageError for
    a name that ``forward`` does not have, one given twice, and a missing one.
    """
    specs = parse_types(texts)
    function = model.forward if isinstance(model, Module) else model
    names = _positional(function)
    order = names or [s.name for s in specs]
    specs_by_name: dict[str, TensorSpec] = {}
    for spec in specs:
        if spec.name not in order:
            raise UsageError(f"the model has no input {spec.name!r}", remedy=f"choose one of {', '.join(order)}")
        if spec.name in specs_by_name:
            raise UsageError(f"--input {spec.name!r} is given twice")
        specs_by_name[spec.name] = spec
    last = max((order.index(n) for n in [*specs_by_name, *_required(function)] if n in order), default=-1)
    missing = [n for n in order[: last + 1] if n not in specs_by_name]
    if missing:
        raise UsageError(f"no type for input {missing[0]!r}", remedy=f"pass --input {missing[0]}:f32[1,28]")
    ordered = [specs_by_name[n] for n in order[: last + 1]]
    tensors = [_example(s) for s in specs_at(ordered, {})]
    dims = [s.shape if s.equals is None else s.equals for s in ordered]
    return tensors, dims if any(has_sizes(s.pattern) for s in ordered) else None


def hinted(model: Any, examples: list[Any], dims: Any, shapes: Sequence[tuple[str, int]]) -> tuple[list[Any], Any]:
    """Return the examples and dims with the sizes that ``--shape`` expects. Raises UsageError for a dimension that
    ``dims`` lacks, and for a size out of its range."""
    if not shapes:
        return examples, dims
    if dims is None:
        raise UsageError(f"--shape {shapes[0][0]}: the model has no named dimension", remedy="leave out --shape")
    try:
        declared = Dims(dims, model).hinted(by_name(shapes))
    except ArgumentError as error:
        raise UsageError(f"--shape: {error.what}", remedy=error.remedy) from None
    return declared.expected_examples(examples), declared.specs


def _example(spec: TensorSpec) -> Any:
    """Return a tensor of zeros, or the size for an integer input."""
    if spec.equals is not None:
        return spec.equals
    return from_numpy(np.zeros(spec.shape, BY_NAME[spec.dtype].numpy))


def _positional(function: Callable[..., Any]) -> list[str]:
    """Return the names of the positional parameters; an empty list if the function takes ``*args``."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return []
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return []
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


def load_weights(model: Callable[..., Any], options: argparse.Namespace) -> None:
    """Copy the weights that ``--weights`` names into a module, and print notes on the file's contents.

    Raises StateDictError if they do not fit (``--no-strict`` skips names that only one side has), ArtifactError for a
    damaged file, FileNotFoundError.
    """
    if not isinstance(model, Module):
        raise UsageError("--weights needs a Module, and the target is a function")
    if not Path(options.weights).exists():
        raise FileNotFoundError(2, "no such file", options.weights)
    weights = weights_for(model, options.weights, options.weights_entry)
    for note in weights.notes:
        say(f"note: {note}")
    try:
        keys = model.load_state_dict(weights.state, strict=not options.no_strict)
    except StateDictError as error:
        error.remedy = error.remedy and "pass --no-strict to load only the names that fit"
        raise
    _say_names(options.weights, "names missing from the file keep their initial values", keys.missing_keys)
    _say_names(options.weights, "names unknown to the model are ignored", keys.unexpected_keys)


def _say_names(path: str, consequence: str, names: Sequence[str]) -> None:
    if names:
        more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
        say(f"note: {path}: {consequence}: {', '.join(map(repr, names[:_LISTED]))}{more}")


def is_random(text: str, model: Any) -> bool:
    """Check whether TARGET names a class or factory that constructed ``model`` with random parameters."""
    origin, _, name = text.rpartition(":")
    if not isinstance(model, Module) or not name or next(model.parameters(), None) is None:
        return False
    module = sys.modules.get(_module_name(Path(origin)) if origin.endswith(".py") else origin)
    return module is not None and _named(module, text) is not model
