"""The known path of exceptions."""

import pickle
import subprocess
import sys

from graphc import errors
from graphc.base import errors as here


def test_the_known_path_has_every_exception():
    assert errors.__all__ == here.__all__
    assert all(getattr(errors, name) is getattr(here, name) for name in here.__all__)
    assert {name for name in vars(here) if name.endswith("Error")} <= set(errors.__all__)


def test_pickles_name_the_known_path():
    error = errors.ShapeError("shapes differ")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_the_known_path_needs_no_import_of_its_own():
    program = (
        "import graphc as gc\ntry:\n    gc.zeros(2) @ gc.zeros(3)\nexcept gc.errors.ShapeError:\n    print('caught')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "caught\n"
