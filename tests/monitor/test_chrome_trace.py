"""Events of Chrome's trace format."""

from graphc.base.progress import Span
from graphc.monitor.chrome_trace import complete, named, span_event, trace


def test_events_have_microseconds_and_the_fields_of_the_format():
    event = complete("k0", 1, 2, 0.5, 0.75, "kernel", flops=3)
    assert event == {
        "ph": "X", "name": "k0", "pid": 1, "tid": 2, "ts": 500000.0, "dur": 250000.0, "cat": "kernel",
        "args": {"flops": 3},
    }  # fmt: skip
    meta = named("thread_name", 1, 2, "main")
    assert meta == {"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "args": {"name": "main"}}
    assert trace(iter([event, meta])) == {"displayTimeUnit": "ms", "traceEvents": [event, meta]}


def test_spans_begin_at_the_zero_of_the_trace():
    event = span_event(Span("kernel", "k0", 10.0, 10.001, 64, 7, {"runs": 1}), 1, 9.0)
    assert (event["ts"], event["dur"], event["tid"]) == (1e6, 1000.0, 7)
    assert event["args"] == {"runs": 1, "bytes": 64}
