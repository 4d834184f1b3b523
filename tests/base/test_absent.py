"""Errors for names of PyTorch that graphc has not say what there is instead."""

from __future__ import annotations

import copy

import pytest

import graphc
from graphc.base import absent
from graphc.errors import MemberError


@pytest.mark.parametrize("name", absent.PACKAGE)
def test_names_of_the_package(name):
    with pytest.raises(MemberError, match=f"module 'graphc' has no attribute '{name}'") as caught:
        getattr(graphc, name)
    assert caught.value.remedy == absent.PACKAGE[name] and caught.value.name == name


@pytest.mark.parametrize("name", absent.TENSOR)
def test_names_of_tensors(name):
    with pytest.raises(AttributeError, match="no attribute") as caught:
        getattr(graphc.ones(2), name)
    assert isinstance(caught.value, MemberError) and caught.value.remedy == absent.TENSOR[name]


def test_python_can_look_for_names_like_others():
    for owner in (graphc, graphc.ones(2)):
        with pytest.raises(AttributeError) as caught:
            owner.summm  # noqa: B018
        assert type(caught.value) is AttributeError
        assert caught.value.name == "summm" and caught.value.obj is owner
    assert not hasattr(graphc.ones(2), "nothing") and copy.deepcopy(graphc.ones(2)).tolist() == [1, 1]


def test_what_is_named_instead_exists():
    for text in absent.PACKAGE.values():
        for word in text.replace(",", " ").replace("(", " ").split():
            if word.startswith("graphc."):
                found = graphc
                for part in word.split(".")[1:]:
                    found = getattr(found, part)
