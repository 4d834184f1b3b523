"""``graphc train``: trains an entry of a model file on data in files, with checkpoints from which it goes on."""

from __future__ import annotations

import argparse
import hashlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

from graphc.base.errors import NonFiniteError
from graphc.base.sizes.size import bounds, is_size
from graphc.cli import arguments, console, targets
from graphc.cli.fields import Field
from graphc.cli.progress import Progress as Bar
from graphc.cli.trainer.checkpoint import Checkpoints
from graphc.cli.trainer.conversion import Scaling
from graphc.cli.trainer.entry_step import EntryStep, batch_size, entry_to_train
from graphc.cli.trainer.evaluation import Evaluation, entry_to_evaluate
from graphc.cli.trainer.loop import Progress, Rules, Training, Watcher
from graphc.cli.trainer.measures import MEASURES, measures_named
from graphc.cli.trainer.metrics import MetricsFile
from graphc.cli.trainer.named_arrays import NamedArrays
from graphc.cli.trainer.order import Order
from graphc.cli.trainer.source import FORMS, open_data
from graphc.cli.trainer.trained_file import save_trained
from graphc.models.model_file import LoadedModel, make_model
from graphc.models.model_read import read_model

EXAMPLES = (
    "graphc train net.gcm --data train.npz --epochs 5 --shuffle -o trained.gcm",
    "graphc train net.gcm --data flowers.csv --columns x=0..3,y=4 --batch 16 --lr 0.01 -o trained.gcm",
    "graphc train net.gcm --data mnist/ --valid mnist/ --checkpoint run --every 500 --resume -o trained.gcm",
    "graphc train net.gcm --images images.gz --labels labels.gz --metrics metrics.jsonl --json -o trained.gcm",
)
JSON = (
    Field("event", "string", "step, epoch, or done: each line of the output is an object of its own"),
    Field("step", "integer", "steps so far"),
    Field("epoch", "integer", "the epoch, from 1 on; of done, how many there were"),
    Field("seconds", "number", "time of training so far, before an interruption too", "s"),
    Field("path", "string", "of done: the file that was written", optional=True),
    Field("*", "number or null", "loss, further numbers of the entry, valid.NAME measures of --valid", optional=True),
)
SHARE = 10
"""Lines of measures in an epoch where nobody says otherwise."""


def add_to(parser: argparse.ArgumentParser) -> None:
    """Gives the command's parser its arguments."""
    parser.add_argument("model", metavar="FILE", help="a model file with an entry that trains")
    parser.add_argument("--entry", metavar="NAME", help="which entry (default: train_step, or the one that trains)")
    _add_data(parser)
    parser.add_argument("--epochs", type=arguments.count, default=1, metavar="N", help="times that all data are used")
    parser.add_argument("--batch", type=arguments.count, metavar="N", help="samples of a step (default: as exported)")
    parser.add_argument("--shuffle", action="store_true", help="use the data in another order in each epoch")
    parser.add_argument("--seed", type=arguments.natural, metavar="N", help="of the order and of random numbers")
    parser.add_argument("--lr", type=arguments.number, metavar="X", help="learning rate (default: as exported)")
    _add_leavings(parser)
    parser.add_argument(
        "--set", type=_setting, action="append", default=[], metavar="NAME=X", help="another number of the optimizer"
    )
    parser.add_argument("--keep-going", action="store_true", help="go on where the loss is no finite number")
    parser.add_argument("--workers", type=arguments.natural, default=0, metavar="N", help="threads that read ahead")
    parser.add_argument("--trust", action="store_true", help="run object code from the file (only from who you trust)")
    arguments.add_threads(parser)
    parser.add_argument("--json", action="store_true", help="print measures as JSON, one object in a line")
    parser.add_argument("-o", "--output", required=True, metavar="FILE.gcm", help="the file with the trained weights")
    parser.set_defaults(run=run)


