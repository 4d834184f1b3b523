"""Scores of pairs of sentences, and the correlation of their ranks."""

from __future__ import annotations

import numpy as np
import pytest

from tools.zoo.similarity import LENGTH, PAIRS, rank_correlation, sentences, similarities


def test_pairs_share_between_none_and_all_of_their_tokens():
    first, second = np.split(sentences(0), 2)
    shared = (first == second).mean(1)
    assert first.shape == (PAIRS, LENGTH)
    assert shared.min() < 0.1 and shared.max() > 0.9 and len(np.unique(shared)) > LENGTH / 2


def test_a_score_is_the_cosine_of_a_pair():
    embeddings = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 4.0], [0.0, -1.0]])
    assert similarities(embeddings) == pytest.approx([0.6, -1.0])


@pytest.mark.parametrize(("other", "expected"), [([1, 8, 27, 64], 1.0), ([4, 3, 2, 1], -1.0), ([1, 3, 2, 4], 0.8)])
def test_ranks_are_compared_and_not_scores(other: list[float], expected: float):
    assert rank_correlation(np.array([1.0, 2.0, 3.0, 4.0]), np.array(other)) == pytest.approx(expected)
