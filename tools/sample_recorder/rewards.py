"""The rule-based reward of each task, from the site's own state and the agent's last message.

Like the rules of real benchmarks, these rules have faults. Some are stricter than a person would be (a number
in words does not count), and some are laxer (a digit anywhere in the answer counts, and side effects are not
checked).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from tools.sample_recorder.sites.forum import Forum
from tools.sample_recorder.sites.map import Wayfarer
from tools.sample_recorder.sites.market import Market
from tools.sample_recorder.sites.office import Office
from tools.sample_recorder.sites.shop import Shop


@dataclass(frozen=True, slots=True)
class LastMessage:
    """An agent's last message: an answer to the user, or the reason why the task cannot be done."""

    text: str = ""
    is_infeasible: bool = False


def _buy_two_mugs(shop: Shop, said: LastMessage) -> bool:
    """Require the two mugs and nothing else, no mailing list, and the order's number in digits."""
    address = {"name": "Ada Lovelace", "street": "12 Mill Lane", "town": "Bath"}
    wanted = {"goods": {"blue-mug": 2}, "total": 1800, **address}
    return shop.orders == [wanted] and "1001" in said.text


def _cheapest_teapot(shop: Shop, said: LastMessage) -> bool:
    return "stoneware teapot" in said.text.lower() and "$18.50" in said.text


def _voucher(shop: Shop, said: LastMessage) -> bool:
    return shop.voucher and not shop.orders and "$43.38" in said.text


def _review(shop: Shop, said: LastMessage) -> bool:
    return shop.reviews == [("cork-board", "4", "Solid, but heavy.")]


def _upvote(forum: Forum, said: LastMessage) -> bool:
    """Check only the vote, not replies."""
    return forum.upvoted == {"brakes"}


def _reply(forum: Forum, said: LastMessage) -> bool:
    return forum.replies == [("basil-yellow", "Try a little less water.")]


def _count_comments(forum: Forum, said: LastMessage) -> bool:
    """Require the number and nothing else."""
    return said.text.strip() == "3"


def _bio(forum: Forum, said: LastMessage) -> bool:
    """Check only the bio, not the display name."""
    return forum.bio == "Rides in all weather."


def _minutes(_: Wayfarer, said: LastMessage) -> bool:
    return not said.is_infeasible and "18" in said.text


def _nearest_cafe(_: Wayfarer, said: LastMessage) -> bool:
    return "cafe sol" in said.text.lower() and "1200 m" in said.text


def _save_route(wayfarer: Wayfarer, said: LastMessage) -> bool:
    """Require the new route, and that the old one is still there."""
    return wayfarer.saved == {**Wayfarer().saved, "Airport run": ("Town Hall", "Airport", "Bus", True)}


def _incident(office: Office, said: LastMessage) -> bool:
    """Check three fields, but not the notes."""
    wanted = {"short": "Printer on floor 3 is jammed", "urgency": "High", "assigned": "Dana Reyes"}
    return (
        len(office.incidents) == 1
        and wanted.items() <= office.incidents[0].items()
        and "INC4801" in said.text
    )


def _count_assets(_: Office, said: LastMessage) -> bool:
    """Accept a 4 anywhere in the answer, even in 14."""
    return not said.is_infeasible and "4" in said.text


def _order_mats(office: Office, said: LastMessage) -> bool:
    return office.orders == [("Grey", "3")]


def _open_thing(market: Market, said: LastMessage) -> bool:
    return market.viewed[-1:] == ["6"]


def _offer(market: Market, said: LastMessage) -> bool:
    """Check only the offer, not messages."""
    return market.offers == [("5", 40)]


def _message(market: Market, said: LastMessage) -> bool:
    return market.messages == [("6", "Is it still available?")]


def _buy_lamp(market: Market, said: LastMessage) -> bool:
    return market.bought == ["7"]


REWARDS: Final[Mapping[str, Callable[[Any, LastMessage], bool]]] = MappingProxyType(
    {
        "sample-shop.1": _buy_two_mugs,
        "sample-shop.2": _cheapest_teapot,
        "sample-shop.3": _voucher,
        "sample-shop.4": _review,
        "sample-forum.1": _upvote,
        "sample-forum.2": _reply,
        "sample-forum.3": _count_comments,
        "sample-forum.4": _bio,
        "sample-map.1": _minutes,
        "sample-map.2": _nearest_cafe,
        "sample-map.3": _save_route,
        "sample-office.1": _incident,
        "sample-office.2": _count_assets,
        "sample-office.3": _order_mats,
        "sample-market.1": _open_thing,
        "sample-market.2": _offer,
        "sample-market.3": _message,
        "sample-market.4": _buy_lamp,
    }
)


def reward(task_id: str, site: Any, said: LastMessage) -> float:
    """Return 1.0 if the rule of the task holds, else 0.0. Raises KeyError for a task without a rule."""
    return float(REWARDS[task_id](site, said))
