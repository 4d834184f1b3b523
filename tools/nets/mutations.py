"""Changes between two calls: compiled code must give the results of eager mode, or raise.

``python -m tools.nets.mutations --seconds N --seed S --results FILE``; a case is named ``change/model/mode``.
"""

from __future__ import annotations

import random
import sys

from tools.nets.changes import hooks, layers, module, optim, tensor, world
from tools.nets.changes.modes import MODES, judge
from tools.nets.changes.table import CHANGES
from tools.nets.run import BAD, Net, Outcome, main

TABLES = (module, hooks, world, tensor, optim, layers)
"""The modules whose import fills the table of changes."""


def cases(seed: int) -> list[str]:
    """Return every change with each of its models and modes, in seeded order: each change once, then each a second time
    in another mode, and so on."""
    chance = random.Random(seed)
    ordered: list[tuple[int, float, str]] = []
    for entry in CHANGES.values():
        tried = [f"{entry.name}/{kind}/{mode}" for kind in entry.kinds for mode in entry.modes]
        chance.shuffle(tried)
        ordered += [(round_, chance.random(), case) for round_, case in enumerate(tried)]
    return [case for _, _, case in sorted(ordered)]


def judge_case(case: str) -> Outcome:
    """Play a case eagerly and compiled; a bad outcome holds the statements of the change."""
    name, kind, mode = case.split("/")
    outcome = judge(kind, CHANGES[name].mutation, MODES[mode])
    return outcome._replace(detail=f"{outcome.detail}\n{CHANGES[name].text}") if outcome.kind in BAD else outcome


NET = Net("mutations", "Changes between calls: compiled code equals eager mode, or raises.", cases, judge_case, True)

if __name__ == "__main__":
    sys.exit(main(NET))
