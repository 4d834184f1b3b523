"""``graphc chat``: answer the lines of stdin by a language model, in the form of its chat template.

``/reset`` begins a new conversation, Ctrl-D ends the program, and Ctrl-C ends an answer.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator

from graphc.cli import arguments, console, language
from graphc.cli.fields import Field
from graphc.cli.token_times import SECONDS, Timed
from graphc.llm.tokenizer import until

EXAMPLES = (
    "graphc chat model.gguf",
    'graphc chat model.gguf --system "Answer in one sentence." --temperature 0.7 --top-p 0.9 --tokens 20 --json',
)
JSON = (
    Field("answer", "string", "the text of an answer; one object for each"),
    Field("conversation_tokens", "integer", "number of tokens before the answer"),
    Field("read_tokens", "integer", "number of those that the caches did not hold yet"),
    Field("tokens[]", "integer", "a generated token", optional=True),
    Field("end", "string", "why the answer ended: stop, tokens (--tokens), full (caches) or interrupted"),
    *SECONDS,
)
RESET = "/reset"


def add_to(parser: argparse.ArgumentParser) -> None:
    language.add_model(parser)
    parser.add_argument("--system", metavar="TEXT", help="instructions before the conversation")
    parser.add_argument(
        "--places",
        type=arguments.count,
        metavar="N",
        help="tokens of a conversation (default: those of the model, at most 2048)",
    )
    language.add_text(parser, 512, "most tokens of an answer")
    parser.add_argument("--json", action="store_true", help="print each answer as JSON, one object per line")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    sampling, tokenizer = language.sampling_of(options), language.tokenizer_of(options)
    start = [] if options.system is None else [{"role": "system", "content": options.system}]
    tokenizer.chat([*start, {"role": "user", "content": ""}])  # reports a template that refuses the first message
    generator, messages = language.open_generator(options.file, options.trust, options.places), [*start]
    places = generator.places
    for line in _lines():
        if line == RESET:
            messages = [*start]
            continue
        question = {"role": "user", "content": line}
        ids = tokenizer.chat([*messages, question])
        limit = min(options.tokens, places - len(ids))
        if limit < 1:
            console.complain(f"the conversation has {len(ids)} tokens, and the caches hold {places}\n{_remedy()}")
            continue
        facts = {"conversation_tokens": len(ids), "read_tokens": len(ids) - generator.common(ids)}
        tokens = Timed(generator.generate(ids, limit, tokenizer.stops, sampling))
        answer, complete = language.collect(until(tokenizer.stream(tokens), options.stop), silent=options.json)
        messages += [question, {"role": "assistant", "content": answer}]
        end = _end(complete, len(tokens.tokens), limit, options.tokens)
        if options.json:
            values = {"answer": answer, **facts, "tokens": tokens.tokens, "end": end, **tokens.seconds()}
            console.emit(json.dumps(values, ensure_ascii=False))
            sys.stdout.flush()
        elif end == "full":
            console.complain(f"the answer ends because the caches hold {places} tokens\n{_remedy()}")
    return console.OK


def _remedy() -> str:
    return f"  try    begin a new conversation with {RESET}, or pass a larger --places"


def _lines() -> Iterator[str]:
    """Yield the lines of stdin that are not blank, after a prompt on stderr if stdin is a terminal."""
    terminal = sys.stdin.isatty()
    while True:
        if terminal:
            sys.stderr.write("> ")
            sys.stderr.flush()
        try:
            line = sys.stdin.readline()
        except UnicodeDecodeError as error:
            raise console.UsageError(f"stdin is not text in {error.encoding}: {error.reason}") from None
        if not line:
            return
        if line.strip():
            yield line.strip()


def _end(complete: bool, count: int, limit: int, most: int) -> str:
    if not complete:
        return "interrupted"
    if count < limit:
        return "stop"
    return "tokens" if limit == most else "full"
