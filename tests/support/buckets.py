"""Servers of S3 and of Google Cloud Storage on loopback, for `s3://` and `gs://` places of this process and
of those that it starts.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib.util import find_spec

import pytest

from tests.support.ports import hold_port, port_of

NEEDED = {
    "s3": {"moto": "moto[s3]", "flask": "flask", "flask_cors": "flask-cors", "s3fs": "s3fs"},
    "gs": {"gcp_storage_emulator": "gcp-storage-emulator", "gcsfs": "gcsfs"},
}
"""Modules, with what to install for them; `requirements-extras.txt` has them."""

STORES = tuple(NEEDED)


def lacking_packages(store: str) -> list[str]:
    """What has to be installed, but where every test is required: then it is missed loudly."""
    if os.environ.get("REQUIRE_EVERY_TEST"):
        return []
    return [package for module, package in NEEDED[store].items() if find_spec(module) is None]


@contextmanager
def bucket_server(store: str) -> Iterator[str]:
    """The address of an empty bucket, ``s3://…`` or ``gs://…``; credentials and endpoint are in the
    environment. Skips the test where what it needs is not installed.
    """
    if lacking := lacking_packages(store):
        pytest.skip(f"no server for {store}://: pip install {' '.join(lacking)}")
    from fsspec import get_filesystem_class

    with _s3_server() if store == "s3" else _gcs_server():
        try:
            yield f"{store}://bucket"
        finally:  # one that is opened later has another server
            get_filesystem_class(store).clear_instance_cache()


@contextmanager
def _s3_server() -> Iterator[None]:
    import boto3
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patched.setenv("AWS_ACCESS_KEY_ID", "test")
        patched.setenv("AWS_SECRET_ACCESS_KEY", "test")
        patched.setenv("AWS_DEFAULT_REGION", "us-east-1")
        patched.setenv("AWS_EC2_METADATA_DISABLED", "true")
        try:
            boto3.client("s3").create_bucket(Bucket="bucket")
            yield
        finally:
            server.stop()


@contextmanager
def _gcs_server() -> Iterator[None]:
    """Of the JSON API alone, one request at a time; a listing is one page, and a body loses a last \\r."""
    from gcp_storage_emulator.server import create_server

    logging.getLogger("gcp_storage_emulator").setLevel(logging.CRITICAL)
    with closing(hold_port()) as held, pytest.MonkeyPatch.context() as patched:
        port = port_of(held)
        patched.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{port}")
        patched.setenv("NO_GCE_CHECK", "true")  # no credentials, neither of Google's machines nor of the user
        patched.setenv("CLOUDSDK_CONFIG", os.devnull)
        patched.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
        patched.setenv("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")  # it asks for the bucket's kind by gRPC
        with create_server("127.0.0.1", port, in_memory=True, default_bucket="bucket"):
            yield
