"""``graphc summary``: the layers of a model with output shapes, parameters and multiply-adds."""

from __future__ import annotations

import argparse

from graphc.cli import console, exported, targets
from graphc.cli.compile import add_model_arguments, prepare
from graphc.cli.fields import Field
from graphc.models.model_summary import summary
from graphc.nn.module import Module

EXAMPLES = ("graphc summary net.py:Net --input x:f32[1,1,28,28]",)
JSON = (
    Field("layers[].path", "string", "path of a module, empty for the model", optional=True),
    Field("layers[].kind", "string", "its class"),
    Field("layers[].outputs", "array", "shapes of what it returns"),
    Field("layers[].outputs[]", "any", "a shape", optional=True),
    Field("layers[].calls", "integer", "how often it is called"),
    Field("layers[].parameters", "integer", "numbers in its parameters"),
    Field("layers[].trainable", "integer", "those of parameters with gradients"),
    Field("layers[].state_bytes", "integer", "what parameters and buffers take", "B"),
    Field("layers[].output_bytes", "integer", "what outputs take", "B"),
    Field("layers[].multiply_adds", "integer", "multiply-adds of a call"),
    Field("parameters", "integer", "of the model"),
    Field("trainable", "integer", "of the model"),
    Field("multiply_adds", "integer", "of the model"),
    Field("input_bytes", "integer", "what inputs take", "B"),
    Field("state_bytes", "integer", "what parameters and buffers take", "B"),
    Field("output_bytes", "integer", "what outputs of all layers take", "B"),
)


def add_to(parser: argparse.ArgumentParser) -> None:
    """Gives the command's parser its arguments."""
    add_model_arguments(parser)
    parser.add_argument("--depth", type=int, metavar="N", help="leave out modules that are nested deeper")
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    if options.depth is not None and options.depth < 0:
        raise console.UsageError(f"--depth {options.depth} is below 0")
    if exported.is_exported(options.target):
        raise console.UsageError(
            f"{options.target!r} holds one graph, whose layers are not run one by one",
            remedy=f"graphc inspect {options.target}, or graphc explain",
        )
    model, examples, _ = prepare(options)
    if not isinstance(model, Module):
        raise console.UsageError(f"{options.target} is a function, a summary shows a Module")
    with targets.compiling():
        found = targets.guarded(lambda: summary(model, *examples), f"tracing {options.target}")
    if options.json:
        console.emit_json(found.to_dict())
    else:
        console.emit(found.text(options.depth))
    return console.OK
