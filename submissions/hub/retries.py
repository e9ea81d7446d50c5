"""When to try again what the Hub did not do."""

import random
from typing import Final

from tenacity import RetryCallState

from dataset_script.hub_calls import LONGEST_PAUSE, asked_pause
from submissions.hub.repository import HeadMoved

MINUTE: Final = 60.0


def seconds_until_retry(state: RetryCallState) -> float:
    """The pause before a new try: what the Hub asks for, else longer each time, to a minute; a moved head
    is looked at soon."""
    problem = state.outcome.exception()
    if isinstance(problem, HeadMoved):
        return random.uniform(0.05, 0.5)
    asked = asked_pause(problem.__cause__) if problem.__cause__ is not None else None
    grown = min(MINUTE, 0.5 * 2 ** min(state.attempt_number, 10))
    return min(asked, LONGEST_PAUSE) if asked else random.uniform(grown / 2, grown)
