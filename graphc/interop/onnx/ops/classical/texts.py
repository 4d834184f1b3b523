"""Rules of ONNX operators on strings, which are arrays and exist in eager mode only."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphc.base.errors import AttributeValueError
from graphc.interop.onnx.call import Call
from graphc.interop.onnx.elements import STRING, Element, element_of_array
from graphc.interop.onnx.registry import MICROSOFT, TEXT, op, text
from graphc.interop.onnx.values import Value


def texts_of(array: np.ndarray) -> np.ndarray:
    """Convert an array of anything to one of strings."""
    strings = np.empty(array.shape, object)
    strings.reshape(-1)[:] = [text_of(t) for t in array.reshape(-1).tolist()]
    return strings


def text_of(element: Any) -> str:
    """Convert an element of an array of texts to a string."""
    return element.decode() if isinstance(element, bytes) else str(element)


def translated(X: Value, call: Call, element: Element | None = None) -> Value:
    """Return the results of an operator's function of arrays, which is made once."""
    node = call.node
    array = call.kept(lambda: TEXT[node.domain, node.op](**node.attributes))(X.array)
    return Value(element or element_of_array(array.dtype), None, array)


def _texts(array: np.ndarray) -> Value:
    return Value(STRING, None, array)


@op("StringConcat", values=True)
def string_concat(X: Value, Y: Value) -> Value:
    return _texts(np.asarray(texts_of(X.array) + texts_of(Y.array), object))


@op("StringSplit", values=True)
def string_split(X: Value, *, delimiter: str | None = None, maxsplit: int | None = None) -> tuple[Any, Any]:
    """Split strings along a new last axis, padded with empty strings. The second result counts the segments.

    Without a delimiter, runs of spaces separate segments.
    """
    flat = texts_of(X.array).reshape(-1)
    most = -1 if maxsplit is None else maxsplit
    segments = [text.split(delimiter or None, most) if text or not delimiter else [""] for text in flat]
    segments = [p if text else [] for p, text in zip(segments, flat, strict=True)]
    table = _table(segments, "")
    counts = np.array([len(p) for p in segments], np.int64)
    return _texts(table.reshape(*X.shape, table.shape[1])), counts.reshape(X.shape)


@op("StringNormalizer", values=True)
def string_normalizer(X: Value, *, call: Call, **_: Any) -> Value:
    """Remove stopwords and change the case. Returns one empty string where nothing is left."""
    return translated(X, call)


@text("StringNormalizer")
def normalizer_of(
    *,
    case_change_action: str = "NONE",
    is_case_sensitive: int = 0,
    locale: str = "",
    stopwords: Sequence[str] = (),
) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function of arrays of a StringNormalizer."""
    change = {"NONE": str, "LOWER": str.lower, "UPPER": str.upper}.get(case_change_action)
    if change is None:
        raise AttributeValueError(
            f"StringNormalizer: case_change_action {case_change_action!r}", remedy="use NONE, LOWER or UPPER"
        )
    key = str if is_case_sensitive else str.lower
    stops = {key(word) for word in stopwords}

    def normalized(array: np.ndarray) -> np.ndarray:
        remaining = [change(word) for word in texts_of(array).reshape(-1).tolist() if key(word) not in stops]
        words = np.array(remaining or [""], object)
        return words.reshape(1, -1) if array.ndim == 2 else words

    return normalized


@op("Tokenizer", domain=MICROSOFT, values=True)
def tokenizer(X: Value, *, call: Call, **_: Any) -> Value:
    """Split strings into tokens along a new last axis, padded with ``pad_value``.

    Tokens are the matches of ``tokenexp``, the segments between matches of the separators, or, for one empty
    separator, characters. Shorter tokens than ``mincharnum`` are dropped. With ``mark``, each string begins with the
    token \\x02 and ends with \\x03.
    """
    return translated(X, call)


@text("Tokenizer", domain=MICROSOFT)
def tokenizer_of(
    *, mark: int, pad_value: str, mincharnum: int = 1, separators: Sequence[str] = (), tokenexp: str = ""
) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function of arrays of a Tokenizer."""
    split: Callable[[str], list[str]]
    if tokenexp:
        pattern = _compiled("tokenexp", tokenexp)
        split = lambda word: [m.group() for m in pattern.finditer(word)]  # noqa: E731
    elif list(separators) == [""]:
        split = list
    else:
        split = _compiled("separators", "|".join(f"(?:{s})" for s in separators)).split

    def tokens_of(array: np.ndarray) -> np.ndarray:
        least = max(mincharnum, 1)
        tokens = [[t for t in split(word) if len(t) >= least] for word in texts_of(array).reshape(-1).tolist()]
        if mark:
            tokens = [["\x02", *row, "\x03"] for row in tokens]
        table = _table(tokens, pad_value)
        return table.reshape(*array.shape, table.shape[1])

    return tokens_of


