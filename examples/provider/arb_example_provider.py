"""A provider for our own OpenAI-compatible server, which needs a key."""

from arb.judges.endpoints.providers import Provider

OUR_SERVER = Provider(
    key_variable="OUR_SERVER_KEY",
    address_variables=("OUR_SERVER_HOST",),
    address_form="http://{}/v1",
)
