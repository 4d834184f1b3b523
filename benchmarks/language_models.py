"""A language model beside llama.cpp: ``python -m benchmarks.language_models FILE [--threads N] [--json]``.

FILE is a GGUF file. Both read a prompt of random tokens and generate the most likely tokens, in alternating rounds;
``llama-cpp-python`` is called through its Python methods. Then both continue twenty texts, and the number of equal
tokens of each is compared. ``--float`` only does that, with the same weights as f32 for llama.cpp, and f32 caches: it
then does not round the inputs of products to 8 bits. Where tokens differ, it prints the difference of the two largest
logits. ``--perplexity TEXT`` compares the perplexities of a text file instead: of graphc, of graphc with f32 weights,
and of llama.cpp, which has them as f32, too, with ``--float``. ``--rows 1,4,8`` measures batches of graphc instead: for
each number of rows as many short texts, by one compiled step. ``--start`` measures new processes instead, with programs
in the cache and stored bytecode: seconds to the first token, and the peak of resident memory. Without llama-cpp-python
graphc runs alone.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import graphc as gc
from benchmarks.harness.results import format_table
from benchmarks.harness.timing import find_library
from graphc.cli.token_times import Timed
from graphc.llm.blocks import dequantize
from graphc.llm.gguf_file import read_gguf
from tools.gguf_files import gguf_bytes

TEXTS = (
    "The capital of France is",
    "Once upon a time",
    "def fibonacci(n):",
    "Water boils at",
    "The three laws of motion",
    "Dear Sir or Madam,",
    "In 1969, people",
    "The opposite of hot is",
    "A recipe for bread:",
    "1, 2, 3, 4,",
    "The largest planet is",
    "import numpy as np",
    "To be or not to be,",
    "My favourite colour is",
    "The train leaves at",
    "Photosynthesis is the process",
    "SELECT name FROM users",
    "Chapter 1. It was a dark",
    "The square root of 144 is",
    "A good friend is someone",
)
_GGML_F32 = 0
"""llama.cpp's number of the type f32."""
_START = (504, 3575, 282)
"""Tokens of the prompt of a new process."""
_PROGRAM = Path(__file__).resolve().parents[1] / "examples" / "language_model" / "generate.c"
_LAUNCHER = """
import os, subprocess, sys, time
begin = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE)
line = process.stdout.readline()
seconds = time.perf_counter() - begin
process.stdout.read()
_, status, usage = os.wait4(process.pid, 0)
print(seconds, usage.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status) or not line.strip())
"""
_GENERATOR = f"""
import sys
import graphc as gc
gc.set_num_threads(int(sys.argv[2]))
print(next(iter(gc.llm.Generator.open(sys.argv[1], places=256).greedy({_START}, 2))), flush=True)
"""
_NATIVE = f"""
import sys
import numpy as np
import graphc as gc
gc.set_num_threads(int(sys.argv[2]))
model = gc.load(sys.argv[1], trust=True)
print(int(model.entries["prefill"](np.array([{_START}], np.int32), 0)["likeliest"][0]), flush=True)
"""
_LLAMA_CPP = f"""
import sys
import llama_cpp
threads = int(sys.argv[2])
model = llama_cpp.Llama(sys.argv[1], n_ctx=256, n_threads=threads, n_threads_batch=threads, verbose=False)
model.eval({_START})
print(model.sample(temp=0), flush=True)
"""
Generate = Callable[[Sequence[int], int], Iterator[int]]
"""Yields tokens after a prompt, of the given number."""


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.language_models", description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--prompt", type=int, default=128, help="tokens of the prompt")
    parser.add_argument("--tokens", type=int, default=64, help="tokens to generate")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--perplexity", metavar="TEXT", help="text file whose perplexities are compared")
    parser.add_argument("--window", type=int, default=512, help="tokens that are predicted together")
    parser.add_argument("--rows", type=_numbers, help="numbers of texts that are generated together")
    parser.add_argument("--start", action="store_true", help="measure the first token of new processes")
    parser.add_argument("--float", action="store_true", help="compare tokens with llama.cpp's of f32 weights")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    gc.set_num_threads(options.threads)
    if options.perplexity is not None:
        with _peer_file(options) as file:
            return _print_perplexities(options, file)
    if options.rows is not None:
        return _print_batches(options)
    if options.float:
        return _print_float(options)
    if options.start:
        return _print_starts(options)
    decoder = gc.llm.load(options.file, places=options.prompt + options.tokens)
    contenders: dict[str, Generate] = {"graphc": _graphc(gc.llm.Generator(decoder))}
    if (peer := find_library("llama_cpp")) is not None:
        contenders["llama.cpp"] = _llama_cpp(peer, options, options.file)
    prompt = np.random.default_rng(0).integers(0, decoder.config.vocabulary, options.prompt).tolist()
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in contenders}
    for number in range(options.rounds + 1):
        for name, generate in contenders.items():
            seconds = Timed(generate(prompt, options.tokens)).measure()
            times[name] += [seconds] if number else []  # the first round compiles
    medians = {name: np.median(rows, axis=0).tolist() for name, rows in times.items()}
    equal = _equal_tokens(contenders, options.file, options.tokens)
    rows = [{"engine": n, "prompt ms": 1e3 * first, "token ms": 1e3 * rest} for n, (first, rest) in medians.items()]
    if options.json:
        print(json.dumps({"threads": options.threads, "times": rows, "equal tokens": equal}, indent=2))
        return 0
    print(format_table([*rows[0]], [[v if type(v) is str else f"{v:.2f}" for v in row.values()] for row in rows]))
    for text, count in equal.items():
        print(f"{count} of {options.tokens} tokens are equal after {text!r}")
    return 0


