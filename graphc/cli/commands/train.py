"""``graphc train``: train an entry of a model file on data in files, with checkpoints to resume from."""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from graphc.base.errors import ArgumentError, NonFiniteError
from graphc.base.progress import Progress as Bar
from graphc.base.sizes.size import bounds, is_size
from graphc.cli import arguments, console, targets
from graphc.cli.fields import Field
from graphc.cli.trainer.conversion import Scaling
from graphc.cli.trainer.entry_step import EntryStep, batch_size, entry_to_train
from graphc.cli.trainer.evaluation import Evaluation, entry_to_evaluate
from graphc.cli.trainer.measures import MEASURES, measures_named
from graphc.cli.trainer.metrics import MetricsFile
from graphc.cli.trainer.named_arrays import NamedArrays
from graphc.cli.trainer.order import Order, OrderedBatches
from graphc.cli.trainer.source import FORMS, open_data
from graphc.cli.trainer.trained_file import save_trained
from graphc.files import model_content
from graphc.models.model_file import LoadedModel, make_model
from graphc.training.checkpoint import Checkpoints
from graphc.training.history import Goal
from graphc.training.interrupt import stop_on_interrupt
from graphc.training.loop import Rules, Training, TrainingProgress, Watcher
from graphc.training.picture import check_path

EXAMPLES = (
    "graphc train net.gcm --data train.npz --epochs 5 --shuffle -o trained.gcm",
    "graphc train net.gcm --data flowers.csv --columns x=0..3,y=4 --batch 16 --lr 0.01 -o trained.gcm",
    "graphc train net.gcm --data mnist/ --valid mnist/ --checkpoint run --every 500 --resume -o trained.gcm",
    "graphc train net.gcm --data train.npz --valid valid.npz --patience 5 --keep-best --plot h.svg -o trained.gcm",
    "graphc train net.gcm --images images.gz --labels labels.gz --metrics metrics.jsonl --json -o trained.gcm",
)
JSON = (
    Field("event", "string", "step, epoch, or done; each line of the output is one object"),
    Field("step", "integer", "steps so far"),
    Field("epoch", "integer", "the epoch, counted from 1; for done, the number of epochs"),
    Field("seconds", "number", "training time so far, including the time before an interruption", "s"),
    Field("path", "string", "done only: the file that was written", optional=True),
    Field(
        "*",
        "number or null",
        "loss, other numbers that the entry returns, and valid.NAME measures of --valid",
        optional=True,
    ),
)
SHARE = 10
"""Number of times that measures are printed in an epoch, without ``--log``."""


def add_to(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="FILE", help="a model file with an entry that trains")
    parser.add_argument(
        "--entry", metavar="NAME", help="entry to train (default: train_step, or the only one that trains)"
    )
    _add_data(parser)
    parser.add_argument(
        "--epochs", type=arguments.count, default=1, metavar="N", help="number of passes over the data (default: 1)"
    )
    parser.add_argument("--batch", type=arguments.count, metavar="N", help="samples in one step (default: as exported)")
    parser.add_argument("--shuffle", action="store_true", help="shuffle the data in each epoch")
    parser.add_argument(
        "--seed", type=arguments.natural, metavar="N", help="seed of the shuffling and of the model's random numbers"
    )
    parser.add_argument("--lr", type=arguments.number, metavar="X", help="learning rate (default: as exported)")
    _add_outputs(parser)
    _add_ends(parser)
    parser.add_argument(
        "--set",
        type=_setting,
        action="append",
        default=[],
        metavar="NAME=X",
        help="set another number of the optimizer; may be given several times",
    )
    parser.add_argument("--keep-going", action="store_true", help="continue if the loss is not finite")
    parser.add_argument(
        "--workers",
        type=arguments.natural,
        default=0,
        metavar="N",
        help="number of threads that load data ahead (default: 0)",
    )
    parser.add_argument(
        "--trust", action="store_true", help="run object code from the file (only if you trust its author)"
    )
    arguments.add_threads(parser)
    parser.add_argument("--json", action="store_true", help="print measures as JSON, one object on each line")
    parser.add_argument(
        "-o", "--output", required=True, metavar="FILE.gcm", help="model file to write, with the trained weights"
    )
    parser.set_defaults(run=run)


