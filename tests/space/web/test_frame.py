import pytest
from jinja2 import UndefinedError

from space.web.frame import FOLDER, render
from tests.space.conftest import shown_text, tags_and_attributes


def test_what_is_put_into_a_template_is_escaped(hostile):
    html = render("submit/problems.html", title=hostile, problems=[hostile, hostile])
    assert shown_text(html).count(hostile) == 3
    assert tags_and_attributes(html) == tags_and_attributes(
        render("submit/problems.html", title="harmless", problems=["a", "b"])
    )


def test_a_value_that_a_template_needs_and_does_not_get_is_an_error():
    with pytest.raises(UndefinedError):
        render("submit/problems.html", title="no problems given")


def test_no_template_turns_escaping_off():
    templates = {
        path.name: path.read_text(encoding="utf-8").replace(" ", "") for path in FOLDER.glob("*.html")
    }
    assert templates
    assert [name for name, text in templates.items() if "|safe" in text or "autoescape" in text] == []
