"""The child process: reads calls as JSON lines, answers with JSON lines, until its input ends.

``python -m benchmarks.harness.child [ORDER]``; a call, or the ORDER to which it gives its only answer, is
``["package.module:function", {arguments}]``, and the function returns a dictionary, or None for no answer. Stdout
belongs to the protocol; whatever a library prints there goes to stderr.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import warnings
from typing import Any

from benchmarks.harness.prepared import NotProvidedError
from benchmarks.harness.results import first_line


def answer(order: str) -> dict[str, Any] | None:
    """Call a function; any error becomes its first line."""
    function, arguments = json.loads(order)
    module, _, name = function.partition(":")
    try:
        return getattr(importlib.import_module(module), name)(**arguments)
    except NotProvidedError as reason:
        return {"not_provided": str(reason)}
    except Exception as error:  # whatever is raised is a result of the measurement
        return {"error": first_line(error)}


def main(orders: list[str]) -> int:
    """Serve the orders, or stdin; return the exit status."""
    warnings.simplefilter("ignore")
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)
        for order in orders or sys.stdin:
            if (facts := answer(order)) is not None:
                answers.write(json.dumps(facts) + "\n")
                answers.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
