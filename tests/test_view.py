"""The import path of pages that show a model."""

from __future__ import annotations

from graphc import view
from graphc.pages import model_data, model_page


def test_it_hands_on_the_functions_of_the_pages():
    assert view.page is model_page.page
    assert view.view_data is model_data.view_data
