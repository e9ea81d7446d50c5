"""A Hub on this machine: speaks as much of the Hugging Face Hub's protocol as its own client needs."""

from tests.support.hub_server.server import HubServer, running_hub

__all__ = ["HubServer", "running_hub"]
