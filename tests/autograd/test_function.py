"""The known path of custom functions."""

import graphc
from graphc.autograd import function
from graphc.eager import function as here


def test_the_known_path_has_what_users_name():
    assert graphc.autograd.function is function
    assert all(getattr(function, name) is getattr(here, name) for name in function.__all__)
