"""Calls without Python code on tensors of another library, which locates them and allocates the results."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from graphc.base.errors import CompileError
from graphc.runtime import fast_call
from graphc.runtime.call import Executable
from graphc.runtime.call_sizes import CallSizes
from graphc.runtime.fast_call import CallContext
from graphc.runtime.loader import host, link_forever

SYMBOL = "graphc_tensor_call"
"""Symbol of the native function, of the kind METH_O with a TensorCall for ``self``."""
MADE, OBJECT, ARGUMENT, SAME = range(4)
"""Kinds of results: a new tensor, an object, an argument by its index, an earlier result by its index."""
_ONE_ARGUMENT = 0x08
_POINTER, _INT, _FLAG = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32
_ReadTensor = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)


# ---- records that native code reads


class View(ctypes.Structure):
    """A DLTensor of DLPack, version 1."""

    _fields_ = (
        *(("data", _POINTER), ("device", _FLAG), ("device_number", _FLAG), ("rank", _FLAG), ("dtype", _FLAG)),
        *(("extents", ctypes.POINTER(_INT)), ("strides", ctypes.POINTER(_INT)), ("offset", ctypes.c_uint64)),
    )


class TensorArgument(ctypes.Structure):
    """An argument checked or read by a call."""

    _fields_ = (
        ("number", _INT),  # index in the list
        ("address", _POINTER),  # required address of the data; null if any address will do
        ("extents", _POINTER),
        ("strides", _POINTER),
        ("some", _INT),  # whether there are any elements
        ("rank", _FLAG),  # -1 for an integer, whose value is the only extent
        ("dtype", _FLAG),
    )


class Result(ctypes.Structure):
    """One result of a call."""

    _fields_ = (("kind", _INT), ("number", _INT), ("object", _POINTER), ("arguments", _POINTER))


class TensorCall(ctypes.Structure):
    """Data of a native call: ``self`` of the callable, and owner of everything the call uses."""

    _fields_ = (
        *((name, _POINTER) for name in ("context", "api", "library", "given", "results", "slots")),
        *((name, _POINTER) for name in ("threads", "check", "contents")),
        *((name, _INT) for name in ("count", "given_count", "result_count")),
    )

    owned: tuple[Any, ...]


class TensorLibrary(ctypes.Structure):
    """Functions of the tensors' library and of the interpreter."""

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
        """``read`` is the address of DLPack's ``dltensor_from_py_object_no_sync``. ``make`` allocates a tensor from
        sizes, strides and element type. ``is_negative`` returns whether a tensor's elements are the negatives of those
        in memory. ``thread_count`` returns the number of threads a call may use. ``unchanged`` is the address of
        ``graphc_unchanged``."""
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
        """Return the memory layout of a tensor as native calls see it, valid while the tensor lives; None where the
        library cannot describe it."""
        tensor_view = View()
        try:
            return None if _ReadTensor(self.read)(tensor, ctypes.addressof(tensor_view)) else tensor_view
        # NOTE: the library chooses the class of the exception.
        except Exception:
            return None


def layout() -> Mapping[str, int] | None:
    """Return the offsets of ``fast_call.layout`` and of the records here; None where native calls cannot be used."""
    base = fast_call.layout()
    if base is None:
        return None
    records = (View, TensorArgument, Result, TensorCall, TensorLibrary)
    fields = {f"{r.__name__}.{f[0]}": getattr(r, f[0]).offset for r in records for f in r._fields_}
    sizes = {f"{r.__name__}.size": ctypes.sizeof(r) for r in (View, TensorArgument, Result)}
    return {**base, **fields, **sizes, "object": OBJECT, "argument": ARGUMENT, "same": SAME}


# ---- callables


class Weight(NamedTuple):
    """An argument that must stay at its address."""

    number: int
    address: int


class Input(NamedTuple):
    """An argument read by the program: a tensor with the layout of ``value``, or that int."""

    number: int
    value: Any


class Output(NamedTuple):
    """One result: its kind, an index if the kind needs one, and the returned object or the arguments for a new
    tensor."""

    kind: int
    number: int = -1
    value: Any = None


