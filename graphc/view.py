"""The import path that users know for pages that show a model."""

from graphc.pages.model_data import view_data
from graphc.pages.model_page import page

__all__ = ["page", "view_data"]
