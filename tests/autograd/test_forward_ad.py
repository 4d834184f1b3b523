"""The known path of forward mode."""

import graphc
from graphc.autograd import forward_ad
from graphc.eager import forward_ad as here


def test_the_known_path_has_what_users_name():
    assert graphc.autograd.forward_ad is forward_ad
    assert all(getattr(forward_ad, name) is getattr(here, name) for name in forward_ad.__all__)