class TensorCaller:
    """Native function for tensor calls, loaded once for all programs."""

    def __init__(self, code: bytes):
        """``code`` is object code that defines ``graphc_tensor_call`` for the ``layout`` of this process."""
        interpreter = fast_call.api()
        if interpreter is None:
            raise CompileError("native calls cannot be used in this interpreter")
        self._api = interpreter
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
        """Return a native call of a program on lists of ``count`` arguments, with ``bound`` for its params and states,
        and of ``sizes``. Return None if a bound array is not dense, or a tensor cannot be read.

        The Inputs among ``arguments`` are the program's inputs in order, then the states whose addresses calls pass.
        The new tensors among ``results`` are its outputs in order. A call runs only if the blocks of the table at
        ``contents`` (0: no table) are unchanged, and ``check`` accepts its list."""
        context = fast_call.running_context(program, bound, sizes)
        records = (TensorArgument * max(len(arguments), 1))()
        if context is None:
            return None
        context.api = ctypes.addressof(self._api)
        slots, owned = [], []
        of_inputs = iter([*[slot for slot, *_ in sizes.inputs], *program.given_slots])
        for record, argument in zip(records, arguments, strict=False):
            record.number = argument.number
            if isinstance(argument, Weight):
                record.address = argument.address
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
        result_records, result_objects = _results(results)
        of_outputs = iter([slot for slot, *_ in sizes.outputs])
        slots += [next(of_outputs) if r.kind == MADE else -1 for r in results]
        words = (ctypes.c_int64 * max(len(slots), 1))(*slots)
        call = TensorCall(
            context=ctypes.addressof(context),
            api=ctypes.addressof(self._api),
            library=ctypes.addressof(library),
            given=ctypes.addressof(records),
            results=ctypes.addressof(result_records),
            slots=ctypes.addressof(words),
            contents=contents,
            check=None if check is None else id(check),
            count=count,
            given_count=len(arguments),
            result_count=len(results),
        )
        call.owned = (self, context, library, records, result_records, words, owned, result_objects, check)
        return NativeCall(call, context, fast_call.callable_of(self._record, call))


def _as_seen(record: TensorArgument, view: View) -> Any:
    """Fill in the layout of an argument; return the memory the record points to."""
    rank = view.rank
    shape = (ctypes.c_int64 * (2 * rank + 1))(*view.extents[:rank], *view.strides[:rank])
    record.rank, record.dtype = rank, view.dtype
    record.extents = ctypes.addressof(shape)
    record.strides = ctypes.addressof(shape) + rank * ctypes.sizeof(_INT)
    record.some = 0 not in shape[:rank]
    return shape


def _results(results: Sequence[Output]) -> tuple[Any, list[Any]]:
    """Return the records of results, and the objects they point to."""
    records, owned = (Result * max(len(results), 1))(), []
    for record, result in zip(records, results, strict=False):
        record.kind, record.number = result.kind, result.number
        if result.kind == MADE:
            make_arguments = (ctypes.py_object * len(result.value))(*result.value)
            record.arguments = ctypes.addressof(make_arguments)
            owned.append(make_arguments)
        else:
            record.object = id(result.value)
        owned.append(result.value)
    return records, owned


class NativeCall:
    """Native callable of a list of arguments. It empties the list and returns a list of results. If anything is not as
    declared, it changes nothing and returns None."""

    def __init__(self, record: TensorCall, context: CallContext, call: Callable[[list[Any]], list[Any] | None]):
        self._record, self._context = record, context
        self.call = call
        self.compares = bool(record.contents)
        """Whether blocks of memory must be unchanged."""
        self._allowed: tuple[int, Mapping[int, int]] | None = None

    def allow(self, threads: int, words: Mapping[int, int]) -> None:
        """Run later calls only with this number of threads, and while the ``words`` in memory have these values."""
        fast_call.reserve(self._context.arena)
        if self._allowed == (threads, words):
            return
        self._allowed = threads, words
        self._record.threads = id(threads)  # a small int: the interpreter has one object per value
        self._context.watched.set(dict(words), ())
