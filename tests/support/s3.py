"""An S3 server on loopback, for `s3://` places of this process and of those that it starts."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

import pytest

NEEDED = {"moto": "moto[s3]", "flask": "flask", "flask_cors": "flask-cors", "s3fs": "s3fs"}
"""Modules, with what to install for them; `requirements-extras.txt` has them."""


def lacking_packages() -> list[str]:
    """What has to be installed, but where every test is required: then it is missed loudly."""
    if os.environ.get("REQUIRE_EVERY_TEST"):
        return []
    return [package for module, package in NEEDED.items() if find_spec(module) is None]


@contextmanager
def s3_server() -> Iterator[str]:
    """The address of an empty bucket, ``s3://…``; credentials and endpoint are in the environment.

    Skips the test where what it needs is not installed.
    """
    if lacking := lacking_packages():
        pytest.skip(f"no S3 server: pip install {' '.join(lacking)}")
    import boto3
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    values = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    before = {name: os.environ.get(name) for name in values}
    os.environ |= values
    try:
        boto3.client("s3").create_bucket(Bucket="bucket")
        yield "s3://bucket"
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
        server.stop()
