"""The known path of grad modes."""

import graphc
from graphc.autograd import grad_mode
from graphc.tape import grad_mode as here


def test_the_known_path_has_what_users_name():
    assert graphc.autograd.grad_mode is grad_mode
    assert all(getattr(grad_mode, name) is getattr(here, name) for name in grad_mode.__all__)
