"""Pages with nothing to show yet: each says why, and what a reader can do about it."""

import re

import pytest

from space.web.frame import PAGES
from tests.space.conftest import shown_text
from tests.space.pages.conftest import page_at
from tests.support.submissions import with_rules

FALLBACKS = re.compile(
    r'<p class="(?:nothing|notice)"[^>]*>.*?</p>|<div class="nothing-found">.*?</div>', re.DOTALL
)
ELSEWHERE = ("/judge", "/paper", "/submit")
"""A judge's page needs an id, other suites have no paper, and the form of Submit is Gradio's."""


@pytest.mark.parametrize("is_public", [True, False])
@pytest.mark.parametrize("path", [page.path for page in PAGES if page.path not in ELSEWHERE])
def test_a_page_of_a_new_space_has_content_or_says_why_not_and_what_to_do(service, path, is_public):
    with_rules(service, is_public=is_public)
    html = page_at(service, path).partition("<main")[2].partition("</main>")[0]
    fallbacks = FALLBACKS.findall(html)
    assert fallbacks or re.search(r"<tbody|<article|<svg|<form", html), path
    for each in fallbacks:
        sentences = re.findall(r"[^.:]{8,}[.:]", shown_text(each))
        assert len(sentences) >= 2 or "<a " in each, shown_text(each)
