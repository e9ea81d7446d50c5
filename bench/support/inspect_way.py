"""Make a judge's calls with inspect_ai, for `bench.judges --inspect PYTHON`: ``PYTHON inspect_way.py JSON``.

It runs in an environment with inspect_ai and does not import this project. Each call is one sample with one
``generate()``. It writes a log to the disk, since `judges run` writes its results, too.
"""

import json
import resource
import sys
import tempfile
import time
from pathlib import Path

from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import (
    ChatMessageSystem,
    ChatMessageUser,
    ContentImage,
    ContentText,
    GenerateConfig,
    get_model,
)
from inspect_ai.solver import generate


def content_of(content: str | list[dict]) -> str | list:
    """Return a message's content in the form of inspect_ai."""
    if isinstance(content, str):
        return content
    return [
        ContentText(text=part["text"])
        if part["type"] == "text"
        else ContentImage(image=part["image_url"]["url"])
        for part in content
    ]


def samples_of(prepared: list[list[dict]]) -> list[Sample]:
    kinds = {"system": ChatMessageSystem, "user": ChatMessageUser}
    return [
        Sample(input=[kinds[message["role"]](content=content_of(message["content"])) for message in messages])
        for messages in prepared
    ]


def main(messages: str, base_url: str, in_flight: int, samples: int = 1) -> dict:
    """Return calls, seconds, CPU seconds and peak memory of a run, after one call that loads late imports."""
    dataset = samples_of(json.loads(Path(messages).read_bytes()))
    config = GenerateConfig(max_connections=in_flight, temperature=0, seed=0, max_tokens=1024)
    access = {"base_url": base_url, "api_key": "none", "responses_api": False}
    model = get_model("openai/bench", config=config, **access)
    with tempfile.TemporaryDirectory() as folder:

        def run(some: list[Sample], epochs: int = 1) -> None:
            task = Task(dataset=some, solver=generate(), epochs=epochs)
            (log,) = eval(task, model=model, log_dir=folder, display="none", max_samples=in_flight)
            assert log.status == "success", log.error.message

        run(dataset[:1])
        begun, begun_cpu = time.perf_counter(), time.process_time()
        run(dataset, samples)
        return {
            "calls": samples * len(dataset),
            "seconds": time.perf_counter() - begun,
            "cpu_seconds": time.process_time() - begun_cpu,
            "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000,
        }


if __name__ == "__main__":
    print(json.dumps(main(**json.loads(sys.argv[1]))))