def _add_data(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", metavar="DATA", help=FORMS)
    parser.add_argument("--columns", metavar="NAME=0..3,NAME=4", help="which columns of a table each input is")
    parser.add_argument("--images", metavar="FILE", help="the first input, as an IDX or .npy file, beside --labels")
    parser.add_argument("--labels", metavar="FILE", help="the second input")
    parser.add_argument("--scale", type=arguments.number, metavar="X", help="factor (default: 1/255 of bytes)")
    parser.add_argument("--mean", type=arguments.numbers, default=(), metavar="X,..", help="subtracted, by channel")
    parser.add_argument("--std", type=arguments.numbers, default=(), metavar="X,..", help="divided by then")
    parser.add_argument("--valid", metavar="DATA", help="data that are measured after each epoch")
    parser.add_argument("--valid-entry", metavar="NAME", help="the entry that is measured (default: the first other)")
    parser.add_argument("--measure", metavar="NAME,NAME", help=f"of {', '.join(MEASURES)}")


def _add_leavings(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--checkpoint", metavar="FOLDER", help="write checkpoints there")
    parser.add_argument("--every", type=arguments.count, default=0, metavar="N", help="after N steps (default: epochs)")
    parser.add_argument("--keep", type=arguments.count, default=3, metavar="K", help="keep the last ones (default: 3)")
    parser.add_argument("--resume", action="store_true", help="go on from the newest checkpoint, if there is one")
    parser.add_argument("--metrics", metavar="FILE", help="write measures to a .jsonl or .csv file")
    parser.add_argument("--log", type=arguments.count, metavar="N", help="measures after N steps (default: 10 times)")


def _setting(text: str) -> tuple[str, float]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is no NAME=NUMBER")
    return name, arguments.number(value)


def run(options: argparse.Namespace) -> int:
    """Runs the command; INTERRUPTED after Ctrl-C, WRONG where the loss is no finite number."""
    _check(options)
    stored = read_model(options.model)
    with targets.compiling():
        model = make_model(stored, "host", options.trust)
    step = EntryStep(model, entry_to_train(model, options.entry))
    data = _data(options, step, options.data or _pair(options, step), "--data", True)
    order = Order(
        len(data),
        batch_size(step.batch, options.batch),
        options.seed or 0,
        options.shuffle,
        drop_last=_drops_last(step.batch, len(data), options.batch),
    )
    _put_numbers(options, step)
    with ExitStack() as stack:
        training = _training(options, model, step, data, order, stored.digest, stack)
        if not _resumed(options, training) and options.checkpoint and options.resume:
            console.say(f"note: there is no checkpoint in {options.checkpoint}, so this is the begin")
        with targets.compiling():
            step.entry.prepare()
        return _train(options, training, step, stored, stack)


def _check(options: argparse.Namespace) -> None:
    """Raises UsageError for arguments that do not go together."""
    pair = [options.images, options.labels]
    if bool(options.data) == any(pair) or any(pair) != all(pair):
        raise console.UsageError("the data are given by --data, or by --images and --labels", remedy=f"--data {FORMS}")
    if not options.checkpoint and (options.resume or options.every):
        raise console.UsageError("--resume and --every are about checkpoints", remedy="--checkpoint FOLDER")
    if not options.valid and (options.measure or options.valid_entry):
        raise console.UsageError("--measure and --valid-entry are about other data", remedy="--valid DATA")
    place = Path(options.output)
    if place.suffix != ".gcm" or not place.resolve().parent.is_dir():
        raise console.UsageError(f"{options.output!r} is no .gcm file in a folder that is there")


def _pair(options: argparse.Namespace, step: EntryStep) -> str:
    if len(step.inputs) != 2:
        raise console.UsageError("--images and --labels are two inputs", remedy="--data NAME=FILE,NAME=FILE")
    return f"{step.inputs[0].name}={options.images},{step.inputs[1].name}={options.labels}"


def _data(options: argparse.Namespace, step: EntryStep, text: str, option: str, training: bool) -> NamedArrays:
    """Data for the inputs of an entry; says what is converted."""
    data = open_data(text, step.inputs, options.columns, training)
    for note in data.fit(step.inputs, Scaling(options.scale, options.mean, options.std)):
        console.say(f"note: {option} {note}")
    return data


def _drops_last(batch: Any, count: int, wanted: int | None) -> bool:
    """Whether the entry does not take what is left over at the end of an epoch."""
    return not is_size(batch) or 0 < count % batch_size(batch, wanted) < bounds(batch)[0]


def _put_numbers(options: argparse.Namespace, step: EntryStep) -> None:
    given = ([("lr", options.lr)] if options.lr is not None else []) + options.set
    for name, value in given:
        step.put(name, value)
    if options.seed is not None:
        step.seed(options.seed)


def _training(
    options: argparse.Namespace,
    model: LoadedModel,
    step: EntryStep,
    data: NamedArrays,
    order: Order,
    digest: bytes,
    stack: ExitStack,
) -> Training:
    evaluate = None
    if options.valid:
        held = _data(options, step, options.valid, "--valid", False)
        measures = measures_named(options.measure) if options.measure else None
        entry = entry_to_evaluate(model, step.entry.name, options.valid_entry)
        evaluate = Evaluation(entry, held, step.inputs, measures)
    checkpoints = Checkpoints(options.checkpoint, options.keep) if options.checkpoint else None
    if checkpoints is not None:
        stack.callback(checkpoints.close)
    rules = Rules(options.epochs, options.every, options.log or max(len(order) // SHARE, 1), options.keep_going)
    watcher = _Printed(options, step, evaluate, rules.epochs * len(order))
    settings = {
        "file": hashlib.sha256(digest).hexdigest(),
        "entry": step.entry.name,
        "data": data.digest() if options.checkpoint else "",
        "scaling": [options.scale, list(options.mean), list(options.std)],
        "batch": order.batch,
        "seed": options.seed,
        "shuffle": order.shuffle,
        "lr": options.lr,
        "set": [list(pair) for pair in options.set],
    }
    return Training(
        step,
        data,
        order,
        rules,
        settings=settings,
        checkpoints=checkpoints,
        evaluate=evaluate,
        watcher=watcher,
        workers=options.workers,
    )


def _resumed(options: argparse.Namespace, training: Training) -> bool:
    """Goes on from a checkpoint where that is asked for; what is in the way otherwise is told."""
    if options.resume:
        found = training.resume()
        if found:
            console.say(f"going on after step {training.progress.step} of {training.steps}")
        return found
    steps = training.checkpoints.steps() if training.checkpoints is not None else []
    if steps:
        raise console.UsageError(
            f"{options.checkpoint!r} holds checkpoints of a training, up to step {steps[-1]}",
            remedy="--resume, or another folder",
        )
    return False


def _train(options: argparse.Namespace, training: Training, step: EntryStep, stored: Any, stack: ExitStack) -> int:
    watcher = training.watcher
    assert isinstance(watcher, _Printed)
    watcher.begin(training.progress.step, stack)
    with _stoppable() as stopped:
        try:
            is_done = training.run(stopped)
        except NonFiniteError as error:
            watcher.end()
            console.complain(str(error))
            return console.WRONG
        watcher.end()
    progress = training.progress
    if not is_done:
        kept = "nothing was kept, as there is no --checkpoint"
        if options.checkpoint:
            kept = f"--resume goes on from {options.checkpoint}"
        console.say(f"interrupted after step {progress.step} of {training.steps}; {kept}")
        return console.INTERRUPTED
    save_trained(stored, step.state(), options.output)
    watcher.done(progress, options.output)
    return console.OK


@contextmanager
def _stoppable() -> Iterator[Callable[[], bool]]:
    """Inside, the first Ctrl-C lets the present step end, and a second one acts as always."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set
        return
    before = signal.getsignal(signal.SIGINT)

    def stop(*_: Any) -> None:
        asked.set()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, stop)
    try:
        yield asked.is_set
    finally:
        signal.signal(signal.SIGINT, before)


class _Printed(Watcher):
    """Prints lines of measures, writes them to a file, and shows how far it is on a terminal."""

    def __init__(self, options: argparse.Namespace, step: EntryStep, evaluate: Evaluation | None, steps: int):
        valid = [] if evaluate is None else [f"valid.{name}" for name in evaluate.names]
        self.fields = ["event", "step", "epoch", *step.names, *valid, "seconds"]
        self._as_json, self._path = options.json, options.metrics
        self._epochs, self._steps = options.epochs, steps
        self._file: MetricsFile | None = None
        self._bar: Bar | None = None

    def begin(self, step: int, stack: ExitStack) -> None:
        """Opens the file of measures, of which lines up to a step stay, and the bar. Raises ArgumentError, OSError."""
        if self._path:
            self._file = stack.enter_context(closing(MetricsFile(self._path, self.fields, step)))
        self._bar = Bar("training", self._steps, "steps")

    def end(self) -> None:
        """Takes the bar away."""
        if self._bar is not None:
            self._bar.__exit__(None, None, None)

    def step(self, progress: Progress, loss: float) -> None:
        if self._bar is not None:
            rate = progress.step / progress.seconds if progress.seconds else 0.0
            self._bar.tell(progress.step, f"loss {loss:.4g}, {rate:.1f} steps/s")

    def line(self, line: Mapping[str, Any]) -> None:
        if self._file is not None:
            self._file.write(line)
        self.end()
        if self._as_json:
            console.emit(console.json_text(line))
        elif line["event"] == "epoch":
            console.emit(f"epoch {line['epoch']}/{self._epochs}  step {line['step']}  {self._numbers(line)}")
        else:
            console.say(f"step {line['step']}/{self._steps}  {self._numbers(line)}")
        sys.stdout.flush()

    def _numbers(self, line: Mapping[str, Any]) -> str:
        shown = [name for name in line if name not in ("event", "step", "epoch", "seconds")]
        texts = [f"{name} {'not finite' if line[name] is None else format(line[name], '.5g')}" for name in shown]
        return "  ".join((*texts, f"{line['seconds']:.1f} s"))

    def done(self, progress: Progress, path: str) -> None:
        """The training has come to its end."""
        seconds = round(progress.seconds, 3)
        if self._as_json:
            facts = {"event": "done", "step": progress.step, "epoch": progress.epoch, "seconds": seconds, "path": path}
            console.emit(console.json_text(facts))
        else:
            console.emit(f"{path}: {progress.step} steps in {console.seconds_text(max(progress.seconds, 1e-6))}")
