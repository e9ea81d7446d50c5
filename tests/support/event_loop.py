"""Tests that are coroutines."""

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any


def in_event_loop(test: Callable[..., Coroutine]) -> Callable[..., None]:
    """Run a test that is a coroutine in an event loop of its own."""

    @functools.wraps(test)
    def run(**fixtures: Any) -> None:
        asyncio.run(test(**fixtures))

    return run
