"""Functions that are called again and again become programs, and nobody notices but by the clock."""

import subprocess
import sys

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.eager.dispatcher import references
from graphc.errors import GradientError, IndexRangeError
from graphc.nn import functional as F
from graphc.tensors import repeated
from graphc.tensors.repeated import REPEATS, compiled_when_repeated

FUNCTIONS = {
    "gelu": lambda x: F.gelu(x),
    "softmax": lambda x: x.softmax(-1),
    "layer_norm": lambda x: F.layer_norm(x, (x.shape[1],)),
    "cross_entropy": lambda x: F.cross_entropy(x, gc.arange(4)),
    "linear": lambda x: F.linear(x, x * 2),
    "std": lambda x: x.std(1, keepdim=True),
    "topk": lambda x: x.topk(2).values,
    "sort": lambda x: x.sort(0, descending=True)[0],
    "gather": lambda x: x.gather(1, gc.arange(4)[:, None]),
    "rows": lambda x: x[gc.tensor([2, 0, 2, -1])],
    "cat": lambda x: gc.cat([x, x * x]),
    "conv2d": lambda x: F.conv2d(x[None, None], gc.ones(2, 1, 3, 3), padding=1),
    "max_pool2d": lambda x: F.max_pool2d(x[None, None], 2),
    "batch_norm": lambda x: F.batch_norm(x, gc.zeros(6), gc.ones(6), training=True),
    "power": lambda x: (x.abs() + 1) ** 1.5,
    "clamp": lambda x: x.clamp(-0.5, 0.5),
    "einsum": lambda x: gc.einsum("ij,kj->ik", x, x),
    "cumsum": lambda x: x.cumsum(1),
}


def start() -> gc.Tensor:
    return gc.tensor(np.random.default_rng(3).standard_normal((4, 6)).astype(np.float32), requires_grad=True)


def value_and_gradient(function):
    x = start()
    result = function(x)
    result.square().sum().backward()
    return result.detach().numpy(), x.grad.numpy()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_before_and_after_the_switch_values_and_gradients_agree(name):
    function = FUNCTIONS[name]
    with references():
        expected = value_and_gradient(function)
    for _ in range(REPEATS):
        value_and_gradient(function)
    first, second = value_and_gradient(function), value_and_gradient(function)
    for reference, result, again in zip(expected, first, second, strict=True):
        np.testing.assert_allclose(result, reference, rtol=1e-5, atol=1e-6)
        assert (result == again).all()


@compiled_when_repeated
def _triple(x, factor=3.0):
    return x * factor + x.exp()


@pytest.fixture
def counted():
    """A function that no call has seen yet."""
    return compiled_when_repeated(_triple.__wrapped__)


def is_program(result) -> bool:
    return result.grad_fn.name() == "TripleBackward"


def repeat(function, *args, times=REPEATS + 1, **kwargs):
    for _ in range(times):
        result = function(*args, **kwargs)
    return result


def test_the_switch_comes_at_a_number_of_calls_for_each_signature(counted):
    x = gc.ones(3, requires_grad=True)
    assert not any(is_program(counted(x)) for _ in range(REPEATS))
    assert is_program(counted(x)) and is_program(counted(x))
    assert not is_program(counted(gc.ones(4, requires_grad=True)))
    assert not is_program(counted(x, factor=2.0))
    assert not is_program(counted(x.double()))


def test_with_deterministic_algorithms_all_calls_are_programs(counted):
    x = gc.ones(3, requires_grad=True)
    assert not is_program(counted(x))
    gc.use_deterministic_algorithms(True)
    assert is_program(counted(x))
    x = gc.ones(4, requires_grad=True)
    assert is_program(counted(x)) and is_program(counted(x))
    gc.use_deterministic_algorithms(False)
    assert is_program(counted(x)) and not is_program(counted(gc.ones(5, requires_grad=True)))


def test_with_deterministic_algorithms_no_signature_is_one_too_many(counted, monkeypatch):
    monkeypatch.setattr(repeated, "PROGRAMS", 1)
    gc.use_deterministic_algorithms(True)
    assert all(is_program(counted(gc.ones(n, requires_grad=True))) for n in (1, 2, 3))


def test_zeros_of_both_signs_are_two_constants():
    assert not repeat(_signed, gc.ones(2), 0.0).signbit().any()
    assert repeat(_signed, gc.ones(2), -0.0).signbit().all()


@compiled_when_repeated
def _signed(x, factor):
    return x * factor


def test_nothing_is_a_program_where_operations_are_looked_at(counted):
    x = gc.ones(3, requires_grad=True)
    with references():
        assert not is_program(repeat(counted, x))
    with gc.autograd.detect_anomaly():
        assert not is_program(repeat(counted, x))
    with gc.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        assert not is_program(repeat(counted, x))
    assert is_program(repeat(counted, x))
    with gc.autograd.detect_anomaly():
        assert not is_program(counted(x))


def test_hooks_of_tensors_see_gradients_and_may_replace_them(counted):
    x = gc.ones(3, requires_grad=True)
    repeat(counted, x)
    gradients = []
    y = x * 1
    y.register_hook(lambda g: gradients.append(g.clone()) or g * 2)
    counted(y).sum().backward()
    assert len(gradients) == 1
    assert gc.allclose(x.grad, gradients[0] * 2)


def test_gradients_of_gradients_flow(counted):
    x = gc.tensor([0.5, 1.0], requires_grad=True)
    repeat(counted, x)
    (first,) = gc.autograd.grad(counted(x).sum(), x, create_graph=True)
    (second,) = gc.autograd.grad(first.sum(), x)
    assert gc.allclose(second, x.detach().exp())


