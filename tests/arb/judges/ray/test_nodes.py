"""A run over a cluster of several nodes, of which one dies at a time."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from tests.arb.judges.ray.test_run import (
    REPOSITORY,
    TEST_RUNS,
    TIMEOUT_S,
    command,
    locally,
    options_of,
    predictions,
    processes_below,
    start,
)
from tests.support.judges import assert_prompts_are_there
from tests.support.llm_server.process import LLMProcess

WAITING_JUDGE = '''"""The simplified judge; the first one that has its reply waits for the file `go`."""

import os, time
from dataclasses import dataclass
from pathlib import Path

from arb.judges.catalog.simplified import SimplifiedJudge

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class WaitingJudge(SimplifiedJudge):
    name: str = "Waiting"
    model: str = "m"

    def ask(self, view):
        answer = yield from super().ask(view)
        while not (FOLDER / "go").exists():
            (FOLDER / f"judging-{os.getpid()}").touch()
            time.sleep(0.1)
        return answer
'''


def patiently(get_node: Callable) -> Callable:
    """As Ray looks for a node that it started, but longer than its 30 seconds, which a busy machine needs."""

    def look(*arguments: Any) -> Any:
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            try:
                return get_node(*arguments)
            except RuntimeError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.5)

    return look


@contextmanager
def cluster_of_three():
    """A head without cores, which the driver is on, and two worker nodes; `Cluster` has their processes."""
    if not os.environ.get("REQUIRE_EVERY_TEST"):
        pytest.importorskip("ray", reason="Ray is not here: pip install 'ray[data]'")
    from ray._private import services
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("OPENAI_API_KEY", "none")
        patched.setenv("PYTHONPATH", str(REPOSITORY))
        patched.setattr(services, "get_node", patiently(services.get_node))
        head = {"num_cpus": 0, "include_dashboard": False}
        cluster = Cluster(initialize_head=True, head_node_args=head)
        try:
            for _ in range(2):
                cluster.add_node(num_cpus=1)
            patched.setenv("RAY_ADDRESS", cluster.address)
            yield cluster
        finally:
            cluster.shutdown()


def raylet_of(node) -> int:
    return node.all_processes["raylet"][0].process.pid


def kill_node(cluster, node) -> None:
    """At once, with all that runs on it."""
    below = processes_below(raylet_of(node))
    for pid in [raylet_of(node), *below]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    cluster.remove_node(node, allow_graceful=False)


def wait_for(found: Callable[[], Any], process: subprocess.Popen) -> Any:
    """What is found at last, while the process runs."""
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        if value := found():
            return value
        time.sleep(0.1)
    process.kill()
    pytest.fail(f"the run ended before: {process.communicate(timeout=60)}")


@pytest.mark.slow
def test_a_node_that_dies_while_calls_are_asked_or_judged_loses_no_answer(tmp_path):
    """The cluster is that of ``RAY_ADDRESS``; the run ends by itself on the nodes that are left."""
    (tmp_path / "waiting.py").write_text(WAITING_JUDGE)
    judge = f"{tmp_path / 'waiting.py'}:WaitingJudge"
    with cluster_of_three() as cluster, LLMProcess(latency_s=1.0) as server:

        def asking():
            if not (server.counts.in_flight and server.counts.answers):
                return None
            return node_with(lambda pid, args: "JudgeWorker" in args)

        def judging():
            return node_with(lambda pid, args: (tmp_path / f"judging-{pid}").exists())

        def node_with(is_wanted):
            for node in cluster.worker_nodes:
                if any(is_wanted(*each) for each in processes_below(raylet_of(node)).items()):
                    return node
            return None

        process = start(command(server, tmp_path, judge, samples=1))
        at_work = wait_for(asking, process)
        kill_node(cluster, at_work)
        cluster.add_node(num_cpus=1)
        at_work = wait_for(judging, process)
        kill_node(cluster, at_work)
        (tmp_path / "go").touch()
        _, message = process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == 0, message
        assert not server.counts.paid_twice()  # the driver has every reply
        assert server.counts.answers.total() == TEST_RUNS
        options = options_of(server, tmp_path, judge=judge, model="m")
        locally(options, tmp_path / "here")
        assert server.counts.answers.total() == TEST_RUNS
    assert predictions(tmp_path / "ray") == predictions(tmp_path / "here")
    assert_prompts_are_there(tmp_path / "ray")
