"""Names of ``graphc.nn.functional``: loaded one by one, and complete."""

from __future__ import annotations

import pickle
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from graphc.nn import functional as F

NOT_PUBLIC = ("byte_products", "names", "quantized", "recurrent", "reordered", "resampling", "spatial")
"""Modules whose functions have no name in the package."""
MODULES = [p.stem for p in Path(F.__file__).parent.glob("[a-z]*.py") if p.stem not in NOT_PUBLIC]


@pytest.mark.parametrize("module", MODULES)
def test_all_public_functions_of_a_module_are_names_of_the_package(module):
    loaded = import_module(f"graphc.nn.functional.{module}")
    assert all(getattr(F, name) is getattr(loaded, name) for name in loaded.__all__)
    assert {*loaded.__all__} <= {*F.__all__} & {*dir(F)}


def test_a_name_loads_its_module_alone():
    code = "import sys; from graphc.nn import functional as F; F.relu; "
    code += "print('graphc.nn.functional.pooling' in sys.modules)"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed == "False\n"


@pytest.mark.parametrize(
    ("module", "name"), [("linear", "linear"), ("dropout", "dropout"), ("shrinkage", "hardshrink")]
)
def test_pickles_of_earlier_versions_find_their_functions(module, name):
    assert pickle.loads(f"cgraphc.nn.functional.{module}\n{name}\n.".encode()) is getattr(F, name)


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="nosuch"):
        F.nosuch  # noqa: B018
