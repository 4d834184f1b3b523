"""Products of matrices by NVIDIA's cublasLt, which is called as it is, on any stream and while work is recorded."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphc.base.errors import DeviceError
from graphc.base.installation import install_command
from graphc.files.product_descriptor import Matrix, ProductDescriptor

WORKSPACE = 32 << 20
"""Bytes that the library may use besides its operands: what NVIDIA recommends for Hopper."""
MAX_ALIGNMENT = 256
"""Bytes beyond which the alignment of addresses makes no difference."""
_SONAMES = ("libcublasLt.so.13", "libcublasLt.so.12")

# ---- numbers of cublasLt.h, cublas_api.h and library_types.h

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


def _places() -> Iterator[str]:
    """Where the library may lie: in a package of the registry, under CUDA_HOME, where the system looks."""
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
    """The library, loaded once. Raises DeviceError where there is none."""
    with _lock:
        if not _loaded:
            tried = []
            for place in _places():
                try:
                    _loaded.append(ctypes.CDLL(place))
                    break
                except OSError as error:
                    tried.append(f"{place}: {error}")
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
    """What the library wants to know of a descriptor."""

    operation: ctypes.c_void_p
    layouts: dict[str, ctypes.c_void_p]
    algorithm: _Heuristic | None = None


def _operation(given: ProductDescriptor) -> ctypes.c_void_p:
    made = ctypes.c_void_p()
    scale = _TYPES[_SCALE[given.compute]]
    _call("cublasLtMatmulDescCreate", ctypes.byref(made), _COMPUTE[given.compute], scale)
    for attribute, value in (
        (_TRANSA, ctypes.c_int32(int(given.transpose_a))),
        (_TRANSB, ctypes.c_int32(int(given.transpose_b))),
        (_EPILOGUE, ctypes.c_uint32(_EPILOGUES[given.epilogue])),
    ):
        _set("cublasLtMatmulDescSetAttribute", made, attribute, value)
    if "aux" in given.operands:
        _set("cublasLtMatmulDescSetAttribute", made, _AUX_LD, ctypes.c_int64(given.aux_leading))
        if given.d.batch > 1:
            _set("cublasLtMatmulDescSetAttribute", made, _AUX_STRIDE, ctypes.c_int64(given.aux_stride))
    return made


def _layout(matrix: Matrix) -> ctypes.c_void_p:
    made = ctypes.c_void_p()
    sizes = ctypes.c_uint64(matrix.rows), ctypes.c_uint64(matrix.columns), ctypes.c_int64(matrix.leading)
    _call("cublasLtMatrixLayoutCreate", ctypes.byref(made), _TYPES[matrix.type], *sizes)
    _set("cublasLtMatrixLayoutSetAttribute", made, _LAYOUT_ORDER, ctypes.c_int32(_ORDER_COLUMNS))
    if matrix.batch > 1:
        _set("cublasLtMatrixLayoutSetAttribute", made, _LAYOUT_BATCH, ctypes.c_int32(matrix.batch))
        _set("cublasLtMatrixLayoutSetAttribute", made, _LAYOUT_STRIDE, ctypes.c_int64(matrix.stride))
    return made


def _set(function: str, what: ctypes.c_void_p, attribute: int, value: Any) -> None:
    _call(function, what, attribute, ctypes.byref(value), ctypes.c_size_t(ctypes.sizeof(value)))


def _prepare(given: ProductDescriptor) -> _Prepared:
    complaint = given.complaint()
    if complaint:
        raise DeviceError(f"a product of the library: {complaint}", where=str(given))
    matrices = {"a": given.a, "b": given.b, "c": given.c or given.d, "d": given.d}
    return _Prepared(_operation(given), {name: _layout(matrix) for name, matrix in matrices.items()})


def _release(prepared: _Prepared) -> None:
    _call("cublasLtMatmulDescDestroy", prepared.operation)
    for layout in prepared.layouts.values():
        _call("cublasLtMatrixLayoutDestroy", layout)


class CublasLt:
    """The library on one device, whose context is current where methods are called."""

    def __init__(self) -> None:
        self._handle: ctypes.c_void_p | None = None
        self._prepared: dict[tuple[ProductDescriptor, int], _Prepared] = {}

    def product(
        self, given: ProductDescriptor, addresses: Sequence[int], stream: int, workspace: int, nbytes: int = WORKSPACE
    ) -> None:
        """Computes a product on a stream: addresses in the order of ``given.operands``, and so many bytes of workspace
        at an address, a multiple of 256, which nothing else on other streams uses meanwhile. What algorithm is used is
        chosen when a descriptor is met first with addresses so well aligned."""
        with _lock:
            prepared = self._known(given, _alignment(addresses), nbytes)
            at = dict(zip(given.operands, addresses, strict=True))
            self._point(prepared, at)
            assert prepared.algorithm is not None
            alpha, beta = _scalars(given)
            pointers = {name: ctypes.c_void_p(at.get(name, at["d"])) for name in ("a", "b", "c", "d")}
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

    def _known(self, given: ProductDescriptor, alignment: int, nbytes: int) -> _Prepared:
        found = self._prepared.get((given, alignment))
        if found is None:
            if self._handle is None:
                handle = ctypes.c_void_p()
                _call("cublasLtCreate", ctypes.byref(handle))
                self._handle = handle
            found = _prepare(given)
            found.algorithm = self._chosen(given, found, alignment, nbytes)
            self._prepared[given, alignment] = found
        return found

    def _chosen(self, given: ProductDescriptor, prepared: _Prepared, alignment: int, nbytes: int) -> _Heuristic:
        """The algorithm that the library's heuristic puts first."""
        preference = ctypes.c_void_p()
        _call("cublasLtMatmulPreferenceCreate", ctypes.byref(preference))
        _set("cublasLtMatmulPreferenceSetAttribute", preference, _MAX_WORKSPACE, ctypes.c_uint64(nbytes))
        for attribute in _MIN_ALIGNMENT:
            _set("cublasLtMatmulPreferenceSetAttribute", preference, attribute, ctypes.c_uint32(alignment))
        found, count = _Heuristic(), ctypes.c_int()
        self._point(prepared, {name: alignment for name in ("bias", "aux") if name in given.operands})
        layouts = [prepared.layouts[name] for name in ("a", "b", "c", "d")]
        try:
            _call(
                "cublasLtMatmulAlgoGetHeuristic",
                *(self._handle, prepared.operation, *layouts, preference),
                *(1, ctypes.byref(found), ctypes.byref(count)),
            )
        finally:
            _call("cublasLtMatmulPreferenceDestroy", preference)
        if not count.value or found.state:
            raise DeviceError("cublasLt has no kernel for a product", where=str(given))
        return found

    def close(self) -> None:
        """Gives back what the library keeps."""
        with _lock:
            for prepared in self._prepared.values():
                _release(prepared)
            self._prepared.clear()
            if self._handle is not None:
                _call("cublasLtDestroy", self._handle)
                self._handle = None


