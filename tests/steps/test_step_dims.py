"""Training steps with a named batch dimension: one trace, also for the shorter last batch."""

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.errors import ArgumentError, ShapeError
from graphc.nn import functional as F
from graphc.steps import step_program as steps

BATCH = gc.Dim("batch", 1, 64)


def model_and_optimizer():
    gc.manual_seed(1)
    # no bias before batch norm: its gradient is 0 but for rounding, which AdamW makes as large as any other
    model = nn.Sequential(
        nn.Linear(8, 16, bias=False), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 4)
    )
    return model, gc.optim.AdamW(model.parameters(), lr=0.01)


@pytest.fixture
def traces(monkeypatch):
    results = []
    trace = steps.trace_function
    monkeypatch.setattr(steps, "trace_function", lambda *a, **k: (results.append(a), trace(*a, **k))[1])
    return results


def test_the_shorter_last_batch_has_no_trace_of_its_own(traces):
    a, optimizer_a = model_and_optimizer()
    b, optimizer_b = model_and_optimizer()
    step = gc.compile_step(a, F.cross_entropy, optimizer_a, dims={"input": (BATCH,), "target": (BATCH,)})
    fixed = gc.compile_step(b, F.cross_entropy, optimizer_b)
    for count in (16, 16, 5, 16, 2):
        x, y = gc.rand(count, 8), gc.randint(0, 4, (count,))
        gc.manual_seed(count)
        loss = step(x, y).item()
        gc.manual_seed(count)
        assert loss == pytest.approx(fixed(x, y).item(), rel=1e-5)
    assert len(traces) == 1 + 3 and len(step.graphs) == 1
    for p, q in zip(a.parameters(), b.parameters(), strict=True):
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=1e-4, atol=1e-5)


def test_sizes_that_vary_are_found_from_the_calls(traces):
    model, optimizer = model_and_optimizer()
    step = gc.compile_step(model, F.cross_entropy, optimizer, dims="auto")
    for count in (16, 5, 7, 16):
        step(gc.rand(count, 8), gc.randint(0, 4, (count,)))
    assert len(traces) == 2


def test_programs_for_all_sizes_accumulate_and_update_in_turns():
    models, steps = [], []
    for dims in ({"input": (BATCH,), "target": (BATCH,)}, None):
        model, optimizer = model_and_optimizer()
        models.append(model)
        steps.append(gc.compile_step(model, F.cross_entropy, optimizer, dims=dims, accumulate=2))
    for count in (16, 16, 5, 5):
        x, y = gc.rand(count, 8), gc.randint(0, 4, (count,))
        for step in steps:
            gc.manual_seed(count)
            step(x, y)
    assert len(steps[0].graphs) == 2 and steps[0].optimizer.step_count == 2
    for p, q in zip(*(model.parameters() for model in models), strict=True):
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=1e-4, atol=1e-5)


def test_sizes_that_differ_and_unknown_arguments_are_refused():
    model, optimizer = model_and_optimizer()
    step = gc.compile_step(model, F.cross_entropy, optimizer, dims=[(BATCH,), (BATCH,)])
    with pytest.raises(ShapeError, match="dimension 0 of target is 5, not 4 = batch"):
        step(gc.rand(4, 8), gc.randint(0, 4, (5,)))
    with pytest.raises(ArgumentError, match="dims names an argument 'labels'"):
        gc.compile_step(model, F.cross_entropy, optimizer, dims={"labels": (BATCH,)})


class Masked(nn.Module):
    """Looks at as many features as a number says."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 4)

    def forward(self, x, seen: int):
        return self.fc(x * (gc.arange(8) < seen)), seen


def test_numbers_of_model_and_loss_have_one_trace(traces):
    a, b = Masked(), Masked()
    b.load_state_dict(a.state_dict())
    optimizers = [gc.optim.SGD(m.parameters(), lr=0.1) for m in (a, b)]

    def loss(output, target, rows):
        return ((output[0] - target)[:rows] ** 2).mean()

    step = gc.compile_step(a, loss, optimizers[0], dims={"seen": gc.Dim("seen", 0, 8), "rows": gc.Dim("rows", 1, 6)})
    for seen, rows in ((3, 2), (0, 1), (8, 6), (np.int64(7), 5)):
        x, y = gc.randn(6, 8), gc.randn(6, 4)
        result = step((x, seen), y, rows)
        optimizers[1].zero_grad()
        expected = loss(b(x, int(seen)), y, rows)
        expected.backward()
        optimizers[1].step()
        np.testing.assert_allclose(result.item(), expected.item(), rtol=1e-4)
        assert step.last_output[1] == seen
    np.testing.assert_allclose(a.fc.weight.detach().numpy(), b.fc.weight.detach().numpy(), rtol=1e-4, atol=1e-6)
    assert len(traces) == 1
    with pytest.raises(ArgumentError, match=r"rows is 7, outside of 1\.\.6"):
        step((x, 3), y, 7)
