import pytest

from tools.sample_recorder.sites import PLACES
from tools.sample_recorder.sites.base import picture
from tools.sample_recorder.sites.shop import Shop


@pytest.mark.parametrize("benchmark", PLACES)
def test_a_first_page_shows_the_same_bytes_to_every_new_visitor(open_site, benchmark):
    trees = {open_site(benchmark)[1].tree() for _ in range(2)}
    assert len(trees) == 1
    assert "link" in trees.pop()


def test_ports_are_fixed_and_each_has_one_site():
    assert sorted(place.port for place in PLACES.values()) == [8771, 8772, 8773, 8774, 8775]


def test_what_a_visitor_writes_is_shown_as_text_and_never_as_markup():
    from starlette.testclient import TestClient

    shop = Shop(reviews=[("cork-board", "4", "<script>alert(1)</script>")])
    text = TestClient(shop.app()).get("/item/cork-board").text
    assert "<script>" not in text
    assert "&lt;script&gt;" in text


def test_titles_do_not_tell_what_pictures_show(open_site):
    _, browser = open_site("sample-market")
    tree = browser.tree().lower()
    assert not [word for word in ("red", "striped", "round", "cone") if f" {word}" in tree]
    assert picture("armchair", "#3f6f8f", "striped") != picture("armchair", "#3f6f8f", "")
