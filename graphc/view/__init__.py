"""One page that shows a model: its graph after every pass, and its kernels with their times."""

from graphc.view.model import view_data
from graphc.view.page import page

__all__ = ["page", "view_data"]
