"""Exported PyTorch model as a module, which is called, trained, compiled and exported like any other."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

from graphc.base.errors import GraphcError, UnsupportedError
from graphc.interop.aten.exported import Exported, ModuleTensor
from graphc.interop.aten.run import Runner
from graphc.interop.parts import ImportedRoot, Member
from graphc.tape.grad_mode import no_grad
from graphc.tensors.structure import unflatten
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front

Modes = tuple[bool, ...]
"""Training flags of a module and of all its submodules, in the order of ``modules()``."""
Export = Callable[[Modes], tuple[Exported, Mapping[str, Tensor]]]
"""Function that exports for training flags. Also returns tensors that are neither parameters nor buffers."""
_MODE_OF = {
    **dict.fromkeys(("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout", "native_dropout"), 2),
    **{"batch_norm": 5, "instance_norm": 5, "_native_batch_norm_legit": 5, "rrelu": 3, "lstm": 6, "gru": 6},
    **{"rnn_tanh": 6, "rnn_relu": 6, "_native_batch_norm_legit_functional": 5, "native_batch_norm": 5},
}
"""Operators that behave differently in training, with the index of the argument that selects it."""
_RUNNING_MEAN = {"batch_norm": 3, "instance_norm": 3}
"""Index of the argument without which an operator uses the statistics of its input in evaluation, too."""


_IN_EVALUATION = frozenset({"_native_batch_norm_legit_no_training"})
"""Operators that decompositions produce in evaluation only."""


class ExportedGraph(NamedTuple):
    """Graph with its runner and constants."""

    exported: Exported
    runner: Runner
    constants: dict[str, Tensor]


class Graphs:
    """Graphs of a module by its training flags.

    Each has its own constants (tensors other than parameters and buffers): their names may differ in meaning between
    graphs.
    """

    def __init__(self, kind: str, constants: Mapping[str, Tensor], export: Export | Exported):
        self.kind = kind
        self.export = None if isinstance(export, Exported) else export
        self.graphs: dict[Modes | None, ExportedGraph] = {}
        self.only: bool | None = None
        """Mode of the only graph, if it is specific to a mode."""
        if isinstance(export, Exported):
            self.graphs[None] = ExportedGraph(export, Runner(export.graph), dict(constants))
            self.only = _mode(export)

    def find(self, modes: Modes) -> ExportedGraph:
        """Return the graph for these flags. Exports it the first time."""
        graph = self.graphs.get(None) or self.graphs.get(modes)
        if graph is not None:
            return graph
        if self.export is None:
            raise UnsupportedError(
                f"{self.kind} has no graph for these training flags, and a copy cannot export again",
                remedy="use one mode for all submodules, or use the module that from_torch returned",
            )
        exported, constants = self.export(modes)
        self.graphs[modes] = ExportedGraph(exported, Runner(exported.graph), dict(constants))
        return self.graphs[modes]

    def __getstate__(self) -> dict[str, Any]:
        graphs = {modes: (exported, constants) for modes, (exported, _, constants) in self.graphs.items()}
        return {**self.__dict__, "export": None, "graphs": graphs}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.graphs = {m: ExportedGraph(e, Runner(e.graph), constants) for m, (e, constants) in state["graphs"].items()}


class ImportedModule(ImportedRoot):
    """Exported model with the parameters, buffers and module names of the original.

    A graph is valid for one choice of training flags: dropout and batch statistics are as in the export. While the
    model can still be exported, ``train`` and ``eval`` work, also for submodules: the first call with other flags
    exports again. Otherwise a mode other than the graph's raises UnsupportedError.
    """

    def __init__(
        self,
        kind: str,
        submodules: Iterable[tuple[str, str]],
        members: Iterable[Member],
        constants: Mapping[str, Tensor],
        export: Export | Exported,
        modes: Modes | None = None,
        shared: Mapping[str, str] | None = None,
    ):
        """Build the module tree and, for ``modes``, the first graph.

        ``submodules`` are paths of modules and names of their classes, parents first. ``export`` returns the graph for
        training flags, and constants (tensors other than parameters and buffers). Or it is the only graph, with
        ``constants`` given here. ``shared`` maps further paths of a module to its first one. ``modes`` are the initial
        training flags.

        Raises the errors of the export.
        """
        super().__init__(kind)
        self._traced_name = kind
        for path, name in submodules:
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
        """Switch to training behaviour, or back. Raises UnsupportedError if the only graph is for the other mode."""
        only = self._graphs.only
        if only is not None and mode is not only:
            exported_mode = "training" if only else "evaluation"
            raise UnsupportedError(
                f"{self._kind} was exported for {exported_mode}, and the graph has only that mode",
                remedy="pass the module itself to from_torch, which supports both modes",
            )
        return super().train(mode)

    def _current(self) -> ExportedGraph:
        """Return the graph for the current training flags."""
        return self._graphs.find(tuple([m.training for m in self.modules()]))

    # Calls

    @property
    def dims(self) -> dict[Any, Any] | None:
        """Return the open dimensions of the export, or None where all sizes are fixed.

        ``dims=`` of ``graphc.compile`` and ``graphc.export`` takes them.
        """
        return self._current().exported.dims()

    def examples(self) -> list[Any]:
        """Return positional arguments with which a call can be traced.

        They are zeros of the expected sizes, and these sizes for whole numbers.
        """
        return self._current().exported.examples()

    @property
    def graph(self) -> Any:
        """Return the graph of ATen operators for the current training flags."""
        return self._current().exported.graph

    @property
    def forward(self) -> Callable[..., Any]:  # type: ignore[override]
        """Return the function that computes the graph.

        Arguments are nested as in the export, by position or by name, and so are the results.
        """
        return _Forward(self)

    def _run(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        exported, runner, constants = self._current()
        self._check_hooks()
        arguments = exported.bind(args, kwargs)
        remaining, own = iter(arguments), constants | self._tensors()
        with _no_writes(exported.overlapping, own):
            outputs = runner(
                *[own[i.path] if isinstance(i, ModuleTensor) else next(remaining) for i in exported.inputs]
            )
            with no_grad():
                for write in exported.writes:
                    target = own[write.path] if write.path else arguments[write.argument]
                    target.copy_(outputs[write.result])
        results = outputs if exported.results is None else [outputs[i] for i in exported.results]
        return unflatten(exported.result_tree, results)

    def __getstate__(self) -> dict[str, Any]:
        self._export_both()
        return super().__getstate__()

    def _export_both(self) -> None:
        """Export the graphs of training and evaluation where possible, because a copy cannot export again."""
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
def _no_writes(paths: Iterable[str], tensors: Mapping[str, Tensor]) -> Iterator[None]:
    """Raise UnsupportedError if the body writes to tensors of these paths."""
    watched = {path: front().local(tensors[path]) for path in paths}
    before = {path: tensor._version for path, tensor in watched.items() if not tensor.is_inference()}
    yield
    for path, version in before.items():
        if watched[path]._version != version:
            raise UnsupportedError(
                f"the model writes to {path}, which shares its memory with other tensors of the model",
                remedy="register one buffer, and slice it where it is read",
            )


class _Forward:
    """Callable behind ``ImportedModule.forward``, with the model's arguments as its signature."""

    def __init__(self, module: ImportedModule):
        self._module = module

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._module._run(args, kwargs)

    @property
    def __signature__(self) -> inspect.Signature:
        exported = self._module._current().exported
        first, named = exported.argument_tree.children
        names: Any = exported.names[: len(first.children)]  # type: ignore[union-attr]
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters = [inspect.Parameter(n, kind) for n in dict.fromkeys([*names, *named.keys])]  # type: ignore[union-attr]
        return inspect.Signature(parameters)


def _mode(exported: Exported) -> bool | None:
    """Return whether a graph is for training. None if it is for both modes."""
    modes = set()
    for step in exported.graph.steps:
        name = step.target.removeprefix("aten.").removesuffix(".default").removesuffix(".input").removesuffix("_")
        if name in _IN_EVALUATION:
            modes.add(False)
        index, mean = _MODE_OF.get(name), _RUNNING_MEAN.get(name)
        if index is None or len(step.args) <= index or (mean is not None and step.args[mean] is None):
            continue
        modes.add(bool(step.args[index]))
    return modes.pop() if len(modes) == 1 else None
