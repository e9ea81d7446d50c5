import asyncio

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """Return the event loop for tests that are coroutines."""
    return "asyncio"


async def settle() -> None:
    """Let all tasks run that are ready."""
    for _ in range(20):
        await asyncio.sleep(0)
