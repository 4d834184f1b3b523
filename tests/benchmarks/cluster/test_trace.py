"""A step of several ranks as a Chrome trace."""

import json
from itertools import pairwise

from benchmarks.cluster.trace import COMPUTE, REDUCTIONS, chrome_trace, pieces

BUCKET = {"name": "b0", "nbytes": 8, "start": (2.0, 2.0), "reduce": (2.5, 5.0), "wait": (3.0, 5.0)}
RANK = {"begin": 10.0, "seconds": 6.0, "buckets": [BUCKET]}


def test_computing_is_what_is_between_waits() -> None:
    assert sorted(pieces(RANK)) == [
        (COMPUTE, "compute", 0.0, 2.0),
        (COMPUTE, "compute", 2.0, 3.0),
        (COMPUTE, "compute", 5.0, 6.0),
        (COMPUTE, "wait for b0", 3.0, 5.0),
        (REDUCTIONS, "b0, 8 bytes", 2.5, 5.0),
    ]


def test_all_ranks_are_on_one_clock() -> None:
    trace = chrome_trace("net", [RANK, {**RANK, "begin": 10.5}])
    assert json.loads(json.dumps(trace)) == trace
    events = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    assert {(e["pid"], e["tid"]) for e in events} == {(0, 0), (0, 1), (1, 0), (1, 1)}
    reductions = [(e["pid"], e["ts"], e["dur"]) for e in events if e["tid"] == REDUCTIONS]
    assert reductions == [(0, 2.5e6, 2.5e6), (1, 3.0e6, 2.5e6)]
    names = [e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "process_name"]
    assert names == ["rank 0: net", "rank 1: net"]


def test_rows_of_a_rank_never_overlap() -> None:
    second = {"name": "b1", "nbytes": 8, "start": (4.0, 4.0), "reduce": (5.0, 5.5), "wait": (5.2, 5.5)}
    for row in (COMPUTE, REDUCTIONS):
        spans = sorted(p[2:] for p in pieces({**RANK, "buckets": [BUCKET, second]}) if p[0] == row)
        assert all(a[1] <= b[0] for a, b in pairwise(spans))
