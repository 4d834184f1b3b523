"""Worker processes of a loader: the same batches, seeds, parts of streams, errors, killed workers, none left behind."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from multiprocessing import Pipe

import numpy as np
import pytest

import graphc as gc
from graphc.data import DataLoader, Dataset, IterableDataset, TensorDataset, get_worker_info, processes
from graphc.errors import ArgumentError, WorkerError

CONTEXTS = ["fork", "spawn", "forkserver"]


class Numbers(Dataset):
    """Sample i is i with an array of it; some take longer than others."""

    def __init__(self, count: int, size: int = 3, bad: int | None = None, wait: float = 0.0):
        self.count, self.size, self.bad, self.wait = count, size, bad, wait

    def __getitem__(self, index):
        if index == self.bad:
            raise KeyError(f"sample {index} is broken")
        time.sleep(self.wait * (index % 3))
        return {"number": index, "array": np.full(self.size, index, np.float32)}

    def __len__(self):
        return self.count


class Parts(IterableDataset):
    """The numbers from 0, of which each worker takes its part."""

    def __init__(self, count: int):
        self.count = count

    def __iter__(self):
        info = get_worker_info()
        assert info is not None
        return iter(range(info.id, self.count, info.num_workers))


class Everything(IterableDataset):
    def __iter__(self):
        yield from range(3)


class Drawn(Dataset):
    """Dataset of a worker's random numbers and its identity."""

    def __getitem__(self, index):
        info = get_worker_info()
        return info.id, info.seed, random.random(), np.random.rand(), gc.rand(1).item()

    def __len__(self):
        return 6


class Fatal(Exception):
    """Cannot be built from its arguments."""

    def __init__(self, one, two):
        super().__init__("worse")


class Ends(Dataset):
    """A worker that ends in a certain way at sample 3."""

    def __init__(self, how: str):
        self.how = how

    def __getitem__(self, index):
        if index == 3:
            if self.how == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if self.how == "exit":
                os._exit(3)
            if self.how == "strange":
                raise Fatal(1, 2)
            if self.how == "connection":
                raise ConnectionResetError("the server has gone")
            if self.how == "unsendable":
                return lambda: 0
            if self.how == "stuck":
                time.sleep(60)
        return index

    def __len__(self):
        return 8


class Fails:
    def __call__(self, number):
        raise RuntimeError("no database")


class Marks:
    """Leaves a file for each worker that was prepared."""

    def __init__(self, folder):
        self.folder = str(folder)

    def __call__(self, number):
        with open(os.path.join(self.folder, f"{number}-{os.getpid()}"), "w"):
            pass


def no_children_of(pids: list[int]) -> None:
    """Waits until processes are gone."""
    until = time.monotonic() + 10
    while any(os.path.exists(f"/proc/{pid}") for pid in pids) and time.monotonic() < until:
        time.sleep(0.01)
    assert not [pid for pid in pids if os.path.exists(f"/proc/{pid}")]


@pytest.mark.parametrize("context", CONTEXTS)
def test_batches_are_those_of_no_workers_in_the_same_order(context: str):
    options = {"batch_size": 4, "shuffle": True, "generator": 5}
    plain = DataLoader(Numbers(22, wait=0.001), **options)
    several = DataLoader(Numbers(22, wait=0.001), **options, num_workers=2, multiprocessing_context=context)
    for _ in range(2 if context == "fork" else 1):
        for mine, other in zip(plain, several, strict=True):
            assert mine["number"].tolist() == other["number"].tolist()
            np.testing.assert_array_equal(mine["array"].numpy(), other["array"].numpy())


def test_large_arrays_come_through_memory_and_may_be_written():
    data = Numbers(6, size=100_000)
    batches = list(DataLoader(data, 2, num_workers=2))
    for i, batch in enumerate(batches):
        assert (batch["array"].numpy() == [[2 * i], [2 * i + 1]]).all()
        batch["array"].add_(1)
    x, y = np.random.default_rng(0).standard_normal((40, 9000)).astype(np.float32), np.arange(40)
    for mine, other in zip(
        DataLoader(TensorDataset(x, y), 16, num_workers=1), DataLoader(TensorDataset(x, y), 16), strict=True
    ):
        np.testing.assert_array_equal(mine[0].numpy(), other[0].numpy())
        np.testing.assert_array_equal(mine[1].numpy(), other[1].numpy())