def _graphc(generator: gc.llm.Generator) -> Generate:
    def generate(prompt: Sequence[int], count: int) -> Iterator[int]:
        generator.reset()
        return generator.greedy(prompt, count)

    return generate


def _llama_cpp(peer: Any, options: argparse.Namespace, file: str, **settings: Any) -> Generate:
    settings |= {"n_threads": options.threads, "n_threads_batch": options.threads, "verbose": False}
    model = peer.Llama(file, n_ctx=options.prompt + options.tokens, **settings)

    def generate(prompt: Sequence[int], count: int) -> Iterator[int]:
        model.reset()
        tokens = list(prompt)
        for _ in range(count):
            model.eval(tokens)
            tokens = [model.sample(temp=0)]
            yield tokens[0]

    return generate


def _print_float(options: argparse.Namespace) -> int:
    """Print how many tokens are those of llama.cpp with the same weights, and caches, as f32."""
    peer = find_library("llama_cpp")
    if peer is None:
        print("llama-cpp-python is not installed", file=sys.stderr)
        return 1
    decoder = gc.llm.load(options.file, places=options.prompt + options.tokens)
    with _peer_file(options) as file:
        other = _llama_cpp(peer, options, file, type_k=_GGML_F32, type_v=_GGML_F32)
    contenders = {"graphc": _graphc(gc.llm.Generator(decoder)), "llama.cpp": other}
    tokenizer, rows = gc.llm.load_tokenizer(options.file), []
    for text in TEXTS:
        prompt = tokenizer.encode(text)
        one, other = (list(generate(prompt, options.tokens)) for generate in contenders.values())
        equal = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=True)))
        gap = 0.0 if equal == options.tokens else _gap(decoder, prompt + one[:equal])
        rows.append({"text": text, "equal": equal, "tokens": options.tokens, "gap": gap})
    if options.json:
        print(json.dumps({"texts": rows}, indent=2))
        return 0
    for row in rows:
        differ = "" if row["equal"] == row["tokens"] else f"; then the largest logits differ by {row['gap']:.2g}"
        print(f"{row['equal']} of {row['tokens']} tokens are equal after {row['text']!r}{differ}")
    return 0


@contextmanager
def _peer_file(options: argparse.Namespace) -> Iterator[str]:
    """Yield the path of the peer's file: with ``--float`` a temporary one whose weights are f32."""
    if not options.float:
        yield options.file
        return
    with TemporaryDirectory() as folder:
        source, path = read_gguf(options.file), Path(folder, "float.gguf")
        floats = {name: ("F32", dequantize(*tensor)) for name, tensor in source.tensors.items()}
        path.write_bytes(gguf_bytes(source.metadata, floats))
        yield str(path)


def _gap(decoder: Any, tokens: Sequence[int]) -> float:
    """Return the difference of the two largest logits after tokens."""
    with gc.no_grad():
        largest = decoder(gc.tensor([[*tokens]]))[0, -1].topk(2)[0].tolist()
    return largest[0] - largest[1]


def _print_perplexities(options: argparse.Namespace, file: str) -> int:
    decoder = gc.llm.load(options.file, places=options.window)
    tokens = gc.llm.load_tokenizer(options.file).encode(Path(options.perplexity).read_text(encoding="utf-8"))
    values = {
        "graphc, f32 weights": gc.llm.perplexity(decoder.train(), tokens, options.window),
        "graphc": gc.llm.perplexity(decoder.eval(), tokens, options.window),
    }
    if (peer := find_library("llama_cpp")) is not None:
        values["llama.cpp"] = _llama_cpp_perplexity(peer, options, file, np.array(tokens))
    exact = values["graphc, f32 weights"]
    rows = [{"engine": n, "perplexity": v, "difference %": 100 * (v / exact - 1)} for n, v in values.items()]
    if options.json:
        print(json.dumps({"tokens": len(tokens), "window": options.window, "perplexities": rows}, indent=2))
        return 0
    print(f"{len(tokens)} tokens, windows of {options.window}")
    print(format_table([*rows[0]], [[n, f"{v:.4f}", f"{d:+.4f}"] for n, v, d in (row.values() for row in rows)]))
    return 0


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


