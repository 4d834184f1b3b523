"""An exported model of PyTorch as a module: it is called, trained, compiled and exported as those of graphc are."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

from graphc.base.errors import GraphcError, UnsupportedError
from graphc.interop.aten.exported import Exported, Held
from graphc.interop.aten.run import Runner
from graphc.interop.parts import Member, Whole
from graphc.tape.grad_mode import no_grad
from graphc.tensors.structure import unflatten
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front

Modes = tuple[bool, ...]
"""The training flags of a module and of all below it, in the order of ``modules()``."""
Export = Callable[[Modes], tuple[Exported, Mapping[str, Tensor]]]
"""Exports for training flags; gives tensors that are neither parameters nor buffers, too."""
_MODE_OF = {
    **dict.fromkeys(("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout", "native_dropout"), 2),
    **{"batch_norm": 5, "instance_norm": 5, "_native_batch_norm_legit": 5, "rrelu": 3, "lstm": 6, "gru": 6},
    **{"rnn_tanh": 6, "rnn_relu": 6, "_native_batch_norm_legit_functional": 5, "native_batch_norm": 5},
}
"""Operators that compute something else in training, with the number of the argument that says so."""
_RUNNING_MEAN = {"batch_norm": 3, "instance_norm": 3}
"""The number of the argument without which an operator takes the statistics of its input in evaluation, too."""


_IN_EVALUATION = frozenset({"_native_batch_norm_legit_no_training"})
"""Operators that decompositions leave in evaluation alone."""


class Known(NamedTuple):
    """A graph that is there."""

    exported: Exported
    runner: Runner
    constants: dict[str, Tensor]


class Graphs:
    """The graphs of a module by its training flags, each with its tensors that are neither parameters nor buffers: in
    another graph the same name may stand for another one."""

    def __init__(self, kind: str, constants: Mapping[str, Tensor], export: Export | Exported):
        self.kind = kind
        self.export = None if isinstance(export, Exported) else export
        self.known: dict[Modes | None, Known] = {}
        self.only: bool | None = None
        """The mode of the one graph that there is, where it is for one of them."""
        if isinstance(export, Exported):
            self.known[None] = Known(export, Runner(export.graph), dict(constants))
            self.only = _mode(export)

    def find(self, modes: Modes) -> Known:
        """The graph for these flags, exported where it is the first time."""
        found = self.known.get(None) or self.known.get(modes)
        if found is not None:
            return found
        if self.export is None:
            raise UnsupportedError(
                f"{self.kind} has no graph for these training flags, and a copy cannot export again",
                remedy="all parts in training, or none; or the module that from_torch gave",
            )
        exported, constants = self.export(modes)
        self.known[modes] = Known(exported, Runner(exported.graph), dict(constants))
        return self.known[modes]

    def __getstate__(self) -> dict[str, Any]:
        known = {modes: (exported, constants) for modes, (exported, _, constants) in self.known.items()}
        return {**self.__dict__, "export": None, "known": known}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.known = {modes: Known(e, Runner(e.graph), constants) for modes, (e, constants) in state["known"].items()}


class ImportedModule(Whole):
    """An exported model with the parameters, buffers and module names of the one it was made of.

    A graph holds for one choice of training flags, as dropout and batch statistics are what they were in the export.
    Where the model can still be exported, ``train`` and ``eval`` work, of parts too: the first call with other flags
    exports again. Otherwise a mode other than that of the graph raises UnsupportedError.
    """

    def __init__(
        self,
        kind: str,
        parts: Iterable[tuple[str, str]],
        members: Iterable[Member],
        constants: Mapping[str, Tensor],
        export: Export | Exported,
        modes: Modes | None = None,
        shared: Mapping[str, str] | None = None,
    ):
        """``parts`` are the paths of modules and the names of their classes, parents first. ``export`` gives the graph
        for training flags, and tensors that are neither parameters nor buffers; or it is the only graph there is,
        with ``constants`` as such tensors. ``shared`` are further paths of a module, each with the first one.

        Raises what the export raises for ``modes``, the flags at the beginning."""
        super().__init__(kind)
        self._traced_name = kind
        for path, name in parts:
            self._put(path, name, (shared or {}).get(path))
        for member in members:
            self._add(member)
        self._graphs = Graphs(kind, constants, export)
        if modes is not None:
            self._set_modes(modes)
            self._current()
        else:
            super().train(bool(self._graphs.only))

    # Modes

    def _set_modes(self, modes: Modes) -> None:
        for module, mode in zip(self.modules(), modes, strict=True):
            module.training = mode

    def train(self, mode: bool = True) -> Self:
        """Switches to training behaviour, or back. Raises UnsupportedError where the only graph is for the other."""
        only = self._graphs.only
        if only is not None and mode is not only:
            known = "training" if only else "evaluation"
            raise UnsupportedError(
                f"{self._kind} was exported for {known}, and the graph says nothing of the other mode",
                remedy="from_torch(module, ...) of the module itself has both",
            )
        return super().train(mode)

    def _current(self) -> Known:
        """The graph for the training flags as they are."""
        return self._graphs.find(tuple([m.training for m in self.modules()]))

    # Calls

    @property
    def dims(self) -> dict[Any, Any] | None:
        """The dimensions that the export left open, as ``dims=`` of ``graphc.compile`` and ``graphc.export`` takes
        them; None where all sizes are fixed."""
        return self._current().exported.dims()

    def examples(self) -> list[Any]:
        """Arguments by position with which a call can be traced: zeros of the expected sizes, and these sizes for
        whole numbers."""
        return self._current().exported.examples()

    @property
    def graph(self) -> Any:
        """The graph of ATen operators for the training flags as they are."""
        return self._current().exported.graph

    @property
    def forward(self) -> Callable[..., Any]:  # type: ignore[override]
        """Computes the graph: the arguments are nested as in the export, by position or by name, and so are the
        results."""
        return _Forward(self)

    def _run(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        exported, runner, constants = self._current()
        self._check_hooks()
        given = exported.bind(args, kwargs)
        rest, held = iter(given), constants | self._tensors()
        with _no_writes(exported.overlapping, held):
            found = runner(*[held[i.path] if isinstance(i, Held) else next(rest) for i in exported.inputs])
            with no_grad():
                for write in exported.writes:
                    place = held[write.path] if write.path else given[write.given]
                    place.copy_(found[write.result])
        results = found if exported.results is None else [found[i] for i in exported.results]
        return unflatten(exported.gives, results)

    def __getstate__(self) -> dict[str, Any]:
        self._export_both()
        return super().__getstate__()

    def _export_both(self) -> None:
        """Makes the graphs of training and of evaluation, as far as there are any: a copy cannot export again."""
        if self._graphs.export is None:
            return
        before = tuple([m.training for m in self.modules()])
        for mode in (True, False):
            try:
                super().train(mode)
                self._current()
            except GraphcError:
                continue
            finally:
                self._set_modes(before)


@contextmanager
def _no_writes(paths: Iterable[str], held: Mapping[str, Tensor]) -> Iterator[None]:
    """Raises UnsupportedError where tensors of these paths are written to."""
    places = {path: front().local(held[path]) for path in paths}
    before = {path: place._version for path, place in places.items() if not place.is_inference()}
    yield
    for path, version in before.items():
        if places[path]._version != version:
            raise UnsupportedError(
                f"a write to {path}, which shares its memory with other tensors of the model",
                remedy="one buffer, and parts of it where they are read",
            )


class _Forward:
    """What ``ImportedModule.forward`` is: a function with the names of the model's arguments."""

    def __init__(self, module: ImportedModule):
        self._module = module

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._module._run(args, kwargs)

    @property
    def __signature__(self) -> inspect.Signature:
        exported = self._module._current().exported
        first, named = exported.takes.children
        names: Any = exported.names[: len(first.children)]  # type: ignore[union-attr]
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        found = [inspect.Parameter(n, kind) for n in dict.fromkeys([*names, *named.keys])]  # type: ignore[union-attr]
        return inspect.Signature(found)


def _mode(exported: Exported) -> bool | None:
    """Whether a graph is for training; None where it says nothing of it, or is for both."""
    found = set()
    for step in exported.graph.steps:
        name = step.target.removeprefix("aten.").removesuffix(".default").removesuffix(".input").removesuffix("_")
        if name in _IN_EVALUATION:
            found.add(False)
        place, mean = _MODE_OF.get(name), _RUNNING_MEAN.get(name)
        if place is None or len(step.args) <= place or (mean is not None and step.args[mean] is None):
            continue
        found.add(bool(step.args[place]))
    return found.pop() if len(found) == 1 else None
