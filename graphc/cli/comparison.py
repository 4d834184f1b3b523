"""JSON fields of a difference of two arrays, which all commands print under the same names."""

from __future__ import annotations

from graphc.cli.fields import Field

JSON = (
    Field("name", "string", "name of the array; of several ones, of that with the worst element"),
    Field("problem", "string", "both types, if they differ, or why values cannot be compared; empty otherwise"),
    Field("size", "integer", "number of elements"),
    Field("absolute", "number", "largest difference of an element"),
    Field("relative", "number", "largest difference as a fraction of the expected element, where that is not 0"),
    Field("count", "integer", "number of elements that differ"),
    Field("beyond", "integer", "number of elements that differ by more than atol + rtol * |expected|"),
    Field("ratio", "number", "largest difference as a multiple of the tolerance"),
    Field("position", "array or null", "index of the worst element; null if all are equal"),
    Field("position[]", "integer", "its index in one dimension", optional=True),
    Field("actual", "any", "its value; a complex number is a string"),
    Field("expected", "any", "its expected value"),
    Field("allowed", "number", "its allowed difference"),
    Field("within", "boolean", "whether types agree and no element is beyond the tolerance"),
)
"""The fields of ``Difference.as_json``."""
