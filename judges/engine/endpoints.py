"""The endpoints of a run, one for each place that its roles are asked at."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping

from judges.base import ModelSettings
from judges.engine.client import TIMEOUT_S, OpenAIEndpoint
from judges.engine.providers import LOCAL, resolve_access
from judges.engine.seams import Endpoint


@contextlib.asynccontextmanager
async def open_endpoints(
    models: Mapping[str, ModelSettings],
    environment: Mapping[str, str] | None = None,
    timeout_s: float = TIMEOUT_S,
) -> AsyncIterator[dict[str, Endpoint]]:
    """The endpoint of each role, open for the block; roles with the same address and key share one.

    Raises OptionsError for a missing key or address before anything is opened.
    """
    access = resolve_access(models, environment)
    remote = {place: OpenAIEndpoint(place, timeout_s) for place in set(access.values())}
    local: dict[str, Endpoint] = {}
    try:
        for model in models.values():
            if model.provider == LOCAL and model.model not in local:
                local[model.model] = _local(model)
        yield {
            role: local[model.model] if model.provider == LOCAL else remote[access[role]]
            for role, model in models.items()
        }
    finally:
        await asyncio.gather(*(each.close() for each in (*remote.values(), *local.values())))


def _local(model: ModelSettings) -> Endpoint:
    from judges.engine.local import LocalEndpoint

    return LocalEndpoint(model)