def test_a_network_trains_on_what_comes():
    x = np.random.default_rng(0).standard_normal((64, 5)).astype(np.float32)
    net = gc.nn.Linear(5, 1)
    optimizer = gc.optim.SGD(net.parameters(), lr=0.1)

    @gc.compile
    def step(x, y):
        optimizer.zero_grad()
        loss = (net(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    loader = DataLoader(TensorDataset(x, x.sum(1, keepdims=True)), 16, shuffle=True, num_workers=2)
    losses = [step(*batch).item() for _ in range(8) for batch in loader]
    assert losses[-1] < 0.1 * losses[0]


def test_seeds_follow_from_the_generator_the_epoch_and_the_worker():
    def epochs():
        loader = DataLoader(Drawn(), 3, num_workers=2, generator=9)
        return [[[c.tolist() for c in batch] for batch in loader] for _ in range(2)]

    found = epochs()
    assert found == epochs()
    assert [batch[0] for batch in found[0]] == [[0, 0, 0], [1, 1, 1]]
    for column in range(1, 5):
        values = {tuple(batch[column]) for epoch in found for batch in epoch}
        assert len(values) == 4  # Another one for each worker and each epoch.


def test_streams_come_in_parts_or_from_each_worker():
    assert sorted(b for batch in DataLoader(Parts(11), 2, num_workers=2) for b in batch.tolist()) == list(range(11))
    first = [batch.tolist() for batch in DataLoader(Parts(10), 2, num_workers=2)]
    assert first == [[0, 2], [1, 3], [4, 6], [5, 7], [8], [9]]
    assert list(DataLoader(Everything(), None, num_workers=2)) == [0, 0, 1, 1, 2, 2]
    assert list(DataLoader(Parts(1), None, num_workers=3)) == [0]


def test_errors_keep_their_class_and_bring_their_traceback():
    loader = iter(DataLoader(Numbers(10, bad=5), 2, num_workers=2))
    assert next(loader)["number"].tolist() == [0, 1]
    next(loader)
    with pytest.raises(KeyError, match="sample 5 is broken") as caught:
        next(loader)
    notes = "\n".join(caught.value.__notes__)
    assert "while loading batch 2 (samples 4, 5) in worker 0" in notes
    assert "in __getitem__" in notes and "test_processes.py" in notes and "process" in notes
    assert list(loader) == []
    with pytest.raises(WorkerError, match="Fatal: worse"):
        list(DataLoader(Ends("strange"), 1, num_workers=1))


def test_a_lost_connection_of_a_dataset_is_not_taken_for_the_loader_s():
    with pytest.raises(ConnectionResetError, match="the server has gone") as caught:
        list(DataLoader(Ends("connection"), 1, num_workers=1))
    assert "samples 3" in "\n".join(caught.value.__notes__)


def test_what_cannot_be_sent_back_is_reported():
    with pytest.raises(Exception, match="pickle"):
        list(DataLoader(Ends("unsendable"), None, num_workers=1))


@pytest.mark.parametrize(("how", "message"), [("kill", r"signal 9 \(SIGKILL\)"), ("exit", "exit code 3")])
def test_a_worker_that_is_no_more_is_an_error_and_no_wait(how: str, message: str):
    loader = DataLoader(Ends(how), 1, num_workers=2)
    got = []
    with pytest.raises(WorkerError, match=message):
        for batch in loader:
            got.append(batch.item())
    assert got == [0, 1, 2][: len(got)]


def test_a_batch_that_takes_too_long():
    with pytest.raises(TimeoutError, match="no batch came within"):
        begun = time.monotonic()
        for _ in DataLoader(Ends("stuck"), 1, num_workers=1, timeout=0.5):
            pass
    assert time.monotonic() - begun < 30


def test_a_worker_that_cannot_be_prepared_is_reported():
    with pytest.raises(RuntimeError, match="no database") as caught:
        list(DataLoader(Numbers(4), 1, num_workers=1, worker_init_fn=Fails()))
    assert "worker_init_fn prepared worker 0" in "\n".join(caught.value.__notes__)


def test_what_cannot_be_sent_to_a_worker_is_reported():
    class Local(Numbers):
        pass

    with pytest.raises(WorkerError, match="cannot be pickled") as caught:
        list(DataLoader(Local(4), 1, num_workers=1, multiprocessing_context="spawn"))
    assert "fork" in str(caught.value)
    batch = next(iter(DataLoader(Local(4), 1, num_workers=1, multiprocessing_context="fork")))
    assert batch["number"].tolist() == [0]


def test_workers_that_persist_are_the_same_in_each_epoch(tmp_path):
    loader = DataLoader(Numbers(8), 2, num_workers=2, persistent_workers=True, worker_init_fn=Marks(tmp_path))
    for _ in range(3):
        assert [b["number"].tolist() for b in loader] == [[0, 1], [2, 3], [4, 5], [6, 7]]
    for _ in loader:  # What is left of a broken epoch is not mistaken for the next one.
        break
    assert [b["number"].tolist() for b in loader] == [[0, 1], [2, 3], [4, 5], [6, 7]]
    marks = [int(name.split("-")[1]) for name in os.listdir(tmp_path)]
    assert len(marks) == 2
    del loader
    no_children_of(marks)


def test_no_worker_is_left_behind(tmp_path):
    for stop in range(3):
        iterator = iter(DataLoader(Numbers(100, size=200_000), 2, num_workers=2, worker_init_fn=Marks(tmp_path)))
        for _ in range(stop + 1):
            next(iterator)
        iterator.close()
    no_children_of([int(name.split("-")[1]) for name in os.listdir(tmp_path)])


SCRIPT = """
    import os, sys, time
    from graphc.data import DataLoader
    from tests.data.test_processes import Marks, Numbers

    if __name__ == "__main__":
        for batch in DataLoader(Numbers(10_000, wait=0.01), 1, num_workers=2, worker_init_fn=Marks(sys.argv[1])):
            print(batch["number"].item(), flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_workers_end_with_an_interrupted_or_killed_program(tmp_path, number):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    marks = tmp_path / "marks"
    marks.mkdir()
    child = subprocess.Popen(
        [sys.executable, str(script), str(marks)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.getcwd()},
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline().strip() == "0"
    child.send_signal(number)
    _, errors = child.communicate(timeout=60)
    assert child.returncode != 0
    if number == signal.SIGINT:
        assert errors.count("KeyboardInterrupt") == 1
    pids = [int(name.split("-")[1]) for name in os.listdir(marks)]
    assert len(pids) == 2
    no_children_of(pids)


def test_nobody_is_a_worker_here():
    assert get_worker_info() is None


def sent(value):
    """Return the batch received through a pipe of this process."""
    mine, other = Pipe()
    sender = threading.Thread(target=processes.send, args=(other, "head", value))
    sender.start()
    head, found = processes.receive(mine)
    sender.join()
    assert head == "head"
    return found


@pytest.mark.parametrize("count", [0, 5, 1 << 20])
def test_arrays_and_tensors_arrive_and_may_be_written(count: int):
    value = {"x": np.arange(count, dtype=np.float32), "t": (gc.arange(count), "text"), "s": np.ones((count, 1))[::2]}
    found = sent(value)
    np.testing.assert_array_equal(found["x"], value["x"])
    np.testing.assert_array_equal(found["t"][0].numpy(), value["t"][0].numpy())
    np.testing.assert_array_equal(found["s"], value["s"])
    found["x"] += 1
    found["t"][0].add_(1)
    assert found["t"][1] == "text"


def test_no_files_stay_open():
    before = len(os.listdir("/proc/self/fd"))
    kept = [sent(np.ones(1 << 18)) for _ in range(3)]
    assert all(array.all() for array in kept)
    del kept
    assert len(os.listdir("/proc/self/fd")) <= before


def test_what_cannot_be_pickled_is_an_error_before_anything_is_sent():
    mine, other = Pipe()
    with pytest.raises(Exception, match="pickle"):
        processes.send(other, "head", lambda: 0)
    assert not mine.poll()


def test_exceptions():
    class Strange(Exception):
        def __init__(self, one, two):
            super().__init__("worse")

    known, text = processes.portable(ArgumentError("what", remedy="this"))
    assert isinstance(known, ArgumentError) and "ArgumentError: what" in text
    strange, text = processes.portable(Strange(1, 2))
    assert isinstance(strange, WorkerError) and "Strange: worse" in str(strange) and "Strange" in text
