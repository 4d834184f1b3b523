"""One module per peer; each has ``VERSION`` and ``prepare(workload, folder, threads) -> Prepared``.

A peer's library is imported at the top of its module, which only the peer's own worker process loads.
"""

PEERS = {
    "graphc": "benchmarks.peers.graphc_artifact",
    "graphc.compile": "benchmarks.peers.graphc_compile",
    "torch": "benchmarks.peers.torch_eager",
    "compile": "benchmarks.peers.torch_compile",
    "onnxruntime": "benchmarks.peers.onnxruntime_session",
    "openvino": "benchmarks.peers.openvino_request",
    "jax": "benchmarks.peers.jax_jit",
}
OWN = ("graphc", "graphc.compile")
NEED_ONNX = ("onnxruntime", "openvino")
