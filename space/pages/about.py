"""The about page: how scores are made, what the labels are, which versions, terms, citation, changes."""

import hashlib

from dataset_script.citation import PAPER_BIBTEX
from space.about_facts import about_facts
from space.page import Opening, Services, place
from space.templating import render
from space.trust_facts import trust_facts
from submissions.service import SubmissionService

PLACE = "about"


def build_about_page(services: Services) -> None:
    """Lay the page out in the current Blocks: one place, for what the page opens with."""
    place(PLACE, elem_id="about")


def open_about(services: Services, query: str) -> Opening:
    """The page; nothing on it depends on the address."""
    html = f'<div data-part="{PLACE}">{about_html(services.submissions)}</div>'
    return Opening(html, hashlib.sha256(html.encode()).hexdigest())


def about_html(service: SubmissionService) -> str:
    """The page with the facts as they are now."""
    return render("about.html", facts=about_facts(service), trust=trust_facts(service), citation=PAPER_BIBTEX)
