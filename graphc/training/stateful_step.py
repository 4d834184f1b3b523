"""Step of ``fit``: a call on a batch, the numbers in its result, and the state of all that a training changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError, ArtifactError
from graphc.checkpoints.safetensors_file import array_of
from graphc.checkpoints.tree import TREE, join, split
from graphc.steps.step import CompiledStep
from graphc.tape.grad_mode import no_grad
from graphc.tensors.creation import as_tensor
from graphc.tracing.trace import modules_of


class StatefulStep:
    """Training step with a state. Each part has ``state_dict`` and ``load_state_dict``."""

    def __init__(self, call: Callable[..., Any], parts: Mapping[str, Any]):
        self.names: tuple[str, ...] = ()
        self._call, self._parts = call, dict(parts)

    def __call__(self, batch: Any) -> tuple[float, ...]:
        """Train on a batch, and return the numbers in the step's result."""
        numbers = numbers_in(self._call(*arguments(batch)))
        self.names = tuple(numbers)
        return tuple([float(value) for value in numbers.values()])

    def state(self) -> dict[str, np.ndarray]:
        """Return copies of the state of all parts, by name, with the text of their nesting."""
        tensors, text = split({"names": self.names, **{n: part.state_dict() for n, part in self._parts.items()}})
        arrays = {name: np.array(array_of(name, value)) for name, value in tensors.items()}
        return arrays | {TREE: np.frombuffer(text.encode(), np.uint8)}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Continue from a state. Raise ArtifactError for the state of other parts."""
        # NOTE: copies, since a part may keep the tensors that it loads, and change them.
        tensors = {name: as_tensor(np.array(array)) for name, array in state.items() if name != TREE}
        tree = join(tensors, state[TREE].tobytes().decode() if TREE in state else "")
        names = tree.pop("names", ())
        if tree.keys() != self._parts.keys():
            raise ArtifactError(f"the state is of {', '.join(tree)}, and not of {', '.join(self._parts)}")
        for name, part in self._parts.items():
            part.load_state_dict(tree[name])
        self.names = names


class StepWeights:
    """Weights of a compiled step: those of its modules, and of its optimizers where no module has them."""

    def __init__(self, step: CompiledStep):
        targets = [step.model] if step.loss is None else [step.model, step.loss]
        self._modules = list(dict.fromkeys(module for target in targets for _, module in modules_of(target)))
        inside = {id(p) for module in self._modules for p in module.parameters()}
        groups = [group for optimizer in step.options.optimizers for group in optimizer.param_groups]
        self._others = [p for group in groups for p in group["params"] if id(p) not in inside]

    def state_dict(self) -> dict[str, Any]:
        """Return the weights, not copied."""
        return {"modules": [dict(m.state_dict()) for m in self._modules], "others": [p.detach() for p in self._others]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Write weights. Raise StateDictError or ArtifactError for those of other modules."""
        if [len(state[name]) for name in ("modules", "others")] != [len(self._modules), len(self._others)]:
            raise ArtifactError("the state is of another number of modules")
        for module, stored in zip(self._modules, state["modules"], strict=True):
            module.load_state_dict(stored)
        with no_grad():
            for parameter, stored in zip(self._others, state["others"], strict=True):
                parameter.copy_(stored)


def arguments(batch: Any) -> Sequence[Any]:
    """Return the arguments that a batch is for a step: a tuple or list several, anything else one."""
    return batch if isinstance(batch, (tuple, list)) else (batch,)


def numbers_in(result: Any) -> dict[str, Any]:
    """Return the scalars in a step's result by name, the loss first.

    The names are the keys of dictionaries, the fields of named tuples, ``loss`` for a single scalar or the first of
    several, and ``loss.1`` and so on for others. Raises ArgumentError for a result without a scalar.
    """
    if _is_scalar(result):
        return {"loss": result}
    numbers: dict[str, Any] = {}
    if isinstance(result, Mapping):
        numbers = {str(name): value for name, value in result.items() if _is_scalar(value)}
    elif isinstance(result, (tuple, list)):
        fields = getattr(result, "_fields", [f"loss.{i}" if i else "loss" for i in range(len(result))])
        for name, value in zip(fields, result, strict=True):
            if isinstance(value, Mapping):
                numbers |= numbers_in(value) if value else {}
            elif _is_scalar(value):
                numbers[name] = value
    if not numbers:
        raise ArgumentError(
            f"fit: the step returned {type(result).__name__} without a number", remedy="return the loss, a scalar"
        )
    return numbers


def _is_scalar(value: Any) -> bool:
    return isinstance(value, (int, float)) or getattr(value, "shape", None) == ()
