"""A server of ours that speaks OpenAI's protocol and needs a key."""

from arb.judges.endpoints.providers import Provider

OUR_SERVER = Provider(
    key_variable="OUR_SERVER_KEY",
    address_variables=("OUR_SERVER_HOST",),
    address_form="http://{}/v1",
)
