"""Matrix products by NVIDIA's cublasLt, called directly, on any stream and during recordings."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from graphc.base.errors import DeviceError
from graphc.base.installation import install_command
from graphc.base.records import dataclass
from graphc.files.product_descriptor import Matrix, ProductDescriptor

WORKSPACE = 32 << 20
"""Bytes of workspace for the library: NVIDIA's recommendation for Hopper."""
MAX_ALIGNMENT = 256
"""Largest alignment of addresses in bytes that makes a difference."""
_SONAMES = ("libcublasLt.so.13", "libcublasLt.so.12")

# ---- constants of cublasLt.h, cublas_api.h and library_types.h

_TYPES = {"f32": 0, "f64": 1, "f16": 2, "i8": 3, "i32": 10, "bf16": 14}
_COMPUTE = {"f32": 68, "f64": 70, "i32": 72, "tf32": 77}
_SCALE = {"f32": "f32", "tf32": "f32", "f64": "f64", "i32": "i32"}
_EPILOGUES = {
    "none": 1,
    "relu": 2,
    "bias": 4,
    "relu_bias": 2 | 4,
    "gelu": 32,
    "gelu_bias": 32 | 4,
    "gelu_aux": 32 | 128,
    "gelu_aux_bias": 32 | 4 | 128,
    "dgelu": 64 | 128,
    "dgelu_bgrad": 64 | 128 | 16,
    "bgrada": 256,
    "bgradb": 512,
}
_TRANSA, _TRANSB, _EPILOGUE, _BIAS_POINTER, _AUX_POINTER, _AUX_LD, _AUX_STRIDE = 3, 4, 7, 8, 11, 12, 13
_LAYOUT_ORDER, _LAYOUT_BATCH, _LAYOUT_STRIDE = 1, 5, 6
_ORDER_COLUMNS = 0
_MAX_WORKSPACE, _MIN_ALIGNMENT = 1, (5, 6, 7, 8)
_STATUS = {
    1: "it is not initialized: there is no driver or no GPU",
    3: "there is no memory left",
    7: "it refuses the descriptor",
    8: "this GPU cannot do it",
    11: "memory cannot be reached",
    13: "the GPU failed",
    14: "an error inside of it",
    15: "it has no kernel for this product",
    16: "its licence does not hold",
}


class _Algorithm(ctypes.Structure):
    _fields_ = (("data", ctypes.c_uint64 * 8),)


