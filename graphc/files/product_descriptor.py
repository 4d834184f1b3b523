"""Descriptors of matrix products for libraries such as cuBLASLt: column-major matrices and an epilogue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from graphc.base.errors import ArtifactError
from graphc.base.records import dataclass

COMPUTE_TYPES = ("f32", "tf32", "f64", "i32")
"""Types of accumulation. ``tf32``: f32 with operands rounded to 10 bits of fraction."""
ELEMENT_TYPES = ("f32", "f64", "f16", "bf16", "i8", "i32")
EPILOGUES = (
    *("none", "bias", "relu", "relu_bias", "gelu", "gelu_bias", "gelu_aux", "gelu_aux_bias"),
    *("dgelu", "dgelu_bgrad", "bgrada", "bgradb"),
)
"""Operations on the sums: add a bias for each row of the result, then apply ``relu`` or ``gelu`` (by tanh). ``aux``
stores the argument of gelu; ``dgelu`` multiplies by its derivative there. ``bgrad`` stores the sum of each row of the
result as bias, ``bgrada`` and ``bgradb`` the sums over the contracted axis of the rows of a, or of the columns of b."""


@dataclass(frozen=True)
class Matrix:
    """Batch of column-major matrices: element (r, c) of matrix i is at ``i * stride + c * leading + r``."""

    type: str
    """One of ELEMENT_TYPES."""
    rows: int
    columns: int
    leading: int
    """Elements from one column to the next."""
    batch: int = 1
    stride: int = 0
    """Elements from one matrix to the next."""

    @property
    def extent(self) -> int:
        """Number of elements from the first to one past the last."""
        if not (self.rows and self.columns and self.batch):
            return 0
        return (self.batch - 1) * self.stride + (self.columns - 1) * self.leading + self.rows


@dataclass(frozen=True)
class ProductDescriptor:
    """``d = epilogue(alpha * op(a) op(b) + c)`` for each matrix of a batch. Matrices are described as stored, before
    ``op`` transposes them."""

    compute: str
    """One of COMPUTE_TYPES."""
    a: Matrix
    b: Matrix
    d: Matrix
    transpose_a: bool = False
    transpose_b: bool = False
    epilogue: str = "none"
    """One of EPILOGUES."""
    alpha: float = 1.0
    c: Matrix | None = None
    """Matrix that is added, with the type and shape of ``d``; it may share memory with ``d``."""
    aux_leading: int = 0
    """Leading dimension of the matrices of gelu's arguments."""
    aux_stride: int = 0

    @property
    def operands(self) -> tuple[str, ...]:
        """Operands with an address, in the order of the addresses."""
        names = ["a", "b", "d"]
        if self.c is not None:
            names.append("c")
        if "bias" in self.epilogue or "bgrad" in self.epilogue:
            names.append("bias")
        if "aux" in self.epilogue or self.epilogue.startswith("dgelu"):
            names.append("aux")
        return tuple(names)

    @property
    def written(self) -> tuple[str, ...]:
        """Operands to which the product is written."""
        return (
            "d",
            *(["bias"] if "bgrad" in self.epilogue else []),
            *(["aux"] if "aux" in self.epilogue else []),
        )

    @property
    def m(self) -> int:
        """Rows of the result."""
        return self.d.rows

    @property
    def n(self) -> int:
        """Columns of the result."""
        return self.d.columns

    @property
    def k(self) -> int:
        """Terms of each sum."""
        return self.a.rows if self.transpose_a else self.a.columns

    @property
    def aux(self) -> Matrix:
        """Matrices of gelu's arguments."""
        return Matrix(self.d.type, self.d.rows, self.d.columns, self.aux_leading, self.d.batch, self.aux_stride)

    @property
    def bias_length(self) -> int:
        """Number of elements of the bias, or of the sums stored as bias."""
        return self.n if self.epilogue == "bgradb" else self.m

    def complaint(self) -> str:
        """Return the first fault of the descriptor as a message; empty if it is valid."""
        shapes = {
            "a": (self.a, (self.k, self.m) if self.transpose_a else (self.m, self.k)),
            "b": (self.b, (self.n, self.k) if self.transpose_b else (self.k, self.n)),
            "d": (self.d, (self.m, self.n)),
            "c": (self.c or self.d, (self.m, self.n)),
        }
        for name, (matrix, shape) in shapes.items():
            if (matrix.rows, matrix.columns) != shape:
                return f"{name} is {matrix.rows}x{matrix.columns}, not {shape[0]}x{shape[1]}"
            if matrix.leading < max(1, matrix.rows):
                return f"the leading dimension {matrix.leading} of {name} is less than its {matrix.rows} rows"
            if matrix.batch != self.d.batch:
                return f"{name} has {matrix.batch} matrices, d has {self.d.batch}"
            if matrix.type not in ELEMENT_TYPES:
                return f"{name} has elements of type {matrix.type}"
        if self.compute not in COMPUTE_TYPES:
            return f"sums of type {self.compute}"
        if "aux" in self.operands and (self.aux_leading < self.m or self.aux_leading % 8):
            return f"the leading dimension {self.aux_leading} of aux is not a multiple of 8 of at least {self.m}"
        return "" if self.epilogue in EPILOGUES else f"there is no epilogue {self.epilogue}"

    def fields(self) -> dict[str, Any]:
        """Return a flat dictionary: ``{"compute": "f32", "a.type": "f32", "a.rows": 64, ...}``."""
        flat: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Matrix):
                flat.update({f"{field.name}.{x.name}": getattr(value, x.name) for x in fields(value)})
            elif value is not None:
                flat[field.name] = value
        return flat


def as_descriptor(value: ProductDescriptor | Mapping[str, Any]) -> ProductDescriptor:
    """Return a descriptor unchanged, or the one with these ``fields``; raises ArtifactError for unknown fields."""
    if isinstance(value, ProductDescriptor):
        return value
    nested: dict[str, dict[str, Any]] = {}
    plain: dict[str, Any] = {}
    for name, item in value.items():
        matrix, _, field = name.partition(".")
        if field:
            nested.setdefault(matrix, {})[field] = item
        else:
            plain[name] = item
    try:
        matrices: dict[str, Any] = {name: Matrix(**fields) for name, fields in nested.items()}
        return ProductDescriptor(**plain, **matrices)
    except TypeError as error:
        raise ArtifactError(f"a product of the library: {error}") from None
