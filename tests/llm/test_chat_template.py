"""Chat templates: the text of messages, functions of templates, and templates that fail."""

from __future__ import annotations

from datetime import datetime

import pytest

from graphc.errors import ArgumentError, ArtifactError
from graphc.llm.chat_template import render

pytest.importorskip("jinja2", reason="jinja2 is not installed")
CHATML = """\
{% for message in messages %}
    {% if message.role == 'tool' %}
        {{ raise_exception('no tools') }}
    {% endif %}
<|{{ message.role }}|>{{ message.content }}{{ eos_token }}
{% endfor %}
{% if add_generation_prompt %}<|assistant|>{% endif %}"""
VALUES = {"eos_token": "<end>", "add_generation_prompt": True}
MESSAGES = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Hi <b>&"}]


def test_messages_and_variables():
    text = "<|system|>Be short.<end>\n<|user|>Hi <b>&<end>\n"
    assert render(CHATML, MESSAGES, VALUES) == text + "<|assistant|>"
    assert render(CHATML, MESSAGES, {**VALUES, "add_generation_prompt": False}) == text


def test_functions_of_templates():
    assert render("{{ strftime_now('%Y') }}", [], {}) == str(datetime.now().year)
    assert render("{{ messages | tojson }}", [{"content": "<é>"}], {}) == '[{"content": "<é>"}]'
    assert (
        render("{% for m in messages %}{% if m.a %}{% break %}{% endif %}{{ m.b }}{% endfor %}", [{"b": "1"}], {})
        == "1"
    )
    assert render("a{% generation %}{{ messages[0].b }}{% endgeneration %}c", [{"b": "b"}], {}) == "abc"


def test_messages_that_the_template_refuses():
    with pytest.raises(ArgumentError, match="refuses the messages: no tools"):
        render(CHATML, [{"role": "tool", "content": ""}], VALUES)


@pytest.mark.parametrize(
    "template",
    [
        "{% if %}",
        "{{ 1 / 0 }}",
        "{{ messages[0].a.b }}",
        "{{ ''.__class__.__mro__ }}",
        "{{ messages.append(1) }}",
        "{% for i in range(10 ** 9) %}{% endfor %}",
    ],
)
def test_templates_that_fail(template: str):
    with pytest.raises(ArtifactError, match="chat template fails"):
        render(template, [], {})
