"""ONNX operators of texts, which are arrays that are known in eager mode alone."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.base.errors import AttributeValueError
from graphc.interop.onnx.elements import FLOAT, STRING
from graphc.interop.onnx.registry import op
from graphc.interop.onnx.values import Value


def texts_of(array: np.ndarray) -> np.ndarray:
    """An array of anything as one of texts."""
    found = np.empty(array.shape, object)
    found.reshape(-1)[:] = [t.decode() if isinstance(t, bytes) else str(t) for t in array.reshape(-1).tolist()]
    return found


def _texts(array: np.ndarray) -> Value:
    return Value(STRING, None, array)


@op("StringConcat", values=True)
def string_concat(X: Value, Y: Value) -> Value:
    return _texts(np.asarray(texts_of(X.array) + texts_of(Y.array), object))


@op("StringSplit", values=True)
def string_split(X: Value, *, delimiter: str | None = None, maxsplit: int | None = None) -> tuple[Any, Any]:
    """Parts of texts along a new last axis, filled up with empty ones; how many there are of each. Without a delimiter
    texts are split at spaces, of which several count as one."""
    flat = texts_of(X.array).reshape(-1)
    most = -1 if maxsplit is None else maxsplit
    parts = [text.split(delimiter or None, most) if text or not delimiter else [""] for text in flat]
    parts = [p if text else [] for p, text in zip(parts, flat, strict=True)]
    longest = max(map(len, parts), default=0)
    table = np.full((len(parts), longest), "", object)
    for row, found in zip(table, parts, strict=True):
        row[: len(found)] = found
    counts = np.array([len(p) for p in parts], np.int64)
    return _texts(table.reshape(*X.shape, longest)), counts.reshape(X.shape)


@op("StringNormalizer", values=True)
def string_normalizer(
    X: Value,
    *,
    case_change_action: str = "NONE",
    is_case_sensitive: int = 0,
    locale: str = "",
    stopwords: Sequence[str] = (),
) -> Value:
    """Texts without stopwords, in upper or lower case; one empty text where none is left."""
    change = {"NONE": str, "LOWER": str.lower, "UPPER": str.upper}.get(case_change_action)
    if change is None:
        raise AttributeValueError(f"case_change_action {case_change_action!r}", remedy="NONE, LOWER or UPPER")
    key = str if is_case_sensitive else str.lower
    stops = {key(word) for word in stopwords}
    kept = [change(text) for text in texts_of(X.array).reshape(-1) if key(text) not in stops]
    found = np.array(kept or [""], object)
    return _texts(found.reshape(1, -1) if len(X.shape) == 2 else found)


@op("RegexFullMatch", values=True)
def regex_full_match(X: Value, *, pattern: str) -> Any:
    """Whether texts match a pattern as a whole. Patterns are those of Python, which RE2's are with few exceptions."""
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise AttributeValueError(f"the pattern {pattern[:80]!r}: {error}") from None
    flat = [compiled.fullmatch(text) is not None for text in texts_of(X.array).reshape(-1)]
    return np.array(flat, bool).reshape(X.shape)


@op("TfIdfVectorizer", values=True)
def tf_idf_vectorizer(
    X: Value,
    *,
    max_gram_length: int,
    max_skip_count: int,
    min_gram_length: int,
    mode: str,
    ngram_counts: Sequence[int],
    ngram_indexes: Sequence[int],
    pool_int64s: Sequence[int] = (),
    pool_strings: Sequence[str] = (),
    weights: Sequence[float] = (),
) -> Value:
    """How often each sequence of a pool is in each row, with up to ``max_skip_count`` elements between its own."""
    pool = _pool(pool_strings or pool_int64s, ngram_counts)
    lengths = range(min_gram_length, max_gram_length + 1)
    rows = X.array.reshape(1, -1) if len(X.shape) < 2 else X.array
    found = np.zeros((len(rows), max(ngram_indexes) + 1), np.float32)
    for result, row in zip(found, rows.tolist(), strict=True):
        counts = _counts(row, lengths, max_skip_count)
        for number, gram in enumerate(pool):
            result[ngram_indexes[number]] = counts[gram]
    if mode in ("IDF", "TFIDF"):
        scale = np.ones(found.shape[1], np.float32)
        scale[list(ngram_indexes)] = weights or 1
        found = (found if mode == "TFIDF" else np.minimum(found, 1)) * scale
    return Value(FLOAT, None, found.reshape(-1) if len(X.shape) < 2 else found)


def _pool(flat: Sequence[Any], starts: Sequence[int]) -> list[tuple[Any, ...]]:
    """The sequences of a pool: those of one element, from the second start on those of two, and so on."""
    ends = [*starts[1:], len(flat)]
    return [
        tuple(flat[i : i + length])
        for length, (start, end) in enumerate(zip(starts, ends, strict=True), start=1)
        for i in range(start, end, length)
    ]


def _counts(row: Sequence[Any], lengths: Sequence[int], most_skipped: int) -> Counter[tuple[Any, ...]]:
    """The sequences of these lengths in a row, by each number of elements between; those of one element once."""
    found: Counter[tuple[Any, ...]] = Counter()
    for length in lengths:
        for step in range(1, (most_skipped + 1 if length > 1 else 1) + 1):
            span = (length - 1) * step
            found.update(tuple(row[i : i + span + 1 : step]) for i in range(len(row) - span))
    return found
