import pytest

from tools.sample_recorder.agents import find_element
from tools.sample_recorder.sites import PLACES
from tools.sample_recorder.sites.base import picture
from tools.sample_recorder.sites.map import metres, minutes
from tools.sample_recorder.sites.shop import Shop, money


def click(browser, role, name):
    browser.act(f"click({find_element(browser.tree(), role, name)!r})")


def fill(browser, name, text):
    browser.act(f"fill({find_element(browser.tree(), 'textbox', name)!r}, {text!r})")


def select(browser, name, option):
    browser.act(f"select_option({find_element(browser.tree(), 'combobox', name)!r}, {option!r})")


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


def test_the_voucher_takes_a_tenth_and_only_in_its_own_spelling(open_site):
    shop, browser = open_site("sample-shop", "/basket", basket={"desk-lamp": 1, "notebook": 1})
    fill(browser, "Voucher code", "spring10")
    click(browser, "button", "Apply voucher")
    assert "We do not know this voucher." in browser.tree()
    fill(browser, "Voucher code", "SPRING10")
    click(browser, "button", "Apply voucher")
    # 42.00 + 6.20 = 48.20; a tenth, 4.82, off: 43.38
    assert money(shop.total()) == "$43.38"


def test_a_teapot_that_is_sold_out_cannot_be_put_into_the_basket(open_site):
    shop, browser = open_site("sample-shop", "/item/glass-teapot")
    click(browser, "button", "Add to basket")
    assert browser.error
    assert shop.basket == {}


def test_the_newest_thread_is_not_the_most_popular_one(open_site):
    _, browser = open_site("sample-forum", "/board/Cycling")
    assert browser.tree().index("Best flat pedals") < browser.tree().index("Squeaky brakes")
    click(browser, "link", "Newest")
    assert browser.tree().index("Squeaky brakes") < browser.tree().index("Best flat pedals")


def test_a_second_vote_takes_the_first_one_back(open_site):
    forum, browser = open_site("sample-forum", "/thread/brakes")
    click(browser, "button", "Upvote 12")
    assert forum.upvoted == {"brakes"}
    click(browser, "button", "Upvoted 13")
    assert forum.upvoted == set()


def test_a_previewed_profile_is_not_saved_yet(open_site):
    forum, browser = open_site("sample-forum", "/profile")
    fill(browser, "Bio", "New.")
    click(browser, "button", "Preview")
    assert forum.bio == ""
    click(browser, "button", "Save profile")
    assert forum.bio == "New."


def test_routes_follow_streets_at_right_angles():
    # Old Mill (210, 90) to Botanic Garden (610, 330): 400 + 240 = 640 pixels of ten metres
    assert metres("Old Mill", "Botanic Garden") == 6400
    assert minutes("Old Mill", "Botanic Garden", "Bicycle") == 18  # 6400 / 350 = 18.3
    # Town Hall to Airport: 5300 m; 5300 / 500 = 10.6, and 14.8 with the detour of 1.4
    assert minutes("Town Hall", "Airport", "Bus") == 11
    assert minutes("Town Hall", "Airport", "Bus", avoids_tunnel=True) == 15


def test_the_nearest_cafe_is_not_the_first_in_the_list(open_site):
    _, browser = open_site("sample-map", "/nearby?place=Harbour+Station&kind=Cafe")
    tree = browser.tree()
    assert tree.index("2000 m") < tree.index("6000 m") < tree.index("1200 m")


def test_an_incident_needs_somebody_to_look_after_it(open_site):
    office, browser = open_site("sample-office", "/incident")
    fill(browser, "Short description", "Printer")
    click(browser, "button", "Submit")
    assert "this field has to be filled" in browser.tree()
    assert office.incidents == []
    select(browser, "Assigned to", "Dana Reyes")
    click(browser, "button", "Submit")
    assert "Incident INC4801 is created." in browser.tree()


def test_a_filter_has_no_effect_before_it_is_applied(open_site):
    _, browser = open_site("sample-office", "/assets")
    select(browser, "Place", "Leeds")
    select(browser, "State", "In use")
    assert browser.tree().count("StaticText 'Porto'") == 4
    click(browser, "button", "Apply filter")
    assert browser.tree().count("StaticText 'In use'") == 4


def test_an_offer_in_words_is_refused(open_site):
    market, browser = open_site("sample-market", "/thing/5")
    fill(browser, "Your offer in dollars", "40 dollars")
    click(browser, "button", "Send offer")
    assert market.offers == []
    fill(browser, "Your offer in dollars", "40")
    click(browser, "button", "Send offer")
    assert market.offers == [("5", 40)]


def test_titles_do_not_tell_what_pictures_show(open_site):
    _, browser = open_site("sample-market")
    tree = browser.tree().lower()
    assert not [word for word in ("red", "striped", "round", "cone") if f" {word}" in tree]
    assert picture("armchair", "#3f6f8f", "striped") != picture("armchair", "#3f6f8f", "")