def _table(rows: Sequence[Sequence[str]], padding: str) -> np.ndarray:
    """Return rows of strings as an array, padded to the longest row."""
    table = np.full((len(rows), max(map(len, rows), default=0)), padding, object)
    for target, row in zip(table, rows, strict=True):
        target[: len(row)] = row
    return table


def _compiled(name: str, pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise AttributeValueError(f"{name}: invalid pattern {pattern[:80]!r}: {error}") from None


@op("RegexFullMatch", values=True)
def regex_full_match(X: Value, *, pattern: str) -> Any:
    """Check whether strings match a pattern entirely.

    Patterns follow Python's syntax, which agrees with RE2's with few exceptions.
    """
    compiled = _compiled("RegexFullMatch", pattern)
    flat = [compiled.fullmatch(text) is not None for text in texts_of(X.array).reshape(-1)]
    return np.array(flat, bool).reshape(X.shape)


@op("TfIdfVectorizer", values=True)
def tf_idf_vectorizer(X: Value, *, call: Call, **_: Any) -> Value:
    """Count each n-gram of a pool in each row, with up to ``max_skip_count`` elements between its own."""
    return translated(X, call)


@text("TfIdfVectorizer")
def n_gram_counts(
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
) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function of arrays of a TfIdfVectorizer."""
    columns = dict(zip(_pool(pool_strings or pool_int64s, ngram_counts), ngram_indexes, strict=True))
    lengths = range(min_gram_length, max_gram_length + 1)
    width = max(ngram_indexes) + 1
    scale = np.ones(width, np.float32)
    if mode in ("IDF", "TFIDF"):
        scale[list(ngram_indexes)] = weights or 1

    def counted(array: np.ndarray) -> np.ndarray:
        rows = array.reshape(1, -1) if array.ndim < 2 else array
        matrix = np.zeros((len(rows), width), np.float32)
        for result, row in zip(matrix, rows.tolist(), strict=True):
            for gram, times in _counts(row, lengths, max_skip_count).items():
                if gram in columns:
                    result[columns[gram]] = times
        if mode in ("IDF", "TFIDF"):
            matrix = (matrix if mode == "TFIDF" else np.minimum(matrix, 1)) * scale
        return matrix.reshape(-1) if array.ndim < 2 else matrix

    return counted


def _pool(flat: Sequence[Any], starts: Sequence[int]) -> list[tuple[Any, ...]]:
    """Return the n-grams of a pool: of one element first, from the second start on of two, and so on."""
    ends = [*starts[1:], len(flat)]
    return [
        tuple(flat[i : i + length])
        for length, (start, end) in enumerate(zip(starts, ends, strict=True), start=1)
        for i in range(start, end, length)
    ]


def _counts(row: Sequence[Any], lengths: Sequence[int], most_skipped: int) -> Counter[tuple[Any, ...]]:
    """Count the n-grams of these lengths in a row, for each number of skipped elements. Counts single elements once."""
    counts: Counter[tuple[Any, ...]] = Counter()
    for length in lengths:
        for step in range(1, (most_skipped + 1 if length > 1 else 1) + 1):
            span = (length - 1) * step
            counts.update(tuple(row[i : i + span + 1 : step]) for i in range(len(row) - span))
    return counts
