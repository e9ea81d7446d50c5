import pytest


@pytest.fixture
def anyio_backend() -> str:
    """The event loop on which tests that are coroutines run."""
    return "asyncio"
