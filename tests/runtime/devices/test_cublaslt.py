"""cublasLt holds what a descriptor says: read back from the library, which needs no GPU for that."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from graphc.base.errors import DeviceError
from graphc.base.installation import install_command
from graphc.files.product_descriptor import EPILOGUES, Matrix, ProductDescriptor
from graphc.runtime.devices import cublaslt

try:
    cublaslt.library()
except DeviceError:
    pytest.skip("nvidia-cublas is not installed", allow_module_level=True)

A = Matrix("bf16", 40, 30, 48, 7, 2000)
B = Matrix("bf16", 20, 40, 24, 7, 0)
D = Matrix("f32", 30, 20, 32, 7, 640)
GIVEN = ProductDescriptor("f32", A, B, D, True, True, "gelu_aux_bias", 0.5, None, 64, 1280)


def test_layouts() -> None:
    result = cublaslt.describe(GIVEN)
    for name, matrix in (("a", A), ("b", B), ("c", D), ("d", D)):
        parts = {part: result[f"{name}.{part}"] for part in ("rows", "columns", "leading", "batch", "stride")}
        assert parts == {part: getattr(matrix, part) for part in parts}
        assert result[f"{name}.order"] == 0
    assert [result[f"{name}.type"] for name in "abcd"] == [14, 14, 0, 0]


def test_the_operation() -> None:
    result = cublaslt.describe(GIVEN)
    assert (result["compute"], result["scale"]) == (68, 0)
    assert (result["transpose_a"], result["transpose_b"]) == (1, 1)
    assert (result["epilogue"], result["aux_leading"], result["aux_stride"]) == (164, 64, 1280)


@pytest.mark.parametrize(
    ("compute", "numbers"), [("f32", (68, 0)), ("tf32", (77, 0)), ("f64", (70, 1)), ("i32", (72, 10))]
)
def test_what_is_added_in(compute: str, numbers: tuple[int, int]) -> None:
    one = Matrix("f64" if compute == "f64" else "f32", 4, 4, 4)
    result = cublaslt.describe(ProductDescriptor(compute, one, one, one))
    assert (result["compute"], result["scale"]) == numbers


@pytest.mark.parametrize("epilogue", EPILOGUES)
def test_the_library_knows_every_epilogue(epilogue: str) -> None:
    one = Matrix("f32", 8, 8, 8)
    result = cublaslt.describe(ProductDescriptor("f32", one, one, one, epilogue=epilogue, aux_leading=8))
    assert result["epilogue"]


def test_without_a_gpu_the_message_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cublaslt, "library", lambda: SimpleNamespace(cublasLtCreate=lambda handle: 1))
    one = Matrix("f32", 4, 4, 4)
    with pytest.raises(DeviceError, match=r"cublasLtCreate: .*there is no driver or no GPU \(status 1\)"):
        cublaslt.CublasLt().product(ProductDescriptor("f32", one, one, one), [256] * 3, 0, 0)


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cublaslt, "_loaded", [])
    monkeypatch.setattr(cublaslt, "_candidate_paths", lambda: iter(["/nowhere/libcublasLt.so.13"]))
    with pytest.raises(DeviceError, match="cannot be loaded") as caught:
        cublaslt.library()
    assert install_command("cuda") in str(caught.value)