def _add_data(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", metavar="DATA", help=FORMS)
    parser.add_argument("--columns", metavar="NAME=0..3,NAME=4", help="columns of the table that each input takes")
    parser.add_argument("--images", metavar="FILE", help="data of the first input, an IDX or .npy file; needs --labels")
    parser.add_argument(
        "--labels", metavar="FILE", help="data of the second input, an IDX or .npy file; needs --images"
    )
    parser.add_argument(
        "--scale",
        type=arguments.number,
        metavar="X",
        help="multiply the data by X before --mean and --std (default: 1/255 for bytes)",
    )
    parser.add_argument(
        "--mean",
        type=arguments.numbers,
        default=(),
        metavar="X,..",
        help="subtract X from the scaled data: one number, or one for each channel",
    )
    parser.add_argument(
        "--std",
        type=arguments.numbers,
        default=(),
        metavar="X,..",
        help="then divide by X: one number, or one for each channel",
    )
    parser.add_argument("--valid", metavar="DATA", help="validation data, measured after each epoch")
    parser.add_argument(
        "--valid-entry",
        metavar="NAME",
        help="entry to measure on --valid (default: the first entry other than the trained one)",
    )
    parser.add_argument("--measure", metavar="NAME,NAME", help=f"measures of --valid: some of {', '.join(MEASURES)}")


def _add_outputs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--checkpoint", metavar="FOLDER", help="write checkpoints to this folder")
    parser.add_argument(
        "--every",
        type=arguments.count,
        default=0,
        metavar="N",
        help="write a checkpoint every N steps (default: after each epoch)",
    )
    parser.add_argument(
        "--keep", type=arguments.count, default=3, metavar="K", help="keep the newest K checkpoints (default: 3)"
    )
    parser.add_argument("--resume", action="store_true", help="continue from the newest checkpoint, if there is one")
    parser.add_argument("--metrics", metavar="FILE", help="write measures to a .jsonl or .csv file")
    parser.add_argument(
        "--log", type=arguments.count, metavar="N", help="print measures every N steps (default: 10 times in an epoch)"
    )


def _add_ends(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--patience",
        type=arguments.count,
        default=0,
        metavar="N",
        help="stop after N epochs without a better value of the goal (default: train all epochs)",
    )
    parser.add_argument(
        "--keep-best", action="store_true", help="write the weights of the best epoch, and not of the last one"
    )
    parser.add_argument(
        "--goal",
        type=_goal,
        metavar="NAME",
        help="measure that says which epoch is the best, such as valid.f1, or max:valid.reward for a name that graphc "
        "does not know (default: the first measure of --valid, or else the loss)",
    )
    parser.add_argument("--plot", metavar="FILE.svg", help="draw the measures of the epochs; .png needs matplotlib")


def _goal(text: str) -> Goal:
    try:
        return Goal.parse(text)
    except ArgumentError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _setting(text: str) -> tuple[str, float]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=NUMBER")
    return name, arguments.number(value)


def run(options: argparse.Namespace) -> int:
    """Run the command; return INTERRUPTED after Ctrl-C, WRONG if the loss is not finite."""
    _check(options)
    stored = model_content.load(options.model)
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
            console.say(f"note: there is no checkpoint in {options.checkpoint}, so training starts from the beginning")
        with targets.compiling():
            step.entry.prepare()
        return _train(options, training, step, stored, stack)


def _check(options: argparse.Namespace) -> None:
    """Raise UsageError for arguments that exclude or need each other."""
    pair = [options.images, options.labels]
    if bool(options.data) == any(pair) or any(pair) != all(pair):
        raise console.UsageError(
            "graphc train needs either --data, or --images and --labels", remedy=f"pass --data {FORMS}"
        )
    if not options.checkpoint and (options.resume or options.every):
        raise console.UsageError("--resume and --every need checkpoints", remedy="pass --checkpoint FOLDER")
    if not options.valid and (options.measure or options.valid_entry):
        raise console.UsageError("--measure and --valid-entry need validation data", remedy="pass --valid DATA")
    if options.goal and not (options.keep_best or options.patience):
        raise console.UsageError("--goal chooses the best epoch", remedy="pass --keep-best, or --patience N")
    output = Path(options.output)
    if output.suffix != ".gcm" or not output.resolve().parent.is_dir():
        raise console.UsageError(f"--output {options.output!r} must be a .gcm file in an existing folder")
    if options.plot:
        check_path(options.plot)


def _pair(options: argparse.Namespace, step: EntryStep) -> str:
    if len(step.inputs) != 2:
        raise console.UsageError(
            f"--images and --labels are two inputs, and the entry has {len(step.inputs)}",
            remedy="pass --data NAME=FILE,NAME=FILE",
        )
    return f"{step.inputs[0].name}={options.images},{step.inputs[1].name}={options.labels}"


def _data(options: argparse.Namespace, step: EntryStep, text: str, option: str, training: bool) -> NamedArrays:
    """Open the data for the inputs of an entry, and print a note on each conversion."""
    data = open_data(text, step.inputs, options.columns, training)
    for note in data.fit(step.inputs, Scaling(options.scale, options.mean, options.std)):
        console.say(f"note: {option} {note}")
    return data


def _drops_last(batch: Any, count: int, requested: int | None) -> bool:
    """Check whether the entry cannot take the smaller batch at the end of an epoch."""
    return not is_size(batch) or 0 < count % batch_size(batch, requested) < bounds(batch)[0]


def _put_numbers(options: argparse.Namespace, step: EntryStep) -> None:
    settings = ([("lr", options.lr)] if options.lr is not None else []) + options.set
    for name, value in settings:
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
        validation_data = _data(options, step, options.valid, "--valid", False)
        measures = measures_named(options.measure) if options.measure else None
        entry = entry_to_evaluate(model, step.entry.name, options.valid_entry)
        evaluate = Evaluation(entry, validation_data, step.inputs, measures)
    checkpoints = Checkpoints(options.checkpoint, options.keep) if options.checkpoint else None
    if checkpoints is not None:
        stack.callback(checkpoints.close)
    rules = Rules(
        options.epochs,
        options.every,
        options.log or max(len(order) // SHARE, 1),
        options.keep_going,
        patience=options.patience,
        keeps_best=options.keep_best,
        goal=options.goal,
        remedy="pass a smaller --lr, or --keep-going",
    )
    watcher = _Printer(options, step, evaluate, rules.epochs * len(order))
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
        OrderedBatches(data, order, options.workers),
        rules,
        settings=settings,
        checkpoints=checkpoints,
        evaluate=evaluate,
        watcher=watcher,
    )


def _resumed(options: argparse.Namespace, training: Training) -> bool:
    """Resume from a checkpoint if ``--resume`` is given; otherwise raise UsageError if the folder has checkpoints."""
    if options.resume:
        is_resumed = training.resume()
        if is_resumed:
            console.say(f"resuming after step {training.progress.step} of {training.steps}")
        return is_resumed
    steps = training.checkpoints.steps() if training.checkpoints is not None else []
    if steps:
        raise console.UsageError(
            f"{options.checkpoint!r} holds checkpoints of an earlier training, up to step {steps[-1]}",
            remedy="pass --resume, or choose another folder",
        )
    return False


def _train(options: argparse.Namespace, training: Training, step: EntryStep, stored: Any, stack: ExitStack) -> int:
    watcher = training.watcher
    assert isinstance(watcher, _Printer)
    watcher.begin(training.progress.step, stack)
    with stop_on_interrupt() as stopped:
        try:
            is_done = training.run(stopped)
        except NonFiniteError as error:
            watcher.end()
            console.complain(str(error))
            return console.WRONG
        watcher.end()
    progress, history = training.progress, training.history
    if options.plot and len(history):
        history.plot(options.plot)
    if not is_done:
        consequence = "nothing was saved, since --checkpoint was not given"
        if options.checkpoint:
            consequence = f"--resume continues from {options.checkpoint}"
        console.say(f"interrupted after step {progress.step} of {training.steps}; {consequence}")
        return console.INTERRUPTED
    if progress.epoch < options.epochs:
        console.say(
            f"stopped after epoch {progress.epoch}: {history.goal_column} was best in epoch {history.best_epoch}"
        )
    if options.keep_best and progress.best_epoch:
        console.say(f"the weights are those of epoch {progress.best_epoch}, the best by {history.goal_column}")
    save_trained(stored, step.state(), options.output)
    watcher.done(progress, options.output)
    return console.OK


class _Printer(Watcher):
    """Print lines of measures, write them to a file, and show a progress bar on a terminal."""

    def __init__(self, options: argparse.Namespace, step: EntryStep, evaluate: Evaluation | None, steps: int):
        valid = [] if evaluate is None else evaluate.names
        self.fields = ["event", "step", "epoch", *step.names, *valid, "seconds"]
        self._as_json, self._path = options.json, options.metrics
        self._epochs, self._steps = options.epochs, steps
        self._file: MetricsFile | None = None
        self._bar: Bar | None = None

    def begin(self, step: int, stack: ExitStack) -> None:
        """Open the metrics file, keeping its lines up to a step, and the bar. Raises ArgumentError, OSError."""
        if self._path:
            self._file = stack.enter_context(closing(MetricsFile(self._path, self.fields, step)))
        self._bar = Bar("training", self._steps, "steps")

    def end(self) -> None:
        """Clear the progress bar from the terminal."""
        if self._bar is not None:
            self._bar.__exit__(None, None, None)

    def step(self, progress: TrainingProgress, loss: float) -> None:
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

    def done(self, progress: TrainingProgress, path: str) -> None:
        """Report the end of the training."""
        seconds = round(progress.seconds, 3)
        if self._as_json:
            facts = {"event": "done", "step": progress.step, "epoch": progress.epoch, "seconds": seconds, "path": path}
            console.emit(console.json_text(facts))
        else:
            console.emit(f"{path}: {progress.step} steps in {console.seconds_text(max(progress.seconds, 1e-6))}")
