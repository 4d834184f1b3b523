"""Constants of WASI commands."""

from __future__ import annotations

import pytest

from graphc.c_library.plan import TYPE_NUMBERS
from graphc.c_library.wasi_runtime import runtime, text_constant


@pytest.mark.parametrize(("text", "constant"), [("a]", r'[3 x i8] c"\61\5D\00"'), ("\x93N", r'[3 x i8] c"\93\4E\00"')])
def test_texts_end_with_a_zero(text: str, constant: str):
    assert text_constant(text) == constant


def test_each_type_has_the_name_that_numpy_writes():
    lines = runtime("wasm32-unknown-unknown").splitlines()
    for name, description in {"f32": "<f4'", "bool": "|b1'", "i8": "|i1'", "u64": "<u8'", "bf16": "<u2'"}.items():
        assert f"@description.{name} = internal constant {text_constant(description)}" in lines
    assert f"@item.bytes = internal constant [{len(TYPE_NUMBERS) + 1} x i64] [i64 0, i64 8, i64 4," in "\n".join(lines)
