"""Five small web sites to record on: a new state for each run, no clock, no randomness, no network.

A site is a dataclass (what a visitor has changed) whose ``app()`` is a Starlette application. Ports are
fixed, because they are part of the addresses in recordings, which have to be the same each time.
"""

from typing import Final

from tools.sample_recorder.sites.base import Place
from tools.sample_recorder.sites.forum import Forum
from tools.sample_recorder.sites.map import Wayfarer
from tools.sample_recorder.sites.market import Market
from tools.sample_recorder.sites.office import Office
from tools.sample_recorder.sites.shop import Shop

Site = Shop | Forum | Wayfarer | Office | Market


PLACES: Final = {
    "sample-shop": Place(Shop, 8771),
    "sample-forum": Place(Forum, 8772),
    "sample-map": Place(Wayfarer, 8773),
    "sample-office": Place(Office, 8774),
    "sample-market": Place(Market, 8775),
}
"""The sites, keyed by the benchmark folder of their tasks."""
