import asyncio

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """The event loop on which tests that are coroutines run."""
    return "asyncio"


async def settle() -> None:
    """Let all tasks run that can."""
    for _ in range(20):
        await asyncio.sleep(0)
