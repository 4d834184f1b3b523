"""Training of adapters beside torch: ``python -m benchmarks.lora FILE [--tokens N] [--threads N] [--json]``.

FILE is a GGUF file. Both put adapters of rank 8 around the projections of queries and values and train them on one row
of random tokens by AdamW, in alternating rounds: graphc as a compiled step over quantized weights, torch as the eager
model of ``transformers`` with f32 weights of the same file (packages ``transformers``, ``accelerate`` and ``gguf``).
The adapters begin equal, so the losses of the last steps have to agree. Without transformers graphc runs alone.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import graphc as gc
from benchmarks.harness.results import format_table
from benchmarks.harness.timing import find_library
from graphc.nn import functional as F

RANK, ALPHA, TARGETS, RATE = 8, 16.0, ("q_proj", "v_proj"), 1e-3
Step = Callable[[], float]
"""Updates the adapters once and returns the loss before."""


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lora", description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=128, help="tokens of a step")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=3, help="steps of a round")
    parser.add_argument("--memory", help="limit of temporary memory, as of gc.compile_step")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    gc.set_num_threads(options.threads)
    model = gc.llm.add_lora(gc.llm.load(options.file, places=options.tokens), RANK, ALPHA, TARGETS).train()
    random = np.random.default_rng(0)
    tokens = random.integers(0, model.config.vocabulary, (1, options.tokens + 1))
    adapters = {name: weight.numpy().copy() for name, weight in gc.llm.lora_state(model).items()}
    start = time.perf_counter()
    own, arena = _graphc(model, tokens, options.memory)
    losses = {"graphc": [own()]}
    facts = {"first step": time.perf_counter() - start, "temporary MB": arena() / 1e6, "peak MB": _peak_megabytes()}
    contenders: dict[str, Step] = {"graphc": own}
    if (peer := find_library("transformers")) is not None:
        contenders["torch"] = _torch(peer, options, adapters, tokens)
        losses["torch"] = [contenders["torch"]()]
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(options.rounds):
        for name, step in contenders.items():
            start = time.perf_counter()
            losses[name] += [step() for _ in range(options.steps)]
            times[name].append((time.perf_counter() - start) / options.steps)
    rows = [
        {"engine": name, "steps / s": 1 / float(np.median(t)), "first loss": losses[name][0], "last": losses[name][-1]}
        for name, t in times.items()
    ]
    if options.json:
        print(json.dumps({"tokens": options.tokens, "threads": options.threads, "engines": rows, **facts}, indent=2))
        return 0
    print(format_table([*rows[0]], [[v if type(v) is str else f"{v:.4f}" for v in row.values()] for row in rows]))
    first, temporary, peak = facts.values()
    print(f"graphc: first step {first:.1f} s, temporary memory {temporary:.0f} MB, peak of the process {peak:.0f} MB")
    return 0


def _peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def _graphc(model: Any, tokens: np.ndarray, memory: str | None) -> tuple[Step, Callable[[], int]]:
    """Return a compiled step, and a function that returns the bytes of its temporary memory."""
    optimizer = gc.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=RATE)
    step = gc.compile_step(
        model, lambda logits, y: F.cross_entropy(logits.flatten(0, 1), y.flatten()), optimizer, memory=memory
    )
    x, y = gc.tensor(tokens[:, :-1].copy()), gc.tensor(tokens[:, 1:].copy())
    return lambda: step(x, y).item(), lambda: max(plan.arena for plan in step.plan())


def _torch(peer: Any, options: argparse.Namespace, adapters: dict[str, np.ndarray], tokens: np.ndarray) -> Step:
    """Return a step of the same model with the formula of LoRA in a hook after each layer."""
    torch: Any = find_library("torch")
    torch.set_num_threads(options.threads)
    path = Path(options.file)
    model = peer.AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32)
    model.requires_grad_(False)
    trained = {name: torch.nn.Parameter(torch.from_numpy(a)) for name, a in adapters.items()}

    def adapt(a: Any, b: Any) -> Callable[..., Any]:
        linear = torch.nn.functional.linear
        return lambda layer, inputs, output: output + linear(linear(inputs[0], a), b) * (ALPHA / RANK)

    for name, layer in model.named_modules():
        if name.endswith(TARGETS):
            matrices = (trained[f"base_model.model.{name}.lora_{m}.weight"] for m in "AB")
            layer.register_forward_hook(adapt(*matrices))
    optimizer = torch.optim.AdamW(trained.values(), lr=RATE, fused=True)
    x, y = torch.from_numpy(tokens[:, :-1].copy()), torch.from_numpy(tokens[:, 1:].copy())

    def step() -> float:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x).logits.flatten(0, 1), y.flatten())
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


if __name__ == "__main__":
    sys.exit(main())
