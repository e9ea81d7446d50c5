"""What the other tests look for with axe is found, be it on one of many texts."""

import pytest

from tests.support.browsing import faults

pytestmark = pytest.mark.browser

PAGE = """<!doctype html><html lang="en"><title>A page</title><body style="background: #fff; color: #222">
<main><h1>A page</h1>{texts}{planted}{texts}</main>"""
TEXTS = '<p>As it <a href="#">has to be</a></p><button disabled style="color: #ccc">Not now</button>' * 20
PLANTED = {
    "pale": ("color-contrast", '<p style="color: #ccc">Pale</p>'),
    "on a dark ground": ("color-contrast", '<div style="background: #333"><p>As dark as this</p></div>'),
    "through a veil": ("color-contrast", '<div style="opacity: .3"><p>Behind</p></div>'),
    "under a layer": ("color-contrast", '<p style="position: absolute; background: #333">In front</p>'),
    "button": ("color-contrast", '<button style="color: #ccc">Now</button>'),
    "field": ("color-contrast", '<input aria-label="Field" value="Pale" style="color: #ccc">'),
    "link": (
        "link-in-text-block",
        '<p>A <a href="#" style="color: #333; text-decoration: none">link</a> that looks like text</p>',
    ),
    "picture": ("image-alt", '<img src="data:,">'),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_fault_among_many_texts_without_one_is_found(page, name):
    rule, planted = PLANTED[name]
    page.set_content(PAGE.format(texts=TEXTS, planted=planted))
    (fault,) = faults(page)
    assert fault.startswith(f"{rule} (")


def test_a_page_without_a_fault_has_none(page):
    page.set_content(PAGE.format(texts=TEXTS, planted=""))
    assert faults(page) == []
