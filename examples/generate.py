"""Train a small language model, exports it as one model file, and generates text: blocks, then token by token."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import generator
import numpy as np
from decoder import BLOCK, PLACES, ROWS, Decoder

import graphc as gc
from graphc.nn import functional as F


def train(decoder: Decoder, steps: int) -> float:
    """Learn the source text of these examples; return the loss of the last steps."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    code = "\n".join(path.read_text(encoding="utf-8") for path in sources).encode("ascii", "replace")
    text = np.frombuffer(code, np.uint8).astype(np.int64)
    step = gc.compile_step(decoder.train(), F.cross_entropy, gc.optim.AdamW(decoder.parameters(), lr=2e-3))
    random, losses = np.random.default_rng(0), []
    for _ in range(steps):
        rows = np.stack([text[i : i + 65] for i in random.integers(0, len(text) - 65, 16)])
        losses.append(step(gc.tensor(rows[:, :-1].copy()), gc.tensor(rows[:, 1:].reshape(-1))).item())
    return float(np.mean(losses[-20:]))


def compare(eager: generator.Generator, model: Any, rows: int, args: argparse.Namespace) -> dict[str, Any]:
    """Return speeds, texts, and whether eager mode draws the same tokens from the same seed."""
    prompt = np.tile(np.frombuffer(args.prompt.encode("ascii"), np.uint8).astype(np.int64), (rows, 1))

    def run(call: generator.Call, count: int) -> tuple[np.ndarray, float, float]:
        gc.manual_seed(args.seed)
        model.states["graphc.random"][:] = (args.seed, 0)
        with gc.no_grad():
            return generator.generate(call, prompt, count, generator.settings(args.temperature, args.top_k, args.top_p))

    run(model, 2)
    text, first, others = run(model, args.tokens)
    return {
        "rows": rows,
        "prompt_tokens_per_second": prompt.size / first,
        "tokens_per_second": (text.size - rows) / others,
        "same_as_eager": np.array_equal(run(eager, args.tokens)[0], text),
        "texts": [bytes(row.astype(np.uint8)).decode("ascii") for row in text],
    }


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prompt", default="def main(", help="beginning of the text, ASCII")
    numbers = {"steps": 300, "tokens": 100, "seed": 0, "temperature": 0.8, "top-k": 40, "top-p": 0.95}
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=type(default), default=default, help=f"default: {default}")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the model file (default: out)")
    parser.add_argument("--json", action="store_true", help="print figures and texts as JSON")
    args = parser.parse_args(argv)
    if not (args.prompt and args.prompt.isascii() and 2 <= args.tokens <= PLACES - BLOCK - len(args.prompt)):
        parser.error(f"a prompt is ASCII, and with 2 tokens or more it takes at most {PLACES - BLOCK} positions")
    args.out.mkdir(parents=True, exist_ok=True)
    gc.manual_seed(0)
    eager, path = generator.Generator(Decoder()), args.out / "generate.gcm"
    loss = train(eager.decoder, args.steps)
    generator.export(eager.eval(), path)
    runs = [compare(eager, gc.load(path), rows, args) for rows in (1, ROWS)]
    print(json.dumps({"loss": loss, "runs": runs}) if args.json else f"loss after {args.steps} steps: {loss:.3f}")
    for run in [] if args.json else runs:
        speeds = (
            f"{run['prompt_tokens_per_second']:.0f} tokens/s of the prompt, {run['tokens_per_second']:.0f} tokens/s"
        )
        print(f"\n{run['rows']} at once: {speeds} behind it; eager mode draws the same: {run['same_as_eager']}")
        print(*(f"  {args.prompt + text!r}" for text in run["texts"]), sep="\n")


if __name__ == "__main__":
    main()
