"""Generators over model files: tokens are those of the compiled decoder, in the cache and in files of users."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import graphc as gc
from graphc import llm
from graphc.errors import ArgumentError, ArtifactError
from tools.gguf_files import write_random_decoder

PROMPT = np.random.default_rng(0).integers(0, 300, 70).tolist()
SAMPLINGS = [
    llm.Sampling(),
    llm.Sampling(repetition_penalty=1.3),
    llm.Sampling(temperature=1.0, top_k=20, top_p=0.9, min_p=0.01, seed=3),
]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_random_decoder(tmp_path_factory.mktemp("llm") / "model.gguf")


@pytest.fixture(scope="module")
def compiled(source: Path) -> llm.Generator:
    return llm.Generator(llm.load(source, places=128))


@pytest.fixture(scope="module")
def file(source: Path) -> Path:
    gc.export(llm.load(source, places=128).entries(), path=source.with_name("model.gcm"))
    return source.with_name("model.gcm")


@pytest.fixture(scope="module")
def stored(file: Path) -> llm.Generator:
    return llm.Generator.open(file)


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("length", [1, 5, 70, 110])
def test_tokens_are_those_of_the_compiled_decoder(
    stored: llm.Generator, compiled: llm.Generator, length: int, sampling: llm.Sampling
):
    prompt = (PROMPT * 2)[:length]
    for generator in (stored, compiled):
        generator.reset()
    expected = list(compiled.generate(prompt, 18, sampling=sampling))
    assert list(stored.generate(prompt, 18, sampling=sampling)) == expected
    assert list(stored.generate([*prompt[:-1], 7], 3)) == list(compiled.generate([*prompt[:-1], 7], 3))


def test_texts_one_after_the_other(stored: llm.Generator, compiled: llm.Generator):
    prompts, samplings = [PROMPT[:3], PROMPT[3:40]], SAMPLINGS[1:]
    assert stored.generate_batch(prompts, 6, (), samplings) == compiled.generate_batch(prompts, 6, (), samplings)


def test_prompt_caches_pass_between_the_file_and_the_decoder(
    stored: llm.Generator, compiled: llm.Generator, tmp_path: Path
):
    text = [*PROMPT[:9], *compiled.greedy(PROMPT[:9], 4)]
    compiled.save(tmp_path / "text.npz")
    stored.restore(tmp_path / "text.npz")
    assert stored.held() == text[:-1]
    assert list(stored.greedy(text, 3)) == list(compiled.greedy(text, 3))
    stored.save(tmp_path / "text.npz")
    compiled.restore(tmp_path / "text.npz")
    other = llm.Generator(llm.load(write_random_decoder(tmp_path / "other.gguf", ("Q8_0",)), places=128))
    with pytest.raises(ArtifactError, match="another model"):
        other.restore(tmp_path / "text.npz")


def test_other_calls_of_the_entries_are_noticed(file: Path, compiled: llm.Generator):
    model = gc.load(file)
    generator = llm.Generator(model)
    expected = list(compiled.greedy(PROMPT[:7], 3))
    assert list(generator.greedy(PROMPT[:7], 3)) == expected
    model.entries["prefill"](np.array([[1, 2, 3]], np.int32), 0)
    assert generator.held() == [] and list(generator.greedy(PROMPT[:7], 3)) == expected


def test_files_that_do_not_fit(file: Path, source: Path, tmp_path: Path):
    with pytest.raises(ArgumentError, match="caches of 128 places, 129 are wanted"):
        llm.Generator.open(file, 129)
    gc.export(gc.nn.Linear(2, 2), gc.zeros(1, 2), path=tmp_path / "linear.gcm")
    with pytest.raises(ArgumentError, match="no entries prefill and step"):
        llm.Generator.open(tmp_path / "linear.gcm")
    gc.export(llm.load(source, places=128, rows=2).entries(), path=tmp_path / "rows.gcm")
    with pytest.raises(ArgumentError, match="of one text"):
        llm.Generator.open(tmp_path / "rows.gcm")


def test_the_second_process_imports_neither_modules_nor_the_compiler(source: Path, tmp_path: Path):
    program = (
        "import sys, graphc as gc\n"
        "print(*gc.llm.Generator.open(sys.argv[1], 128).greedy([5, 8, 13], 4))\n"
        "print(*(name in sys.modules for name in ('llvmlite', 'graphc.nn.module', 'graphc.llm.loading')))\n"
    )
    environment = {"GRAPHC_CACHE": "on", "GRAPHC_CACHE_DIR": str(tmp_path / "cache"), "PATH": ""}
    outputs = []
    for _ in range(2):
        command = [sys.executable, "-c", program, str(source)]
        done = subprocess.run(
            command, env=environment, cwd=Path(gc.__file__).parents[1], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        outputs.append(done.stdout.splitlines())
    assert outputs[0][0] == outputs[1][0]
    assert (outputs[0][1], outputs[1][1]) == ("True True True", "False False False")


def test_a_model_of_64_places_and_one_without_a_cache(source: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    expected = list(llm.Generator(llm.load(source, places=64)).greedy(PROMPT[:5], 2))
    assert list(llm.Generator.open(source, 64).greedy(PROMPT[:5], 2)) == expected
    monkeypatch.setenv("GRAPHC_CACHE", "on")
    monkeypatch.setenv("GRAPHC_CACHE_DIR", str(tmp_path / "cache"))
    assert list(llm.Generator.open(source, 64).greedy(PROMPT[:5], 2)) == expected
    assert not list((tmp_path / "cache").glob("*.gcm"))
