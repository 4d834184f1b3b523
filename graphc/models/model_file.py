"""Models from files: load makes their entries callable on numpy arrays and tensors."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.base.errors import ArtifactError, GradientError
from graphc.base.lazy import deferred
from graphc.base.locks import Lock, cached_property
from graphc.base.sizes.size import Dimension, at
from graphc.calls.machine import HOST, is_device, machine_named, strict_name
from graphc.calls.plan import Plan, plan_of, summed
from graphc.files import model_content
from graphc.files.manifest import TensorSpec, signature
from graphc.files.model_content import Artifact, StoredEntry, entry_name
from graphc.files.model_manifest import EntrySpec
from graphc.models.chain import ChainedPrograms
from graphc.models.formats import read_text_parts
from graphc.models.model_call import ModelCall
from graphc.models.model_programs import Programs
from graphc.models.model_state import ModelState, prepare_tensors
from graphc.models.sized_model import SizedPrograms, SizesOfModel

if TYPE_CHECKING:
    from graphc.tensors.tensor import Tensor

_read_weights = deferred("graphc.checkpoints.weight_file:read_weights")
recorded_calls = deferred("graphc.models.model_gradient:RecordedCalls")
"""Deferred import, for calls with gradients."""


class LoadedEntry:
    """One entry of a model from a file: numpy arrays in, numpy arrays out, or tensors in, tensors out.

    Several threads may call it at once. The first call compiles its program. Where the file holds its derivative,
    gradients flow to the tensors of the call, and to the parameters of a model loaded with ``trainable``.
    """

    # NOTE: the type calls the object in this slot, so that a call runs no Python code.
    __slots__ = ("__call__", "__dict__", "__weakref__")

    __call__: Callable[..., Any]
    """``entry(*arrays, out=None, **named)``: return the outputs, nested as the model nests them.

    Arrays are given in order or by name, and may be nested as in the export. Tensors of other libraries
    (``__dlpack__``) count as arrays. ``out`` is the array, or the list or tuple of arrays, that receives the outputs.
    For tensors the outputs are tensors. Raise ArgumentError (count, name, kind, sharing of memory), ShapeError and
    DTypeError.
    """

    def __init__(self, stored: StoredEntry, programs: Programs):
        self.spec = stored.spec
        """The entry's record in the manifest."""
        self.text = stored.text
        """The text of the graph; empty for a chain of programs."""
        self._stored, self._programs = stored, programs
        self._lock = Lock()
        self._recorded: Any = None
        self.forget()

    def forget(self) -> None:
        """Drop the program; the next call makes a new one."""
        self._made: tuple[ModelCall, Mapping[str, float] | None] | None = None
        self._recorded = None
        self.__call__ = lambda *args, **named: self._prepared("__call__")(*args, **named)
        self._run: Callable[..., list[Any]] = lambda *args, **named: self._prepared("_run")(*args, **named)

    def _prepared(self, name: str) -> Callable[..., Any]:
        self.prepare()
        return getattr(self, name)

    def prepare(self) -> tuple[ModelCall, Mapping[str, float] | None]:
        """Return the calls of the program, loaded or compiled at the first use. Raise ArtifactError, CompileError."""
        with self._lock:
            if self._made is None:
                program, seconds, derived = self._programs.of(self._stored)
                recorder = None if self.spec.derivative is None else self._recorder
                calls = ModelCall(self.spec, program, self._programs.state, recorder, derived)
                entries = [self._programs.stored.entry(name) for name in self.spec.paths]
                calls.others = tuple([LoadedEntry(entry, self._programs) for entry in entries])
                self._made = calls, seconds
                self.__call__, self._run = calls.native(), calls.native_list()
                if self.texts is not None:
                    parts, program = self.texts, self.__call__
                    self.__call__ = lambda *args, **named: parts.run(args, named, program)
            return self._made

    @cached_property
    def texts(self) -> Any:
        """Python code around the program of a model with texts or dictionaries, None for other models.

        Calls of the entry run it. ``inputs``, ``outputs`` and ``run`` are those of the program.
        """
        return read_text_parts(self.spec.texts) if self.spec.texts else None

    def _recorder(self) -> Any:
        with self._lock:
            if self._recorded is None:
                self._recorded = recorded_calls(self._stored, self._programs)
            return self._recorded

    @property
    def name(self) -> str:
        """Name of the entry."""
        return self.spec.name

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """Names, element types and shapes of the inputs, in order."""
        return self.spec.inputs

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """Names, element types and shapes of the outputs, in order."""
        return self.spec.outputs

    @property
    def program(self) -> Any:
        """The program that calls run: an Executable, a DeviceExecutable, SizedPrograms or ChainedPrograms."""
        return self.prepare()[0].program

    @property
    def seconds(self) -> Mapping[str, float] | None:
        """Seconds of each stage of the compilation. None when object code from the file runs."""
        return self.prepare()[1]

    def plan(self, **sizes: int) -> Plan:
        """Return bytes of arena, constants and code, and the estimated time. Nothing is called.

        ``sizes`` holds sizes of named dimensions by name; the others have their expected sizes. Raise ArgumentError for
        an unknown name, and for a size out of its range.
        """
        program, chosen = self.program, SizesOfModel(self.spec).named(sizes)
        if isinstance(program, ChainedPrograms):
            specs = [self._programs.stored.entry(name).spec for name in self.spec.programs]
            plans = [_plan(p, spec, chosen) for p, spec in zip(program.programs, specs, strict=True)]
            return summed(self.spec.title, tuple(map(str, self.inputs)), plans)
        return _plan(program, self.spec, chosen)

    def run(self, arrays: Sequence[np.ndarray], out: Sequence[np.ndarray] | None = None) -> list[np.ndarray]:
        """Return the outputs in order, for one array per input. Write them to the arrays of ``out`` when given."""
        return self._run(*arrays, out=out)

    def __repr__(self) -> str:
        return f"<LoadedEntry {signature(self.name, self.inputs, self.outputs)}>"