def _print_batches(options: argparse.Namespace) -> int:
    """Print the time of a step for each number of rows, prompts included, from alternating rounds."""
    tokenizer, count = gc.llm.load_tokenizer(options.file), options.tokens
    prompts = [tokenizer.encode(text) for text in TEXTS]
    generators = {rows: gc.llm.Generator(gc.llm.load(options.file, places=256, rows=rows)) for rows in options.rows}
    seconds: dict[int, list[float]] = {rows: [] for rows in generators}
    texts: dict[int, list[list[int]]] = {}
    for number in range(options.rounds + 1):
        for rows, generator in generators.items():
            start = time.perf_counter()
            texts[rows] = generator.generate_batch([prompts[i % len(prompts)] for i in range(rows)], count)
            seconds[rows] += [time.perf_counter() - start] if number else []  # the first round compiles
    alone = [list(next(iter(generators.values())).greedy(prompt, count)) for prompt in prompts]
    equal = {rows: sum(text == alone[i % len(alone)] for i, text in enumerate(texts[rows])) for rows in texts}
    medians = {rows: float(np.median(times)) for rows, times in seconds.items()}
    results = [
        {"rows": n, "step ms": 1e3 * s / count, "tokens a second": n * count / s, "texts as alone": equal[n]}
        for n, s in medians.items()
    ]
    if options.json:
        print(json.dumps({"threads": options.threads, "batches": results}, indent=2))
        return 0
    print(format_table([*results[0]], [[f"{value:.4g}" for value in row.values()] for row in results]))
    return 0


def _print_starts(options: argparse.Namespace) -> int:
    """Print the medians of the first token's time and of the peak of memory of new processes, in alternating rounds."""
    decoder = gc.llm.load(options.file, places=256)
    with TemporaryDirectory() as folder:
        native = str(Path(folder, "model.gcm"))
        gc.export(decoder.entries(), path=native, native=True)
        python = [sys.executable, "-c"]
        commands = {
            "graphc, Generator": [*python, _GENERATOR, options.file, str(options.threads)],
            "graphc, native .gcm": [*python, _NATIVE, native, str(options.threads)],
        }
        if (compiler := shutil.which("cc")) is not None:
            gc.build_library(decoder.entries(), path=Path(folder, "model.so"))
            build = [compiler, "-O2", "-I.", "-o", "generate", str(_PROGRAM), "./model.so", "-Wl,-rpath,."]
            subprocess.run(build, cwd=folder, check=True)
            commands["graphc, C library"] = ["./generate", "1", *map(str, _START)]
        if find_library("llama_cpp") is not None:
            commands["llama.cpp, Python"] = [*python, _LLAMA_CPP, options.file, str(options.threads)]
        runs: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
        for number in range(options.rounds + 1):
            for name, command in commands.items():
                run = _start(command, folder)
                runs[name] += [run] if number else []  # the first round fills the caches
    medians = {name: np.median(values, axis=0).tolist() for name, values in runs.items()}
    rows = [{"process": name, "first token s": first, "peak MB": peak} for name, (first, peak) in medians.items()]
    if options.json:
        print(json.dumps({"threads": options.threads, "starts": rows}, indent=2))
        return 0
    print(
        format_table([*rows[0]], [[n, f"{first:.3f}", f"{peak:.0f}"] for n, first, peak in (r.values() for r in rows)])
    )
    return 0


def _start(command: Sequence[str], folder: str) -> tuple[float, float]:
    """Return the seconds from the start of a process to its first line, and its peak of resident memory in MB."""
    # NOTE: a small process starts it, since the peak of a child begins with the memory of its parent.
    launcher = [sys.executable, "-S", "-c", _LAUNCHER, *command]
    # Installed packages have bytecode; in a checkout the first process writes it.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(launcher, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[0]} ended with {done.returncode} before its first token")
    seconds, kilobytes = map(float, done.stdout.split())
    return seconds, kilobytes / 1024


def _llama_cpp_perplexity(peer: Any, options: argparse.Namespace, file: str, tokens: np.ndarray) -> float:
    """Return the perplexity over the windows of ``gc.llm.perplexity``."""
    window, threads = options.window, {"n_threads": options.threads, "n_threads_batch": options.threads}
    model = peer.Llama(file, n_ctx=window, n_batch=window, logits_all=True, verbose=False, **threads)
    total = 0.0
    for start in range(0, tokens.size - 1, window):
        part = tokens[start : start + window + 1]
        model.reset()
        model.eval(part[:-1].tolist())
        logits = np.array(model.scores[: part.size - 1], np.float64)
        largest = logits.max(-1, keepdims=True)
        total += (largest[:, 0] + np.log(np.exp(logits - largest).sum(-1))).sum()
        total -= logits[np.arange(part.size - 1), part[1:]].sum()
    return float(np.exp(total / (tokens.size - 1)))


def _equal_tokens(contenders: dict[str, Generate], file: str, count: int) -> dict[str, int]:
    """Return, by text, how many tokens after it are the same until the first that differs."""
    if len(contenders) == 1:
        return {}
    tokenizer, equal = gc.llm.load_tokenizer(file), {}
    for text in TEXTS:
        one, other = (list(generate(tokenizer.encode(text), count)) for generate in contenders.values())
        equal[text] = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=True)))
    return equal


if __name__ == "__main__":
    sys.exit(main())
