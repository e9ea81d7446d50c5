"""Logs of Inspect in which some runs crashed before a judge could see anything of them."""

import json
from pathlib import Path

from arb.core.files import atomic_write


def write_crashing_logs(folder: Path, crashed: int) -> Path:
    """Write logs of 20 tasks under two temperatures; the first ``crashed`` of the warm ones have no turn."""
    for name, temperature in (("cold", 0.0), ("warm", 0.7)):
        samples = []
        for number in range(20):
            asked = {"role": "user", "content": "Do it.", "source": "input"}
            messages = [asked, {"role": "assistant", "content": name}]
            failed = {"messages": [asked], "error": {"message": "no container"}}
            has_crashed = name == "warm" and number < crashed
            more = failed if has_crashed else {"messages": messages}
            samples.append({"id": number, "epoch": 1, "input": "Do it.", **more})
        spec = {"task": "t", "task_id": name, "created": "2026-01-01T00:00:00+00:00", "model": "m"}
        spec["model_generate_config"] = {"temperature": temperature}
        log = {"version": 2, "status": "success", "eval": spec, "plan": {}, "samples": samples}
        atomic_write(folder / f"{name}.json", json.dumps(log))
    return folder