def test_a_backward_pass_is_mapped_over_a_batch(counted):
    x = gc.tensor([0.5, 1.0], requires_grad=True)
    y = repeat(counted, x)
    rows = gc.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 3.0]])
    (gradients,) = gc.vmap(lambda g: gc.autograd.grad(y, x, g, retain_graph=True))(rows)
    assert gc.allclose(gradients, rows * (3 + x.detach().exp()))


def test_a_graph_runs_backward_once_unless_it_is_kept(counted):
    x = gc.ones(3, requires_grad=True)
    repeat(counted, x)
    y = counted(x).sum()
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(GradientError, match="freed"):
        y.backward()


def test_an_argument_that_is_written_to_before_the_backward_pass_raises():
    @compiled_when_repeated
    def squared(x):
        return x * x * 1.5

    x = gc.ones(3, requires_grad=True)
    repeat(squared, x * 1)
    y = x * 1
    z = squared(y)
    y.mul_(2)
    with pytest.raises(GradientError, match="in-place"):
        z.sum().backward()


def test_what_returns_its_argument_still_does():
    same = compiled_when_repeated(lambda x: x.view(-1))
    x = gc.zeros(2, 2)
    repeat(same, x).fill_(1)
    assert x.sum() == 4


def test_what_writes_to_its_argument_still_does():
    x = -gc.ones(2)
    for _ in range(REPEATS + 3):
        F.relu(x, inplace=True)
        assert (x == 0).all()
        x.fill_(-1.0)


def test_errors_are_those_of_the_function():
    x = gc.zeros(2, 3)
    repeat(F.cross_entropy, x, gc.tensor([0, 1]))
    with pytest.raises(IndexRangeError):
        F.cross_entropy(x, gc.tensor([0, 7]))


def test_operands_that_lie_otherwise_in_memory_give_the_same():
    x = gc.tensor(np.arange(12.0, dtype=np.float32).reshape(4, 3))
    repeat(F.softmax, x, -1)
    assert gc.allclose(F.softmax(gc.tensor(x.numpy().T.copy()).t(), -1), F.softmax(x, -1))


def test_in_inference_mode_results_have_no_version(counted):
    x = gc.ones(3)
    repeat(counted, x)
    with gc.inference_mode():
        assert counted(x).is_inference()


def test_programs_are_made_of_so_many_signatures_and_no_more(counted, monkeypatch):
    monkeypatch.setattr(repeated, "PROGRAMS", 1)
    assert is_program(repeat(counted, gc.ones(3, requires_grad=True)))
    assert not is_program(repeat(counted, gc.ones(4, requires_grad=True)))


def test_random_numbers_have_the_same_bits_before_and_after():
    def drawn():
        gc.manual_seed(5)
        return [gc.randn(7, 9), gc.rand(1000), gc.randint(0, 9, (3, 3)), F.dropout(gc.ones(50), 0.3), gc.randn(0)]

    first = drawn()
    for _ in range(40):
        drawn()
    assert all((a == b).all() for a, b in zip(first, drawn(), strict=True))


def test_dropout_in_modules_draws_the_same_in_each_place():
    model = nn.Sequential(nn.Dropout(0.5), nn.Linear(8, 8), nn.Dropout(0.5))

    def run():
        gc.manual_seed(1)
        return model(gc.ones(4, 8))

    with references():
        expected = run()
    for _ in range(45):
        result = run()
    assert gc.allclose(result, expected, atol=1e-6)


def test_a_script_without_modules_has_programs_too():
    script = "import graphc as gc; x = gc.ones(3, requires_grad=True); print([x.sum() for _ in range(40)][-1].grad_fn)"
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "<TotalBackward>"


RESUMED = """
import sys
import numpy as np
import graphc as gc
from graphc import nn
from graphc.nn import functional as F

gc.use_deterministic_algorithms(sys.argv[1] == "True")
gc.manual_seed(0)
net = nn.Sequential(nn.Linear(24, 96), nn.LayerNorm(96), nn.GELU(), nn.Linear(96, 5))
optimizer = gc.optim.AdamW(net.parameters(), lr=3e-3)
x, y = gc.randn(8, 24), gc.randint(0, 5, (8,))


def train(steps):
    for _ in range(steps):
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimizer.step()
    return np.concatenate([p.detach().numpy().ravel() for p in net.parameters()])


start, stop = int(sys.argv[2]), int(sys.argv[3])
if start:
    saved = gc.load(sys.argv[4], weights_only=False)
    net.load_state_dict(saved["net"]), optimizer.load_state_dict(saved["optimizer"])
weights = train(stop - start)
gc.save({"net": net.state_dict(), "optimizer": optimizer.state_dict()}, sys.argv[4])
print(weights.tobytes().hex())
"""


@pytest.mark.sampled(50)
@pytest.mark.parametrize("deterministic", [True, False])
def test_a_process_that_resumes_has_the_bits_of_one_that_goes_on(deterministic, tmp_path):
    def run(start, stop):
        words = [str(deterministic), str(start), str(stop), str(tmp_path / "saved")]
        return subprocess.run(
            [sys.executable, "-c", RESUMED, *words], capture_output=True, text=True, check=True
        ).stdout

    uninterrupted, _ = run(0, 60), run(0, 30)
    assert (run(30, 60) == uninterrupted) == deterministic
