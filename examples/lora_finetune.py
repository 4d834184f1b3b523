"""Fine-tune a language model on a text with low-rank adapters, save them, merge them, and generate.

``python lora_finetune.py SmolLM2-135M-Instruct.Q4_1.gguf --text FILE``, with the extras ``llm`` and ``interop``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import graphc as gc
from graphc.nn import functional as F

TEXT = Path(__file__).parents[1] / "docs" / "glossary.md"


def loss_of(logits: gc.Tensor, targets: gc.Tensor) -> gc.Tensor:
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def train(model: gc.llm.Decoder, tokens: np.ndarray, args: argparse.Namespace) -> None:
    """Update the adapters on random pieces of the text."""
    adapters = [p for p in model.parameters() if p.requires_grad]
    step = gc.compile_step(model.train(), loss_of, gc.optim.AdamW(adapters, lr=args.lr), clip_norm=1.0)
    random, mean = np.random.default_rng(args.seed), 0.0
    for number in range(1, args.steps + 1):
        start = random.integers(0, len(tokens) - args.window)
        piece = tokens[None, start : start + args.window + 1]
        loss = step(gc.tensor(piece[:, :-1].copy()), gc.tensor(piece[:, 1:].copy())).item()
        mean = loss if number == 1 else 0.9 * mean + 0.1 * loss
        print(f"\rstep {number} of {args.steps}: loss {mean:.3f}", end="", flush=True)
    print()
    model.eval()


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a GGUF file, or a folder with config.json and safetensors files")
    parser.add_argument("--text", type=Path, default=TEXT, help="UTF-8 text to learn (default: the glossary of graphc)")
    parser.add_argument("--prompt", default="A kernel is", help="beginning of the text that is generated")
    parser.add_argument("--out", type=Path, default=Path("adapter"), help="folder of the adapters (default: adapter)")
    for name, default in {"steps": 100, "window": 128, "rank": 8, "tokens": 40, "seed": 0, "lr": 1e-3}.items():
        parser.add_argument(f"--{name}", type=type(default), default=default, help=f"default: {default}")
    args = parser.parse_args(argv)
    gc.manual_seed(args.seed)
    model, tokenizer = gc.llm.load(args.model), gc.llm.load_tokenizer(args.model)
    tokens = np.array(tokenizer.encode(args.text.read_text(encoding="utf-8")))
    if len(tokens) <= args.window:
        parser.error(f"the text has {len(tokens)} tokens; pass --window {len(tokens) - 1} or less")
    gc.llm.add_lora(model, args.rank, alpha=2 * args.rank)
    train(model, tokens, args)
    gc.llm.save_lora(model, args.out)
    gc.llm.merge_lora(model)
    print(f"the adapters are in {args.out}")
    if args.tokens:
        new = gc.llm.Generator(model).greedy(tokenizer.encode(args.prompt), args.tokens, tokenizer.stops)
        print(args.prompt, *tokenizer.stream(new), sep="")


if __name__ == "__main__":
    main()
