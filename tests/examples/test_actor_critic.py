"""examples/actor_critic.py: the agent learns to keep the balls in the middle."""

from __future__ import annotations

import re
from pathlib import Path

from tests.examples.run_example import run_example


def test_the_agent_learns(tmp_path: Path):
    output = run_example("actor_critic.py", folder=tmp_path)
    rewards = [float(x) for x in re.findall(r"reward (-[\d.]+)", output)]
    assert len(rewards) == 7 and rewards[-1] > rewards[0] / 2
