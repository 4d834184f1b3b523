"""The known path of hooks."""

from graphc import hooks
from graphc.tape import hooks as here


def test_the_known_path_has_what_users_name():
    assert hooks.RemovableHandle is here.RemovableHandle and hooks.strict is here.strict
