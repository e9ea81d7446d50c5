"""Where the rules are stricter than a person, and where they are laxer."""

import pytest

from tools.sample_recorder.rewards import LastMessage, reward
from tools.sample_recorder.sites.forum import Forum
from tools.sample_recorder.sites.map import Wayfarer
from tools.sample_recorder.sites.market import Market
from tools.sample_recorder.sites.office import Office
from tools.sample_recorder.sites.shop import Shop

ADA = {"name": "Ada Lovelace", "street": "12 Mill Lane", "town": "Bath"}
BUS = ("Town Hall", "Airport", "Bus", True)
HOME = Wayfarer().saved


@pytest.mark.parametrize(
    ("task_id", "site", "text", "expected"),
    [
        ("sample-shop.1", Shop(orders=[{"goods": {"blue-mug": 2}, "total": 1800, **ADA}]), "It is 1001.", 1),
        (
            "sample-shop.1",
            Shop(orders=[{"goods": {"blue-mug": 2}, "total": 1800, **ADA, "offers": "on"}]),
            "It is 1001.",
            0,
        ),
        ("sample-shop.2", Shop(), "The Stoneware teapot, $18.50.", 1),
        ("sample-shop.2", Shop(), "The stoneware teapot, eighteen dollars fifty.", 0),
        ("sample-shop.3", Shop(voucher=True), "$43.38", 1),
        ("sample-shop.3", Shop(), "$43.38", 0),
        ("sample-shop.4", Shop(reviews=[("cork-board", "4", "Solid, but heavy.")]), "", 1),
        ("sample-shop.4", Shop(reviews=[("cork-board", "4", "Solid, but heavy.")] * 2), "", 0),
        ("sample-forum.1", Forum(upvoted={"brakes"}, replies=[("brakes", "Great!")]), "", 1),
        ("sample-forum.2", Forum(replies=[("basil-cuttings", "Try a little less water.")]), "", 0),
        ("sample-forum.3", Forum(), "3", 1),
        ("sample-forum.3", Forum(), "There are 3.", 0),
        ("sample-forum.4", Forum(bio="Rides in all weather.", name="other"), "", 1),
        ("sample-map.1", Wayfarer(), "18 minutes", 1),
        ("sample-map.2", Wayfarer(), "Cafe Luna, 2000 m", 0),
        ("sample-map.3", Wayfarer(saved={**HOME, "Airport run": BUS}), "", 1),
        ("sample-map.3", Wayfarer(saved={"Airport run": BUS}), "", 0),
        ("sample-office.2", Office(), "14.", 1),
        ("sample-office.3", Office(orders=[("Grey", "3")] * 3), "", 0),
        ("sample-market.1", Market(viewed=["6", "2"]), "", 0),
        ("sample-market.2", Market(offers=[("5", 40)], messages=[("5", "Hi")]), "", 1),
        ("sample-market.3", Market(messages=[("2", "Is it still available?")]), "", 0),
        ("sample-market.4", Market(reserved=["7"]), "", 0),
    ],
)
def test_a_rule_looks_at_the_site_and_at_the_answer(task_id, site, text, expected):
    assert reward(task_id, site, LastMessage(text)) == expected


def test_an_answer_given_as_a_reason_for_giving_up_is_no_answer():
    assert (
        reward("sample-map.1", Wayfarer(), LastMessage("It shows 18 minutes, but", is_infeasible=True)) == 0.0
    )