class _Heuristic(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t."""

    _fields_ = (
        ("algorithm", _Algorithm),
        ("workspace", ctypes.c_size_t),
        ("state", ctypes.c_int),
        ("waves", ctypes.c_float),
        ("reserved", ctypes.c_int * 4),
    )


# ---- the library


def _candidate_paths() -> Iterator[str]:
    """Yield possible paths of the library: in a pip package, under CUDA_HOME, on the system's search path."""
    spec = importlib.util.find_spec("nvidia")
    roots = [Path(p) for p in (spec.submodule_search_locations or ())] if spec is not None else []
    folders = [r / name / "lib" for r in roots for name in ("cu13", "cublas")]
    folders += [Path(os.environ[v]) / "lib64" for v in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(v)]
    for name in _SONAMES:
        yield from (str(folder / name) for folder in folders if (folder / name).exists())
    yield from _SONAMES


_lock = threading.RLock()
_loaded: list[ctypes.CDLL] = []


def library() -> ctypes.CDLL:
    """Return the library, loaded once. Raises DeviceError if there is none."""
    with _lock:
        if not _loaded:
            tried = []
            for path in _candidate_paths():
                try:
                    _loaded.append(ctypes.CDLL(path))
                    break
                except OSError as error:
                    tried.append(f"{path}: {error}")
            else:
                remedy = f"install it: {install_command('cuda')}"
                raise DeviceError("libcublasLt cannot be loaded", where="; ".join(tried), remedy=remedy)
        return _loaded[0]


def _call(name: str, *arguments: Any) -> None:
    status = getattr(library(), name)(*arguments)
    if status:
        raise DeviceError(f"{name}: {_STATUS.get(status, 'an unknown error')} (status {status})")


@dataclass
class _Prepared:
    """The library's objects for a descriptor."""

    operation: ctypes.c_void_p
    layouts: dict[str, ctypes.c_void_p]
    algorithm: _Heuristic | None = None


def _operation(descriptor: ProductDescriptor) -> ctypes.c_void_p:
    handle = ctypes.c_void_p()
    scale = _TYPES[_SCALE[descriptor.compute]]
    _call("cublasLtMatmulDescCreate", ctypes.byref(handle), _COMPUTE[descriptor.compute], scale)
    for attribute, value in (
        (_TRANSA, ctypes.c_int32(int(descriptor.transpose_a))),
        (_TRANSB, ctypes.c_int32(int(descriptor.transpose_b))),
        (_EPILOGUE, ctypes.c_uint32(_EPILOGUES[descriptor.epilogue])),
    ):
        _set("cublasLtMatmulDescSetAttribute", handle, attribute, value)
    if "aux" in descriptor.operands:
        _set("cublasLtMatmulDescSetAttribute", handle, _AUX_LD, ctypes.c_int64(descriptor.aux_leading))
        if descriptor.d.batch > 1:
            _set("cublasLtMatmulDescSetAttribute", handle, _AUX_STRIDE, ctypes.c_int64(descriptor.aux_stride))
    return handle


def _layout(matrix: Matrix) -> ctypes.c_void_p:
    handle = ctypes.c_void_p()
    sizes = ctypes.c_uint64(matrix.rows), ctypes.c_uint64(matrix.columns), ctypes.c_int64(matrix.leading)
    _call("cublasLtMatrixLayoutCreate", ctypes.byref(handle), _TYPES[matrix.type], *sizes)
    _set("cublasLtMatrixLayoutSetAttribute", handle, _LAYOUT_ORDER, ctypes.c_int32(_ORDER_COLUMNS))
    if matrix.batch > 1:
        _set("cublasLtMatrixLayoutSetAttribute", handle, _LAYOUT_BATCH, ctypes.c_int32(matrix.batch))
        _set("cublasLtMatrixLayoutSetAttribute", handle, _LAYOUT_STRIDE, ctypes.c_int64(matrix.stride))
    return handle


def _set(function: str, what: ctypes.c_void_p, attribute: int, value: Any) -> None:
    _call(function, what, attribute, ctypes.byref(value), ctypes.c_size_t(ctypes.sizeof(value)))


def _prepare(descriptor: ProductDescriptor) -> _Prepared:
    complaint = descriptor.complaint()
    if complaint:
        raise DeviceError(f"a product of the library: {complaint}", where=str(descriptor))
    matrices = {"a": descriptor.a, "b": descriptor.b, "c": descriptor.c or descriptor.d, "d": descriptor.d}
    return _Prepared(_operation(descriptor), {name: _layout(matrix) for name, matrix in matrices.items()})


def _release(prepared: _Prepared) -> None:
    _call("cublasLtMatmulDescDestroy", prepared.operation)
    for layout in prepared.layouts.values():
        _call("cublasLtMatrixLayoutDestroy", layout)


class CublasLt:
    """The library on one device, whose context is current when methods are called."""

    def __init__(self) -> None:
        self._handle: ctypes.c_void_p | None = None
        self._prepared: dict[tuple[ProductDescriptor, int], _Prepared] = {}

    def product(
        self,
        descriptor: ProductDescriptor,
        addresses: Sequence[int],
        stream: int,
        workspace: int,
        nbytes: int = WORKSPACE,
    ) -> None:
        """Compute a product on a stream.

        ``addresses`` are in the order of ``descriptor.operands``. ``workspace`` is the address of ``nbytes`` bytes, a
        multiple of 256, that no other stream uses meanwhile. The first product of a descriptor with this alignment of
        addresses chooses the algorithm.
        """
        with _lock:
            prepared = self._prepared_for(descriptor, _alignment(addresses), nbytes)
            address_of = dict(zip(descriptor.operands, addresses, strict=True))
            self._point(prepared, address_of)
            assert prepared.algorithm is not None
            alpha, beta = _scalars(descriptor)
            pointers = {name: ctypes.c_void_p(address_of.get(name, address_of["d"])) for name in ("a", "b", "c", "d")}
            operands = [x for name in ("a", "b") for x in (pointers[name], prepared.layouts[name])]
            results = [x for name in ("c", "d") for x in (pointers[name], prepared.layouts[name])]
            _call(
                "cublasLtMatmul",
                *(self._handle, prepared.operation, ctypes.byref(alpha), *operands, ctypes.byref(beta), *results),
                *(ctypes.byref(prepared.algorithm.algorithm), ctypes.c_void_p(workspace)),
                *(ctypes.c_size_t(nbytes), ctypes.c_void_p(stream)),
            )

    def _point(self, prepared: _Prepared, at: dict[str, int]) -> None:
        for name, attribute in (("bias", _BIAS_POINTER), ("aux", _AUX_POINTER)):
            if name in at:
                pointer = ctypes.c_void_p(at[name])
                _set("cublasLtMatmulDescSetAttribute", prepared.operation, attribute, pointer)

    def _prepared_for(self, descriptor: ProductDescriptor, alignment: int, nbytes: int) -> _Prepared:
        prepared = self._prepared.get((descriptor, alignment))
        if prepared is None:
            if self._handle is None:
                handle = ctypes.c_void_p()
                _call("cublasLtCreate", ctypes.byref(handle))
                self._handle = handle
            prepared = _prepare(descriptor)
            prepared.algorithm = self._chosen(descriptor, prepared, alignment, nbytes)
            self._prepared[descriptor, alignment] = prepared
        return prepared

    def _chosen(self, descriptor: ProductDescriptor, prepared: _Prepared, alignment: int, nbytes: int) -> _Heuristic:
        """Return the algorithm ranked first by the library's heuristic."""
        preference = ctypes.c_void_p()
        _call("cublasLtMatmulPreferenceCreate", ctypes.byref(preference))
        _set("cublasLtMatmulPreferenceSetAttribute", preference, _MAX_WORKSPACE, ctypes.c_uint64(nbytes))
        for attribute in _MIN_ALIGNMENT:
            _set("cublasLtMatmulPreferenceSetAttribute", preference, attribute, ctypes.c_uint32(alignment))
        heuristic, count = _Heuristic(), ctypes.c_int()
        self._point(prepared, {name: alignment for name in ("bias", "aux") if name in descriptor.operands})
        layouts = [prepared.layouts[name] for name in ("a", "b", "c", "d")]
        try:
            _call(
                "cublasLtMatmulAlgoGetHeuristic",
                *(self._handle, prepared.operation, *layouts, preference),
                *(1, ctypes.byref(heuristic), ctypes.byref(count)),
            )
        finally:
            _call("cublasLtMatmulPreferenceDestroy", preference)
        if not count.value or heuristic.state:
            raise DeviceError("cublasLt has no kernel for a product", where=str(descriptor))
        return heuristic

    def close(self) -> None:
        """Release the library's objects."""
        with _lock:
            for prepared in self._prepared.values():
                _release(prepared)
            self._prepared.clear()
            if self._handle is not None:
                _call("cublasLtDestroy", self._handle)
                self._handle = None


def _alignment(addresses: Sequence[int]) -> int:
    """Return the largest common alignment of the addresses in bytes, at most MAX_ALIGNMENT."""
    together = MAX_ALIGNMENT
    for address in addresses:
        together |= address
    return together & -together


def _scalars(descriptor: ProductDescriptor) -> tuple[Any, Any]:
    """Return the factors of the product and of ``c``, in the type of the sums."""
    kind = {"f32": ctypes.c_float, "tf32": ctypes.c_float, "f64": ctypes.c_double, "i32": ctypes.c_int32}[
        descriptor.compute
    ]
    number = int if descriptor.compute == "i32" else float
    return kind(number(descriptor.alpha)), kind(number(descriptor.c is not None))


def describe(descriptor: ProductDescriptor) -> dict[str, int]:
    """Return the attributes of a descriptor as the library stores them, read back; needs no GPU."""
    with _lock:
        prepared = _prepare(descriptor)
        try:
            attributes = {}
            for name, attribute, kind in (
                *(("compute", 0, ctypes.c_int32), ("scale", 1, ctypes.c_int32)),
                *(("transpose_a", _TRANSA, ctypes.c_int32), ("transpose_b", _TRANSB, ctypes.c_int32)),
                *(("epilogue", _EPILOGUE, ctypes.c_uint32), ("aux_leading", _AUX_LD, ctypes.c_int64)),
                ("aux_stride", _AUX_STRIDE, ctypes.c_int64),
            ):
                attributes[name] = _get("cublasLtMatmulDescGetAttribute", prepared.operation, attribute, kind())
            for name, layout in prepared.layouts.items():
                for field, attribute, kind in (
                    *(("type", 0, ctypes.c_uint32), ("order", _LAYOUT_ORDER, ctypes.c_int32)),
                    *(("rows", 2, ctypes.c_uint64), ("columns", 3, ctypes.c_uint64), ("leading", 4, ctypes.c_int64)),
                    *(("batch", _LAYOUT_BATCH, ctypes.c_int32), ("stride", _LAYOUT_STRIDE, ctypes.c_int64)),
                ):
                    attributes[f"{name}.{field}"] = _get("cublasLtMatrixLayoutGetAttribute", layout, attribute, kind())
            return attributes
        finally:
            _release(prepared)


def _get(function: str, what: ctypes.c_void_p, attribute: int, value: Any) -> int:
    written = ctypes.c_size_t()
    size = ctypes.c_size_t(ctypes.sizeof(value))
    _call(function, what, attribute, ctypes.byref(value), size, ctypes.byref(written))
    return value.value
