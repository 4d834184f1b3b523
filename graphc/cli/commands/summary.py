"""``graphc summary``: list the layers of a model with output shapes, parameters and multiply-adds."""

from __future__ import annotations

import argparse

from graphc.cli import console, exported, targets
from graphc.cli.commands.compile import add_model_arguments, prepare
from graphc.cli.fields import Field
from graphc.models.model_summary import summary
from graphc.nn.module import Module

EXAMPLES = ("graphc summary net.py:Net --input x:f32[1,1,28,28]",)
JSON = (
    Field("layers[].path", "string", "path of a module; empty for the model itself", optional=True),
    Field("layers[].kind", "string", "its class"),
    Field("layers[].outputs", "array", "shapes of its outputs"),
    Field("layers[].outputs[]", "any", "a shape", optional=True),
    Field("layers[].calls", "integer", "how often it is called"),
    Field("layers[].parameters", "integer", "elements in its parameters"),
    Field("layers[].trainable", "integer", "elements in parameters that require gradients"),
    Field("layers[].state_bytes", "integer", "size of parameters and buffers", "B"),
    Field("layers[].output_bytes", "integer", "size of its outputs", "B"),
    Field("layers[].multiply_adds", "integer", "multiply-adds in one call"),
    Field("parameters", "integer", "elements in all parameters of the model"),
    Field("trainable", "integer", "elements in all parameters that require gradients"),
    Field("multiply_adds", "integer", "multiply-adds in one call of the model"),
    Field("input_bytes", "integer", "size of the inputs", "B"),
    Field("state_bytes", "integer", "size of parameters and buffers", "B"),
    Field("output_bytes", "integer", "size of the outputs of all layers together", "B"),
)


USES = ("layer", "parameters", "output", "multiply-adds")
"""Headings, the most useful first: narrow terminals show the first ones."""


def add_to(parser: argparse.ArgumentParser) -> None:
    add_model_arguments(parser)
    parser.add_argument("--depth", type=int, metavar="N", help="list modules down to nesting depth N only")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    if options.depth is not None and options.depth < 0:
        raise console.UsageError(f"--depth {options.depth} is below 0")
    if exported.is_exported(options.target):
        raise console.UsageError(
            f"graphc summary needs the layers of a Python model, and {options.target!r} holds one graph",
            remedy=f"use graphc inspect {options.target}, or graphc explain",
        )
    model, examples, _ = prepare(options)
    if not isinstance(model, Module):
        raise console.UsageError(f"graphc summary needs a Module, and {options.target} is a function")
    with targets.compiling():
        layers = targets.guarded(lambda: summary(model, *examples), f"tracing {options.target}")
    if options.json:
        console.emit_json(layers.to_dict())
    else:
        console.emit(console.table(layers.rows(options.depth), USES))
        console.emit("\n" + console.wrap(layers.totals()))
    return console.OK