def _alignment(addresses: Sequence[int]) -> int:
    """Bytes of which all addresses are multiples, of as many as the library cares for."""
    together = MAX_ALIGNMENT
    for address in addresses:
        together |= address
    return together & -together


def _scalars(given: ProductDescriptor) -> tuple[Any, Any]:
    """Factors of the product and of what is added, in the type of the sums."""
    kind = {"f32": ctypes.c_float, "tf32": ctypes.c_float, "f64": ctypes.c_double, "i32": ctypes.c_int32}[given.compute]
    number = int if given.compute == "i32" else float
    return kind(number(given.alpha)), kind(number(given.c is not None))


def describe(given: ProductDescriptor) -> dict[str, int]:
    """What the library holds of a descriptor, read back from it; needs no GPU."""
    with _lock:
        prepared = _prepare(given)
        try:
            found = {}
            for name, attribute, kind in (
                *(("compute", 0, ctypes.c_int32), ("scale", 1, ctypes.c_int32)),
                *(("transpose_a", _TRANSA, ctypes.c_int32), ("transpose_b", _TRANSB, ctypes.c_int32)),
                *(("epilogue", _EPILOGUE, ctypes.c_uint32), ("aux_leading", _AUX_LD, ctypes.c_int64)),
                ("aux_stride", _AUX_STRIDE, ctypes.c_int64),
            ):
                found[name] = _get("cublasLtMatmulDescGetAttribute", prepared.operation, attribute, kind())
            for name, layout in prepared.layouts.items():
                for part, attribute, kind in (
                    *(("type", 0, ctypes.c_uint32), ("order", _LAYOUT_ORDER, ctypes.c_int32)),
                    *(("rows", 2, ctypes.c_uint64), ("columns", 3, ctypes.c_uint64), ("leading", 4, ctypes.c_int64)),
                    *(("batch", _LAYOUT_BATCH, ctypes.c_int32), ("stride", _LAYOUT_STRIDE, ctypes.c_int64)),
                ):
                    found[f"{name}.{part}"] = _get("cublasLtMatrixLayoutGetAttribute", layout, attribute, kind())
            return found
        finally:
            _release(prepared)


def _get(function: str, what: ctypes.c_void_p, attribute: int, value: Any) -> int:
    written = ctypes.c_size_t()
    size = ctypes.c_size_t(ctypes.sizeof(value))
    _call(function, what, attribute, ctypes.byref(value), size, ctypes.byref(written))
    return value.value
