"""The names of torch.special."""

from __future__ import annotations

import numpy as np

import graphc as gc
from graphc import special
from graphc.tensors import special_functions

OTHERS = [*({*special.__all__} - {*vars(special_functions), "xlogy"}), "polygamma"]


def test_every_other_name_is_that_of_pytorch(torch):
    x = np.random.default_rng(0).uniform(0.1, 0.9, (3, 4))
    for name in OTHERS:
        dim = {"softmax": (-1,), "log_softmax": (-1,), "logsumexp": (-1,), "multigammaln": (2,)}.get(name, ())
        shift = 2.0 if name == "multigammaln" else 0.0
        mine, other = (library.tensor(x + shift) for library in (gc, torch))
        before = (1,) if name == "polygamma" else ()
        want = getattr(torch.special, name)(*before, other, *dim)
        got = getattr(special, name)(*before, mine, *dim)
        np.testing.assert_allclose(got.numpy(), want.numpy(), 2e-9, err_msg=name)  # its polygamma has nine digits


def test_functions_of_tensors_are_the_same_under_both_names():
    assert special.expit is gc.sigmoid and special.psi is gc.digamma and special.gammaln is gc.lgamma
    assert set(special.__all__) <= set(dir(special))
