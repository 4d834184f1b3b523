"""Watching a model while it runs: numbers from hooks, shown in a terminal, on a page or in TensorBoard."""

from graphc.monitor.html import HtmlWriter
from graphc.monitor.tensorboard import TensorBoardWriter
from graphc.monitor.terminal import TerminalWriter
from graphc.monitor.watch import Monitor
from graphc.monitor.writer import Writer

__all__ = ["HtmlWriter", "Monitor", "TensorBoardWriter", "TerminalWriter", "Writer"]