def _plan(program: Any, spec: EntrySpec, chosen: Mapping[Dimension, int]) -> Plan:
    """Return the plan of one program for these sizes of its entry."""
    if isinstance(program, SizedPrograms):
        program = program.of(dict(chosen))
    if not program.manifest.dims:
        return plan_of(program)
    # NOTE: where assumptions limit a dimension of the file, the program has another one, as 4*time_4 for time.
    shapes = tuple([tuple([at(n, chosen) for n in s.pattern]) for s in spec.inputs])
    return plan_of(program, sizes=program.sizes.named(shapes))


class LoadedModel:
    """A model from a file. Calling it calls its first entry; the others are in ``entries``.

    Parameters and states belong to the model and live as long as it does. All entries share them. Those that no entry
    writes are constants of its programs, unless the model was loaded with ``trainable``. Calls that write states run
    one at a time, and no call that reads such a state runs meanwhile.

    Example:
        >>> import graphc as gc
        >>> manifest = gc.export(gc.nn.Linear(3, 2), gc.zeros(1, 3), path="linear.gcm")
        >>> loaded = gc.load("linear.gcm")
        >>> loaded(gc.ones(1, 3)).shape
        (1, 2)
        >>> list(loaded.state_dict())
        ['weight', 'bias']
    """

    __slots__ = ("__call__", "__dict__", "__weakref__")

    __call__: Callable[..., Any]
    """See ``LoadedEntry.__call__``."""

    def __init__(self, stored: Artifact, programs: Programs):
        self.manifest = stored.manifest
        self._state = programs.state
        entries = {e.spec.name: LoadedEntry(e, programs) for e in stored.entries if not e.spec.of}
        self.entries: Mapping[str, LoadedEntry] = MappingProxyType(entries)
        """The entries by name, in the order of the file."""
        self._stored = stored
        self._first = next(iter(entries.values()))
        self._first.prepare()
        self.__call__ = self._first.__call__

    def entry(self, name: str) -> LoadedEntry:
        """Return the entry of a name. Raise ArgumentError.

        Example:
            >>> import graphc as gc
            >>> manifest = gc.export({"double": gc.Entry(lambda x: x * 2, gc.zeros(3))}, path="double.gcm")
            >>> gc.load("double.gcm").entry("double")
            <LoadedEntry double(x: f32[3]) -> (output: f32[3])>
        """
        return self.entries[entry_name(self._stored, name)]

    # ---- params and states

    @property
    def states(self) -> dict[str, np.ndarray]:
        """Params and states among the programs' arguments, by qualified name; all others are constants of the
        code.
        """
        return self._state.values()

    def parameters(self) -> Iterator[Tensor]:
        """Iterate over the parameters, as tensors that require gradients; none without ``trainable``."""
        return iter(self._state.parameters().values())

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        """Iterate over names and parameters."""
        return iter(self._state.parameters().items())

    def state_dict(self) -> dict[str, Tensor]:
        """Return copies of all parameters and states by name: weights, buffers, and states of optimizers and random
        numbers.

        ``graphc.save`` writes them to a file.
        """
        return self._state.state_dict()

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> None:
        """Load tensors or arrays by name, all or nothing. With ``strict``, the names must equal those of
        ``state_dict()``.

        Tensors that entries write are changed in place. Weights that no entry writes are constants of the programs:
        where one changes, the next call replaces the programs that use it by programs without weights, see
        ``swap_weights``. Raise StateDictError.

        Example:
            >>> import graphc as gc
            >>> manifest = gc.export(gc.nn.Linear(2, 1), gc.zeros(1, 2), path="linear.gcm")
            >>> loaded = gc.load("linear.gcm")
            >>> loaded.load_state_dict({"bias": gc.tensor([5.0])}, strict=False)
            >>> loaded.state_dict()["bias"]
            tensor([5.])
        """
        self._renew(self._state.load(state, strict))

    def swap_weights(self, weights: str | os.PathLike[str] | Mapping[str, Any]) -> None:
        """Replace the weights, all or nothing.

        ``weights`` is a file that ``graphc.load_weights`` reads (safetensors, its index of shards, ``.npz``, a
        checkpoint), or tensors or arrays by name. It must have each weight, with its shape and element type. It may
        have tensors that calls change. Names unknown to the model are ignored.

        The first swap replaces programs with constant weights by programs without: they are compiled, or loaded from
        the cache, whose key is the file and not its weights. After that, a swap compiles nothing; the next call packs
        the new weights. Entries with named dimensions, graphs of derivatives and programs for devices are compiled
        again at each swap. Calls that run meanwhile end with the weights with which they began. Raise StateDictError,
        and what reading the file raises.

        Example:
            >>> import graphc as gc
            >>> manifest = gc.export(gc.nn.Linear(2, 1, bias=False), gc.zeros(1, 2), path="linear.gcm")
            >>> loaded = gc.load("linear.gcm")
            >>> loaded.swap_weights({"weight": gc.tensor([[1.0, 10.0]])})
            >>> loaded(gc.tensor([[3.0, 4.0]]))
            tensor([[43.]])
        """
        self._renew(self._state.swap(weights_by_name(weights)))

    def _renew(self, changed: set[str]) -> None:
        """Drop the programs that use one of these weights."""
        for entry in self.entries.values():
            if changed.intersection(entry.spec.uses):
                entry.forget()
        if changed.intersection(self._first.spec.uses):
            self.__call__ = self._renewed

    def _renewed(self, *args: Any, **named: Any) -> Any:
        self._first.prepare()
        self.__call__ = self._first.__call__
        return self.__call__(*args, **named)

    def reset_state(self) -> None:
        """Reset everything that calls change to the content of the file."""
        self._state.reset()

    # ---- the first entry

    @property
    def name(self) -> str:
        """Name of the model."""
        return self._first.spec.title

    @property
    def text(self) -> str:
        """The text of the first entry's graph."""
        return self._first.text

    @property
    def spec(self) -> Any:
        """The first entry's record in the manifest."""
        return self._first.spec

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """Names, element types and shapes of the inputs of the first entry, in order."""
        return self._first.inputs

    @property
    def texts(self) -> Any:
        """See ``LoadedEntry.texts``."""
        return self._first.texts

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """Names, element types and shapes of the outputs of the first entry, in order."""
        return self._first.outputs

    @property
    def program(self) -> Any:
        """The program that calls of the first entry run."""
        return self._first.program

    @property
    def seconds(self) -> Mapping[str, float] | None:
        """Seconds of each stage of the compilation. None when object code from the file runs."""
        return self._first.seconds

    def plan(self, **sizes: int) -> Plan:
        """Return the plan of the first entry; see ``LoadedEntry.plan``."""
        return self._first.plan(**sizes)

    def run(self, arrays: Sequence[np.ndarray], out: Sequence[np.ndarray] | None = None) -> list[np.ndarray]:
        """Return the outputs of the first entry in order, for one array per input. Write them to the arrays of ``out``
        when given.
        """
        return self._first.run(arrays, out)

    def __repr__(self) -> str:
        return f"<LoadedModel {signature(self.name, self.inputs, self.outputs)}>"


