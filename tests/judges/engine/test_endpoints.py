import asyncio

import pytest

from judges.base import ModelSettings, OptionsError
from judges.engine.endpoints import open_endpoints


def test_roles_at_one_address_share_an_endpoint_and_all_are_closed():
    here = ModelSettings("a", provider="any", base_url="http://127.0.0.1:1/v1")
    models = {
        "judge": here,
        "captioner": ModelSettings("b", provider="any", base_url=here.base_url),
        "strong.judge": ModelSettings("a", provider="any", base_url="http://127.0.0.1:2/v1"),
    }

    async def run():
        async with open_endpoints(models, {}) as endpoints:
            assert endpoints.keys() == models.keys()
            assert endpoints["judge"] is endpoints["captioner"]
            assert endpoints["judge"] is not endpoints["strong.judge"]
        return endpoints

    assert all(each._session.closed for each in asyncio.run(run()).values())


def test_a_missing_key_is_said_before_anything_is_opened():
    async def run():
        async with open_endpoints({"judge": ModelSettings("gpt-4o")}, {}):
            pytest.fail("opened without a key")

    with pytest.raises(OptionsError, match="OPENAI_API_KEY is not set"):
        asyncio.run(run())
