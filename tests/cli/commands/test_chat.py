"""``graphc chat``: conversations of lines from stdin."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from graphc import llm
from graphc.cli import console
from tests.cli.conftest import Graphc
from tools.gguf_files import write_random_decoder

pytest.importorskip("tokenizers", reason="tokenizers is not installed")
pytest.importorskip("jinja2", reason="jinja2 is not installed")
Prompts = list[str]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_random_decoder(tmp_path / "model.gguf")


@pytest.fixture
def type_lines(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    return lambda *lines: monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))


@pytest.fixture
def prompts(model: Path, monkeypatch: pytest.MonkeyPatch) -> Prompts:
    """Prompts of answers, which are their own number and then a stop; the answer to "wait" is interrupted."""
    tokenizer, prompts = llm.load_tokenizer(model), []

    def generate(self: llm.Generator, ids: list[int], count: int, stops: object, sampling: object) -> Iterator[int]:
        prompts.append(tokenizer.core.decode(ids, skip_special_tokens=False))
        yield from tokenizer.encode(f"{len(prompts)}. Yes")[:count]
        if "wait" in prompts[-1].split("<|0|>")[-2]:
            raise KeyboardInterrupt

    monkeypatch.setattr(llm.Generator, "generate", generate)
    return prompts


def test_a_conversation(model: Path, graphc: Graphc, prompts: Prompts, type_lines: Callable[..., None]):
    type_lines("a", "", "b", "/reset", "c")
    done = graphc("chat", model, "--stop", "es")
    assert (done.code, done.out, done.err) == (0, "1. Y\n2. Y\n3. Y\n", "")
    first, answer, second = "<|1|>user: a<|0|><|1|>assistant: ", "1. Y<|0|>", "<|1|>user: b<|0|><|1|>assistant: "
    assert prompts == [first, first + answer + second, first.replace("user: a", "user: c")]


def test_instructions_and_an_interrupted_answer(
    model: Path, graphc: Graphc, prompts: Prompts, type_lines: Callable[..., None]
):
    type_lines("wait", "b")
    done = graphc("chat", model, "--system", "Obey.", "--json")
    ends = [json.loads(line)["end"] for line in done.out.splitlines()]
    assert (done.code, ends) == (0, ["interrupted", "stop"])
    assert prompts[1].startswith("<|1|>system: Obey.<|0|><|1|>user: wait<|0|><|1|>assistant: 1. Yes<|0|><|1|>user: b")


def test_full_caches(model: Path, graphc: Graphc, prompts: Prompts, type_lines: Callable[..., None]):
    type_lines("x" * 39, "y", "/reset", "z" * 60, "c")
    done = graphc("chat", model, "--places", 64)
    assert (done.code, done.out) == (0, "1. Ye\n2. Yes\n")
    assert [line for line in done.err.splitlines() if "error" in line] == [
        "error: the answer ends because the caches hold 64 tokens",
        "error: the conversation has 86 tokens, and the caches hold 64",
        "error: the conversation has 80 tokens, and the caches hold 64",
    ]


def test_the_caches_are_kept_between_answers(
    model: Path, graphc: Graphc, type_lines: Callable[..., None], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("graphc.llm.compiled_programs.compile", lambda step, dims: step)
    type_lines("a", "b")
    done = graphc("chat", model, "--tokens", 3, "--json")
    first, second = map(json.loads, done.out.splitlines())
    assert first["read_tokens"] == first["conversation_tokens"]
    # Two of the three tokens were read to compute the next ones.
    assert first["end"] == "tokens" and second["read_tokens"] <= second["conversation_tokens"] - first["read_tokens"]


def test_a_model_without_a_template(model: Path, graphc: Graphc, type_lines: Callable[..., None]):
    model.write_bytes(model.read_bytes().replace(b"tokenizer.chat_template", b"tokenizer.chat_other000"))
    type_lines("a")
    done = graphc("chat", model)
    assert done.code == console.MISMATCH and "no chat template" in done.err