def load(
    path: str | os.PathLike[str],
    trust: bool = False,
    *,
    target: str = HOST,
    device: Any = None,
    strict_order: bool = False,
    trainable: bool = False,
    weights: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    map: bool | None = None,
) -> LoadedModel:
    """Reads a model file and makes it callable.

    The graphs are compiled for this machine, or for what ``target`` names of it, as ``compile`` takes it; or for
    a ``device``, of which no file holds code. ``strict_order`` as for ``compile``; on CPUs a file whose native code is
    in strict order is always compiled in it. There arrays of the host are taken and given as well. Object code in the
    file is native code of whoever wrote it: it runs only with ``trust``, and only where this machine and this
    version of graphc fit, and where it is for the ``target`` if one is named. With ``trainable`` its parameters are
    tensors that get gradients, where the file holds a derivative. ``weights`` are taken in the place of the file's, as
    ``swap_weights`` takes them. ``map`` and its dangers are those of ``files.container.read_with_digest``: weights are
    the pages of the file itself, which processes share. Raises ArtifactError for a damaged, foreign or newer
    file; GradientError for ``trainable`` without a derivative; OSError when it cannot be read; CompileError.
    """
    machine = machine_named(target, device, strict_order)
    stored = model_content.load(path, map, prepare_tensors)
    if not is_device(machine) and any(n.manifest.target.strict_order for e in stored.entries for n in e.natives):
        machine = strict_name(machine)
    try:
        return make_model(stored, machine, trust, trainable, weights)
    except ArtifactError as error:
        error.what = f"{os.fspath(path)}: {error.what}"
        raise


def make_model(
    stored: Artifact, machine: str, trust: bool = False, trainable: bool = False, weights: Any = None
) -> LoadedModel:
    """Return a callable model of a file's content. ``machine`` names the place where it runs (see calls.machine)."""
    if trainable and all(e.spec.derivative is None for e in stored.entries):
        raise GradientError(
            f"the file of {stored.manifest.name} holds no derivative, so its parameters get no gradients",
            remedy="export it with derivative=True",
        )
    state = ModelState(stored, trainable)
    if weights is not None:
        state.swap(weights_by_name(weights))
    return LoadedModel(stored, Programs(stored, state, machine, trust))


def weights_by_name(weights: str | os.PathLike[str] | Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the tensors of a file of weights by name. A mapping is returned as it is."""
    return weights if isinstance(weights, Mapping) else _read_weights(weights).tree
