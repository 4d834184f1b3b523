"""Names of graphc.nn are loaded together, and only when one of them is used."""

from __future__ import annotations

import subprocess
import sys

from graphc import nn
from graphc.nn import front


def test_the_package_has_the_names_of_its_front():
    packages = {"attention", "functional", "init", "modules", "parallel", "utils"}
    assert set(nn.__all__) == {*front.__all__} | packages
    assert nn.Linear is front.Linear and {"Linear", "functional"} <= set(dir(nn))


def test_functions_are_used_without_layers():
    code = """
import sys
from graphc.nn import functional
from graphc.nn.module import Module
print([n for n in sys.modules if n.startswith(("graphc.nn.modules", "graphc.nn.utils", "graphc.linalg"))])
from graphc.nn import *
print(Linear.__name__, utils.clip_grad_norm_.__name__, "graphc.nn.modules.linear" in sys.modules)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == ["[]", "Linear clip_grad_norm_ True"]
