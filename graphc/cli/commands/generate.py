"""``graphc generate``: continue a text with a language model, by the most likely tokens or by sampling."""

from __future__ import annotations

import argparse
from pathlib import Path

from graphc.cli import arguments, console, language
from graphc.cli.fields import Field
from graphc.cli.token_times import SECONDS, Timed
from graphc.llm.tokenizer import until

EXAMPLES = (
    'graphc generate model.gguf "Once upon a time" --tokens 20',
    'graphc generate model.gguf "Once upon a time" --tokens 20 --json',
    'graphc generate model.gguf "Once upon a time" --tokens 20 --temperature 0.8 --top-p 0.9 --seed 1 --stop "."',
    "graphc generate model.gguf --ids 5 8 13 --tokens 20",
    "graphc generate model.gguf --ids 5 8 13 --tokens 20 --prompt-cache text.npz",
    'graphc generate model.gcm "Once upon a time" --tokens 20 --tokenizer model.gguf',
)
JSON = (
    Field("prompt[]", "integer", "a token of the prompt"),
    Field("tokens[]", "integer", "a generated token; with --stop, also those of the stop", optional=True),
    Field("text", "string", "the generated text; empty with --ids"),
    *SECONDS,
)


def add_to(parser: argparse.ArgumentParser) -> None:
    language.add_model(parser)
    parser.add_argument("prompt", nargs="?", metavar="TEXT", help="beginning of the text; needs the package tokenizers")
    parser.add_argument(
        "--ids", nargs="+", type=arguments.natural, metavar="ID", help="beginning as tokens; prints tokens"
    )
    language.add_text(parser, 100, "most tokens to generate")
    parser.add_argument(
        "--prompt-cache",
        metavar="FILE",
        help="read keys and values of the text's beginning from this file, if it exists, and write those of the text; "
        ".safetensors or .npz",
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    if (options.prompt is None) == (options.ids is None):
        raise console.UsageError("graphc generate needs a text or --ids, and not both", remedy="leave one of them out")
    if options.ids is not None and options.stop:
        raise console.UsageError("--stop ends texts, and --ids prints tokens", remedy="leave one of them out")
    if options.prompt_cache and Path(options.prompt_cache).suffix not in (".safetensors", ".npz"):
        raise console.UsageError(
            f"there is no format for {options.prompt_cache!r}", remedy="write to a .safetensors or .npz file"
        )
    sampling = language.sampling_of(options)
    tokenizer = None if options.ids is not None else language.tokenizer_of(options)
    ids: list[int] = (options.ids or []) if tokenizer is None else tokenizer.prompt(str(options.prompt))
    generator = language.open_generator(options.file, options.trust, language.rounded(len(ids) + options.tokens))
    if options.prompt_cache and Path(options.prompt_cache).exists():
        generator.restore(options.prompt_cache)
    stops = frozenset[int]() if tokenizer is None else tokenizer.stops
    tokens = Timed(generator.generate(ids, options.tokens, stops, sampling))
    pieces = map("{} ".format, tokens) if tokenizer is None else tokenizer.stream(tokens)
    text, complete = language.collect(until(pieces, options.stop), silent=options.json)
    if not complete:
        raise KeyboardInterrupt
    if options.prompt_cache:
        generator.save(options.prompt_cache)
    if options.json:
        text = "" if tokenizer is None else text
        console.emit_json({"prompt": ids, "tokens": tokens.tokens, "text": text, **tokens.seconds()})
    return console.OK
