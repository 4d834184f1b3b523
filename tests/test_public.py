"""The path that pickles hold."""

from graphc import public
from graphc.base import public as here


def test_pickles_find_what_they_name():
    assert (public.new, public.call) == (here.new, here.call)
    assert {f.__module__ for f in (public.new, public.call)} == {"graphc.public"}
