"""The families of random programs, each a list of steps, and how a program of a family is drawn."""

from __future__ import annotations

from tools.nets.builder import Builder, SizedBuilder, Unfit
from tools.nets.families import layers as layers
from tools.nets.families import shape as shape
from tools.nets.families import sized as sized
from tools.nets.families import values as values
from tools.nets.families.grammar import Steps
from tools.nets.program import Program, SizedProgram

FAMILIES: dict[str, Steps] = {
    "views of views": (shape.view,),
    "reads by index": (shape.read, shape.read, shape.view),
    "writes by index": (shape.write,),
    "writes in place": (shape.in_place, shape.in_place, shape.view),
    "rearrangements": (shape.rearrange, shape.view),
    "joins and splits": (shape.join, shape.join, shape.view),
    "resampling": (shape.resample,),
    "empty dimensions": (shape.empty,),
    "layouts of memory": (shape.layout,),
    "wide integers": (shape.wide_integers,),
    "math": (values.math, values.math, values.arithmetic),
    "activations": (layers.activation, values.arithmetic),
    "choices": (values.choose, values.arithmetic),
    "reductions": (values.reduce, values.reduce, values.arithmetic),
    "order": (values.order,),
    "mixed types": (values.types,),
    "scalars": (values.scalars,),
    "specials": (values.special,),
    "long rows": (values.long_rows, values.arithmetic),
    "convolutions": (layers.convolution, layers.convolution, layers.activation),
    "pools": (layers.pool, layers.pool, layers.activation),
    "norms around pools": (layers.norm, layers.pool, layers.norm),
    "norms": (layers.norm, layers.activation),
    "attention": (layers.attention,),
    "recurrence": (layers.recurrent,),
    "products": (layers.product, layers.product, values.reduce),
    "losses": (layers.loss,),
    "stacks of layers": (layers.stack,),
    "given twice": (layers.repeated,),
}
OTHERS: Steps = tuple(dict.fromkeys(step for steps in FAMILIES.values() for step in steps))
FOREIGN = 0.25
"""Probability that a step comes from any family instead of the program's own."""
TRIES = 60


def grow(builder: Builder, steps: Steps, others: Steps, foreign: float, length: int) -> None:
    """Add so many statements by the steps of a family, some of them by other steps, as far as they come about."""
    done = 0
    for _ in range(TRIES):
        try:
            builder.pick(others if done and builder.chance(foreign) else steps)(builder)
        except (Unfit, NameError, ZeroDivisionError):
            # Numbers without a dimension in this program, such as channels of layers.
            builder.tried(False)
            continue
        builder.tried(True)
        done += 1
        if done == length:
            break


def draw(seed: int, number: int) -> Program:
    """Return the program of a seed and a number; raises Unfit when none came about."""
    names = tuple(FAMILIES)
    family = names[number % len(names)]
    builder = Builder(f"{seed}/{number}", family, training=number // len(names) % 2 == 0)
    grow(builder, FAMILIES[family], OTHERS, FOREIGN, builder.pick((1, 1, 2, 2, 3, 3, 4, 5, 7)))
    return builder.program()


# ---- open sizes

ATTEMPTS = 4
"""Attempts at a program whose results depend on a dimension."""
FAMILIES_OF_SIZES: dict[str, Steps] = {
    **{
        name: (*steps, *steps, sized.step)
        for name, steps in FAMILIES.items()
        if name not in ("specials", "wide integers", "long rows", "scalars", "losses", "empty dimensions")
    },
    "losses": FAMILIES["losses"],
    "sizes": (sized.step,),
    "sizes of images": (sized.image, sized.image, sized.step),
    "sequences": (sized.sequence, sized.sequence, sized.step),
}


def draw_sized(seed: int, number: int) -> SizedProgram:
    """Return the program of a seed and a number; raises Unfit when none came about."""
    names = tuple(FAMILIES_OF_SIZES)
    for attempt in range(ATTEMPTS):
        try:
            return _drawn(f"sized/{seed}/{number}/{attempt}", names[number % len(names)], number // len(names) % 2 == 0)
        except Unfit:
            continue
    raise Unfit


def _drawn(seed: str, family: str, training: bool) -> SizedProgram:
    builder = SizedBuilder(seed, family, training)
    length = builder.pick((1, 1, 2, 2, 3, 3, 4, 5))
    grow(builder, FAMILIES_OF_SIZES[family], (*OTHERS, sized.step), 0.15, length)
    return builder.sized()
