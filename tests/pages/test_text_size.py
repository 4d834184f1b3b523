"""Texts: estimated widths, shapes, and shortened texts."""

from __future__ import annotations

import pytest

from graphc.pages.text_size import clip, last_name, literal_text, shape_text, text_width


def test_widths_grow_with_texts_and_sizes():
    assert text_width("", 11) == 0
    assert text_width("ill", 11) < text_width("mmm", 11) < text_width("mmm", 11, bold=True) < text_width("mmm", 13)


@pytest.mark.parametrize(
    ("text", "plain", "bold"),
    [
        ("conv1: Conv2d 1×64", 116.0, 127.1),
        ("scaled_dot_product_attention", 162.3, 182.8),
        ("running_var 64", 83.2, 93.0),
        ("bn1: BatchNorm2d", 103.8, 116.2),
        ("i64[1,16]", 50.1, 56.3),
        ("WWWW", 43.5, 48.5),
    ],
)
def test_estimates_are_at_least_the_widths_of_a_wide_font(text: str, plain: float, bold: float):
    # The widths are those of DejaVu Sans at 11 pixels, measured with FreeType.
    assert plain <= text_width(text, 11) <= 1.2 * plain
    assert bold <= text_width(text, 11, bold=True) <= 1.2 * bold


@pytest.mark.parametrize(
    ("type_text", "shown"),
    [("f32[1,64,56]", "1×64×56"), ("i64[3]", "i64 3"), ("f32[]", "scalar"), ("f32[batch,3]", "batch×3"), ("", "")],
)
def test_shapes(type_text: str, shown: str):
    assert shape_text(type_text) == shown


def test_short_texts():
    assert clip("abcdef", 4) == "abc…" and clip("abcd", 4) == "abcd"
    assert literal_text("f32(1.0)") == "1.0" and literal_text("x") == "x"
    assert last_name("blocks.0.fc.weight") == "weight" and last_name("0.1") == "0.1"
