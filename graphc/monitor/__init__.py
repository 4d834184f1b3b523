"""Monitor a running model: statistics from hooks, shown in a terminal, on an HTML page or in TensorBoard."""

from graphc.monitor.html import HtmlWriter
from graphc.monitor.tensorboard import TensorBoardWriter
from graphc.monitor.terminal import TerminalWriter
from graphc.monitor.watch import Monitor
from graphc.monitor.writer import Writer

__all__ = ["HtmlWriter", "Monitor", "TensorBoardWriter", "TerminalWriter", "Writer"]
