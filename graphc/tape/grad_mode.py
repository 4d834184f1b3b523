"""Modes that control the recording of operations for gradients: no_grad, enable_grad, inference_mode."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

_enabled: ContextVar[bool] = ContextVar("graphc_grad_enabled", default=True)
_inference: ContextVar[bool] = ContextVar("graphc_inference_mode", default=False)

_anomaly: ContextVar[tuple[bool, bool]] = ContextVar("graphc_anomaly", default=(False, True))
"""Whether anomalies are detected, and whether NaN counts as one."""

is_grad_enabled: Callable[[], bool] = _enabled.get
"""Return whether operations on tensors that require gradients are recorded (per thread and task)."""
is_inference_mode_enabled: Callable[[], bool] = _inference.get
"""Return whether inference_mode is active."""

set_recording, reset_recording = _enabled.set, _enabled.reset
"""Switch the recording of operations, and restore what it was: for code in which a context manager takes too long."""
anomaly: Callable[[], tuple[bool, bool]] = _anomaly.get
"""Return whether anomalies are detected, and whether NaN counts as one."""


class _Mode:
    """Context manager, also usable as a decorator of functions and generator functions."""

    def __enter__(self) -> None:
        raise NotImplementedError

    def __exit__(self, *exception: object) -> None:
        raise NotImplementedError

    def clone(self) -> _Mode:
        """Return a new manager with the same setting, for a call of a decorated function."""
        return type(self)()

    def __call__(self, function: F) -> F:
        if inspect.isgeneratorfunction(function):
            return self._around_generator(function)

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return function(*args, **kwargs)

        return wrapped  # type: ignore[return-value]

    def _around_generator(self, function: Any) -> Any:
        """Apply the mode while the generator runs, but not while its consumer does."""

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            generator = function(*args, **kwargs)
            send = functools.partial(next, generator)
            while True:
                try:
                    with self.clone():
                        item = send()
                except StopIteration as stop:
                    return stop.value
                try:
                    send = functools.partial(generator.send, (yield item))
                except GeneratorExit:
                    generator.close()
                    raise
                # NOTE: any exception thrown into the generator is passed on to the function.
                except BaseException as error:
                    send = functools.partial(generator.throw, error)

        return wrapped


class _GradMode(_Mode):
    _value = True

    def __enter__(self) -> None:
        self._token = _enabled.set(self._value)

    def __exit__(self, *exception: object) -> None:
        _enabled.reset(self._token)


def _decorates(cls: type, function: Any) -> Any:
    """Support ``@no_grad`` without parentheses, like ``@no_grad()``."""
    mode = object.__new__(cls)
    return mode if function is None else _Mode.__call__(mode, function)


class no_grad(_GradMode):
    """Disable recording: results of operations do not require gradients.

    Example:
        >>> import graphc as gc
        >>> x = gc.ones(2, requires_grad=True)
        >>> with gc.no_grad():
        ...     y = x * 2
        >>> y.requires_grad
        False
    """

    _value = False

    def __new__(cls, function: Any = None) -> Any:
        return _decorates(cls, function)


class enable_grad(_GradMode):
    """Enable recording again, for example inside no_grad."""

    def __new__(cls, function: Any = None) -> Any:
        return _decorates(cls, function)


class set_grad_enabled(_Mode):
    """Switch recording on or off at once; as a context manager, restore the previous mode at the end."""

    def __init__(self, mode: bool):
        self.mode = bool(mode)
        self._previous = _enabled.get()
        _enabled.set(self.mode)

    def __enter__(self) -> None:
        _enabled.set(self.mode)

    def __exit__(self, *exception: object) -> None:
        _enabled.set(self._previous)

    def clone(self) -> set_grad_enabled:
        """Return a manager with the same mode."""
        return set_grad_enabled(self.mode)

    def __call__(self, function: F) -> F:
        _enabled.set(self._previous)
        return super().__call__(function)


class inference_mode(_Mode):
    """Disable recording like no_grad, and version counters: tensors created inside can never be saved for a
    gradient.

    Example:
        >>> import graphc as gc
        >>> with gc.inference_mode():
        ...     y = gc.ones(2)
        >>> y.is_inference()
        True
    """

    def __new__(cls, mode: Any = True) -> Any:
        manager = object.__new__(cls)
        if isinstance(mode, bool):
            manager.mode = mode
            return manager
        manager.mode = True
        return _Mode.__call__(manager, mode)

    mode: bool

    def clone(self) -> inference_mode:
        """Return a manager with the same mode."""
        return inference_mode(self.mode)

    def __enter__(self) -> None:
        self._tokens = (_inference.set(self.mode), _enabled.set(not self.mode))

    def __exit__(self, *exception: object) -> None:
        _inference.reset(self._tokens[0])
        _enabled.reset(self._tokens[1])


class detect_anomaly(_Mode):
    """Record the line of each operation, and name it if a backward pass fails or (with ``check_nan``) gives a NaN.

    Slow; for debugging.
    """

    def __init__(self, check_nan: bool = True):
        self.check_nan = check_nan

    def clone(self) -> detect_anomaly:
        """Return a manager with the same setting."""
        return detect_anomaly(self.check_nan)

    def __enter__(self) -> None:
        self._token = _anomaly.set((True, self.check_nan))

    def __exit__(self, *exception: object) -> None:
        _anomaly.reset(self._token)


class set_detect_anomaly:
    """Switch ``detect_anomaly`` on or off at once; as a context manager, restore the previous mode at the end."""

    def __init__(self, mode: bool, check_nan: bool = True):
        self._previous = _anomaly.get()
        _anomaly.set((bool(mode), check_nan))

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        _anomaly.set(self._previous)


def is_anomaly_enabled() -> bool:
    """Return whether ``detect_anomaly`` is active."""
    return anomaly()[0]


def is_anomaly_check_nan_enabled() -> bool:
    """Return whether a NaN in a gradient counts as an anomaly."""
    return anomaly()[1]
