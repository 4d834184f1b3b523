"""Models in parts: Python code around a program."""

from typing import Any

import pytest

import graphc as gc
from graphc.base.host_parts import CompiledParts, check_numeric, host_parts_of


class _Parts:
    """Doubles a number in a program, between a conversion from text and one to text."""

    program = staticmethod(lambda x: x * 2)

    def run(self, args: Any, kwargs: Any, program: Any) -> str:
        return str(float(program(*self.arguments(args, kwargs))))

    def arguments(self, args: Any, kwargs: Any) -> list[gc.Tensor]:
        return [gc.tensor(float(args[0]))]

    def dims(self, dims: Any) -> Any:
        return dims

    def texts(self) -> list[str]:
        return ["number"]

    def record(self) -> str:
        return ""


class _Model(gc.nn.Module):
    host_parts = _Parts()


def test_compile_takes_the_program_of_a_model_in_parts() -> None:
    compiled = gc.compile(_Model())
    assert isinstance(compiled, CompiledParts)
    assert compiled("21") == "42.0"
    assert len(compiled.programs) == 1


def test_other_targets_have_no_parts() -> None:
    assert host_parts_of(gc.nn.ReLU()) is None
    check_numeric(None, "a C library")


def test_texts_are_named() -> None:
    with pytest.raises(gc.errors.ArgumentError, match="a C library cannot hold texts, and number of the model is"):
        check_numeric(_Parts(), "a C library")
