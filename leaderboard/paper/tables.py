"""The paper's tables by number: for each, the function that makes it from the records."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

from leaderboard.paper.evidence import Records
from leaderboard.paper.judge_tables import TABLE_OF_AGENT, table_1, table_2, table_7, table_8, table_of_agent
from leaderboard.paper.rate_tables import table_3, table_6
from leaderboard.paper.table import PaperTable

TABLES: Final[Mapping[int, Callable[[Records], PaperTable]]] = MappingProxyType(
    {
        1: table_1,
        2: table_2,
        3: table_3,
        6: table_6,
        7: table_7,
        8: table_8,
        **{number: partial(table_of_agent, number=number) for number, _ in TABLE_OF_AGENT},
    }
)
"""The paper's tables of results. Tables 4 and 5 list visited sites and the agents' settings instead."""
