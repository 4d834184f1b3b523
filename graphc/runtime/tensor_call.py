"""Calls that run no Python on tensors of another library: it says where they lie, and makes the results."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from graphc.base.errors import CompileError
from graphc.runtime import fast_call
from graphc.runtime.call import Executable
from graphc.runtime.call_sizes import CallSizes
from graphc.runtime.fast_call import Context
from graphc.runtime.loader import host, link_forever

SYMBOL = "graphc_tensor_call"
"""Symbol of the native function, of the kind METH_O with a TensorCall for ``self``."""
MADE, OBJECT, ARGUMENT, SAME = range(4)
"""What a result is: a new tensor, an object, an argument by its number, an earlier result by its number."""
_ONE_ARGUMENT = 0x08
_POINTER, _INT, _FLAG = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32
_PARTS = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)


# ---- records that native code reads


class View(ctypes.Structure):
    """A DLTensor of DLPack, version 1."""

    _fields_ = (
        *(("data", _POINTER), ("device", _FLAG), ("device_number", _FLAG), ("rank", _FLAG), ("dtype", _FLAG)),
        *(("extents", ctypes.POINTER(_INT)), ("strides", ctypes.POINTER(_INT)), ("offset", ctypes.c_uint64)),
    )


class Given(ctypes.Structure):
    """An argument that a call looks at."""

    _fields_ = (
        ("number", _INT),  # in the list
        ("place", _POINTER),  # where it must lie, whatever it is; null where that may change
        ("extents", _POINTER),
        ("strides", _POINTER),
        ("some", _INT),  # whether it has elements
        ("rank", _FLAG),  # -1 of a whole number, which is the one extent
        ("dtype", _FLAG),
    )


class Result(ctypes.Structure):
    """What a call gives in one place."""

    _fields_ = (("kind", _INT), ("number", _INT), ("object", _POINTER), ("arguments", _POINTER))


class TensorCall(ctypes.Structure):
    """What a native call is made with: ``self`` of the callable, owner of all that is used."""

    _fields_ = (
        *((name, _POINTER) for name in ("context", "api", "library", "given", "results", "slots")),
        *((name, _POINTER) for name in ("threads", "check", "contents")),
        *((name, _INT) for name in ("count", "given_count", "result_count")),
    )

    owned: tuple[Any, ...]


class TensorLibrary(ctypes.Structure):
    """Functions of the library whose tensors they are, and of the interpreter."""

    _fields_ = tuple(
        (name, _POINTER)
        for name in (
            *("read", "unchanged"),  # native functions
            *("make", "is_negative", "thread_count", "yes", "no", "list"),  # objects
            *("clear", "raised", "new_list", "set_slice"),  # functions of the interpreter
        )
    )

    def __init__(
        self,
        read: int,
        make: Callable[..., Any],
        is_negative: Callable[..., Any],
        thread_count: Callable[[], int],
        unchanged: int,
    ):
        """``read`` is the address of DLPack's ``dltensor_from_py_object_no_sync``, ``make`` makes a tensor of sizes,
        strides and element type, ``is_negative`` tells whether the elements of one are not what lies in memory, and
        ``thread_count`` how many threads a call may use. ``unchanged`` is the address of ``graphc_unchanged``."""
        super().__init__(
            read=read,
            unchanged=unchanged,
            make=id(make),
            is_negative=id(is_negative),
            thread_count=id(thread_count),
            yes=id(True),
            no=id(False),
            list=id(list),
            clear=fast_call.function("PyErr_Clear"),
            raised=fast_call.function("PyErr_Occurred"),
            new_list=fast_call.function("PyList_New"),
            set_slice=fast_call.function("PyList_SetSlice"),
        )
        self.owned = (make, is_negative, thread_count)

    def view(self, tensor: Any) -> View | None:
        """How a tensor lies in memory, as native calls see it, while it lives; None where the library cannot say."""
        found = View()
        try:
            return None if _PARTS(self.read)(tensor, ctypes.addressof(found)) else found
        # NOTE: of the class that the library chose when it set one.
        except Exception:
            return None


def layout() -> Mapping[str, int] | None:
    """As of ``fast_call``, with these records."""
    known = fast_call.layout()
    if known is None:
        return None
    records = (View, Given, Result, TensorCall, TensorLibrary)
    fields = {f"{r.__name__}.{f[0]}": getattr(r, f[0]).offset for r in records for f in r._fields_}
    sizes = {f"{r.__name__}.size": ctypes.sizeof(r) for r in (View, Given, Result)}
    return {**known, **fields, **sizes, "object": OBJECT, "argument": ARGUMENT, "same": SAME}


# ---- callables


class Weight(NamedTuple):
    """An argument that must lie where it lies."""

    number: int
    place: int


class Input(NamedTuple):
    """An argument of which the program reads what a call gives: a tensor that lies as ``value`` does, or that int."""

    number: int
    value: Any


class Output(NamedTuple):
    """What a call gives in one place: of some kind, a number where the kind has one, the object that is given, or what
    a new tensor is made of."""

    kind: int
    number: int = -1
    value: Any = None


class TensorCaller:
    """The native function, loaded once for all programs."""

    def __init__(self, code: bytes):
        """``code`` is object code that defines ``graphc_tensor_call`` for the ``layout`` of this process."""
        found = fast_call.api()
        if found is None:
            raise CompileError("native calls cannot be used in this interpreter")
        self._api = found
        self._record = fast_call.Method(b"call", link_forever(code, (SYMBOL,), host())[SYMBOL], _ONE_ARGUMENT, None)
        fast_call.keep(self._record)

    def bind(
        self,
        library: TensorLibrary,
        program: Executable,
        bound: tuple[np.ndarray, ...],
        sizes: CallSizes,
        arguments: Sequence[Weight | Input],
        results: Sequence[Output],
        count: int,
        contents: int = 0,
        check: Callable[[list[Any]], bool] | None = None,
    ) -> NativeCall | None:
        """A call of a program with ``bound`` for its params and states, of ``sizes``, on lists of ``count`` arguments.
        Those that are Inputs are those of the program, in order, and behind them the states that calls give; the new
        tensors among ``results`` are its outputs, in order. A call is made where the blocks of the table at
        ``contents`` are unchanged (0 for none), and ``check`` says yes to its list. None where a bound array is not
        dense, or a tensor cannot be read."""
        context = fast_call.running_context(program, bound, sizes)
        given = (Given * max(len(arguments), 1))()
        if context is None:
            return None
        context.api = ctypes.addressof(self._api)
        slots, owned = [], []
        of_inputs = iter([*[slot for slot, *_ in sizes.inputs], *program.given_slots])
        for record, argument in zip(given, arguments, strict=False):
            record.number = argument.number
            if isinstance(argument, Weight):
                record.place = argument.place
                slots.append(-1)
            elif isinstance(argument.value, int):
                word = ctypes.c_int64(argument.value)
                record.rank, record.extents = -1, ctypes.addressof(word)
                context.frame.pointers[next(of_inputs)] = ctypes.addressof(word)
                slots.append(-1)
                owned.append(word)
            elif (view := library.view(argument.value)) is None:
                return None
            else:
                owned.append(_as_seen(record, view))
                slots.append(next(of_inputs))
        made, kept = _results(results)
        of_outputs = iter([slot for slot, *_ in sizes.outputs])
        slots += [next(of_outputs) if r.kind == MADE else -1 for r in results]
        words = (ctypes.c_int64 * max(len(slots), 1))(*slots)
        call = TensorCall(
            context=ctypes.addressof(context),
            api=ctypes.addressof(self._api),
            library=ctypes.addressof(library),
            given=ctypes.addressof(given),
            results=ctypes.addressof(made),
            slots=ctypes.addressof(words),
            contents=contents,
            check=None if check is None else id(check),
            count=count,
            given_count=len(arguments),
            result_count=len(results),
        )
        call.owned = (self, context, library, given, made, words, owned, kept, check)
        return NativeCall(call, context, fast_call.callable_of(self._record, call))


def _as_seen(record: Given, view: View) -> Any:
    """Fills in what an argument is like; returns what the record points to."""
    rank = view.rank
    shape = (ctypes.c_int64 * (2 * rank + 1))(*view.extents[:rank], *view.strides[:rank])
    record.rank, record.dtype = rank, view.dtype
    record.extents = ctypes.addressof(shape)
    record.strides = ctypes.addressof(shape) + rank * ctypes.sizeof(_INT)
    record.some = 0 not in shape[:rank]
    return shape


def _results(results: Sequence[Output]) -> tuple[Any, list[Any]]:
    """The records of results, and what they point to."""
    records, owned = (Result * max(len(results), 1))(), []
    for record, result in zip(records, results, strict=False):
        record.kind, record.number = result.kind, result.number
        if result.kind == MADE:
            parts = (ctypes.py_object * len(result.value))(*result.value)
            record.arguments = ctypes.addressof(parts)
            owned.append(parts)
        else:
            record.object = id(result.value)
        owned.append(result.value)
    return records, owned


class NativeCall:
    """A native callable of a list of arguments: it empties the list and returns one of results, or returns None and
    leaves all as it was, where anything is not as declared."""

    def __init__(self, record: TensorCall, context: Context, call: Callable[[list[Any]], list[Any] | None]):
        self._record, self._context = record, context
        self.call = call
        self.compares = bool(record.contents)
        """Whether blocks of memory must be unchanged."""
        self._allowed: tuple[int, Mapping[int, int]] | None = None

    def allow(self, threads: int, words: Mapping[int, int]) -> None:
        """From now on calls are made where so many threads may be used, and ``words`` in memory are what they are
        here."""
        fast_call.reserve(self._context.arena)
        if self._allowed == (threads, words):
            return
        self._allowed = threads, words
        self._record.threads = id(threads)  # one of the ints that the interpreter keeps; no other is ever the same one
        self._context.watched.set(dict(words), ())
