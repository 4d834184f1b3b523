"""Exceptions of graphc and the four-line layout of their messages."""

from __future__ import annotations

__all__ = ["ArgumentError", "ArtifactError", "AttributeValueError", "CompileError", "ConditionError", "DTypeError"]
__all__ += ["DeviceError", "DistributedError", "FallbackWarning", "GradientError", "GraphcError", "HookError"]
__all__ += ["IndexRangeError", "MemberError", "MemberNameError", "MemoryLimitError", "NonFiniteError", "ParseError"]
__all__ += ["PassError", "RealtimeError", "RecompileWarning", "ShapeError", "StateDictError", "StoppedError"]
__all__ += [
    "StreamError",
    "TargetError",
    "TraceError",
    "UnsupportedError",
    "ValueNeededError",
    "VerifyError",
    "WorkerError",
]


class GraphcError(Exception):
    """Base of every error that graphc raises on purpose.

    The message has up to four lines: the fault with its values, ``where`` (the IR line), ``from`` (module path and the
    user's file and line) and ``try`` (the remedy). Passes and the tracer fill ``where`` and ``origin`` in when they
    know more than the code that raised.

    An error of a compiled call has ``called`` (the line that called) and ``traced`` (the line that the program was
    traced from) in place of ``from`` where these differ.
    """

    def __init__(self, what: str, *, where: str | None = None, origin: str | None = None, remedy: str | None = None):
        super().__init__(what)
        self.what = what
        self.where = where
        self.origin = origin
        self.remedy = remedy
        self.called: str | None = None

    def __str__(self) -> str:
        lines, origins = [self.what], (("from", self.origin),)
        if self.called and self.called != self.origin:
            origins = ("called", self.called), ("traced", self.origin)
        for label, text in (("where", self.where), *origins, ("try", self.remedy)):
            if text:
                lines.append(f"  {label:<6} {text}")
        return "\n".join(lines)


# NOTE: PyTorch raises different built-in classes for the same mistake in different functions. Programs that catch
# either class keep working because these errors derive from both.


class ShapeError(GraphcError, RuntimeError, ValueError):
    """Shapes of operands do not fit."""


class DTypeError(GraphcError, TypeError, RuntimeError):
    """An element type is wrong or two element types do not fit."""


class AttributeValueError(GraphcError, ValueError, RuntimeError):
    """An attribute of an op has a wrong value."""


class IndexRangeError(GraphcError, IndexError, RuntimeError):
    """A dimension or an index is out of range."""


class ConditionError(GraphcError, AssertionError, RuntimeError):
    """A condition on a tensor's elements is false."""


class NonFiniteError(GraphcError, ArithmeticError, RuntimeError):
    """Finite numbers gave a NaN or an infinity."""


class StoppedError(GraphcError, RuntimeError):
    """``debug`` stopped at the requested point."""


class WorkerError(GraphcError, RuntimeError):
    """A worker process of a loader could not start, or has died."""


class ArgumentError(GraphcError, TypeError, RuntimeError):
    """A call has wrong arguments: name, count, or kind."""


class MemoryLimitError(GraphcError, MemoryError, RuntimeError):
    """An array does not fit into memory."""


class TraceError(GraphcError, RuntimeError):
    """Python code needs a property of a traced value that only calls have."""


class ValueNeededError(TraceError):
    """Python code asked for the values of a traced tensor."""


class UnsupportedError(GraphcError, NotImplementedError):
    """An operator, element type or construct of another framework has no counterpart here."""


class GradientError(GraphcError, RuntimeError):
    """A derivative does not exist or can no longer be computed."""


class ParseError(GraphcError, ValueError):
    """A text is not valid IR; the message names line and column."""


class VerifyError(GraphcError, RuntimeError):
    """A graph or kernel breaks a rule of the IR."""


class PassError(GraphcError, RuntimeError):
    """A pass failed; the message names it and the passes before it."""


class CompileError(GraphcError, RuntimeError):
    """Native code could not be built or loaded."""


class RealtimeError(CompileError):
    """The time of machine code is unbounded, or could not be proven bounded."""


class StreamError(CompileError):
    """A model cannot be streamed: an op needs the whole sequence, or looks ahead."""


class DeviceError(GraphcError, RuntimeError):
    """A device is missing, or detected an invalid access of a kernel or a transfer."""


class DistributedError(GraphcError, RuntimeError):
    """Cooperating processes failed to connect, or disagree."""


class ArtifactError(GraphcError, ValueError):
    """A compiled-model file is damaged, foreign, or of another version."""


class TargetError(GraphcError, ValueError):
    """A command-line target (file, module, or object in it) could not be resolved to a model."""


class HookError(GraphcError, RuntimeError):
    """A hook returned a value that its kind does not allow, or hooks of two kinds were mixed."""


class MemberError(GraphcError, AttributeError):
    """A module has no such member, or a member is set before its ``__init__`` ran."""


class MemberNameError(GraphcError, KeyError):
    """The name of a parameter, buffer or child module is taken or cannot be used."""


class StateDictError(GraphcError, RuntimeError):
    """A state dictionary does not fit the module it is loaded into."""


class RecompileWarning(UserWarning):
    """Many programs were compiled for one function."""


class FallbackWarning(UserWarning):
    """Another framework computes a part of a model."""


# Tracebacks and pickles show the public path of the exceptions.
for _name in __all__:
    globals()[_name].__module__ = "graphc.errors"
