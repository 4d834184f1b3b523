"""The header of a library: what users of it read."""

from __future__ import annotations

from pathlib import Path

import graphc
from graphc import nn
from graphc.c_library.build import build_library
from tests.c_library.conftest import STRICT, Built, run_tool, tool_or_skip


def header(built: Built, name: str, **options: object) -> str:
    return built(name, **options).files["h"].read_text()


def test_functions_have_names_and_types_of_the_model(built: Built):
    text = header(built, "digits")
    assert (
        "int digits_run(const digits_t *net, const float *image, float *output, void *arena, size_t arena_size);"
        in text
    )
    assert "#define DIGITS_RUN_IMAGE_COUNT 784\n#define DIGITS_RUN_IMAGE_RANK 4\n" in text
    assert "#define DIGITS_RUN_IMAGE_SHAPE {1, 1, 28, 28}" in text
    assert "#define DIGITS_RUN_ARENA_SIZE " in text and "size_t digits_run_arena_size(void);" in text
    assert "holds no states" in text and "with one context, each with an arena" in text


def test_sizes_of_calls_are_arguments(built: Built):
    text = header(built, "sizes")
    assert "size_t sizes_run_arena_size(int64_t batch, int64_t time);" in text
    assert "batch: 1 to 64" in text and "#define SIZES_RUN_BATCH_MAX 64\n" in text
    assert "SIZES_RUN_X_COUNT" not in text and "SIZES_RUN_ARENA_SIZE" not in text


def test_states_are_listed_and_make_the_context_writable(built: Built):
    text = header(built, "decoder")
    assert "int decoder_run(decoder_t *net, const int64_t *token," in text
    for state in ("keys: f32[1,24,16]", "values: f32[1,24,16]", "count: i64[1]"):
        assert f" *   {state}" in text


def test_weights_and_threads_have_functions_where_there_are_any(built: Built):
    assert "open_weights" not in header(built, "decoder") and "set_threads" not in header(built, "decoder")
    assert "int decoder_open_weights(const char *path," in header(built, "decoder", weights="beside")
    text = header(built, "wide", threads=True)
    assert "int wide_set_threads(wide_t *net, int64_t count);" in text and "but for the threads" in text


def test_names_that_c_does_not_take_are_others(tmp_path: Path):
    class Odd(nn.Module):
        def forward(self, int_: graphc.Tensor, größe: graphc.Tensor) -> dict[str, graphc.Tensor]:
            return {"*/ class": int_ + größe, "class": int_}

    library = build_library(Odd(), graphc.rand(3), graphc.rand(3), path=tmp_path / "for.so", emit=("so", "h", "c"))
    assert library.name == "for_"
    text = library.files["h"].read_text()
    assert "float *class" in text and "float *class," not in text and "(größe)" in text
    run_tool(tool_or_skip("cc"), "-std=c99", *STRICT, "-c", library.files["c"], "-o", tmp_path / "for.o")
