"""A folder in the released layout that tests fill and damage: trajectories, pictures, judgments."""

import json
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class SourceFolder:
    path: Path
    inside: str = "cleaned"

    def put(self, trajectory_id: str, content: Any = None, experiment: str = "run-1", **changes: Any) -> Path:
        """Write a file: a whole trajectory with changes to its top keys, or ``content`` as it is."""
        benchmark, agent, task_id = trajectory_id.split("/")
        place = self.path / self.inside / benchmark / agent / experiment / f"{task_id}.json"
        place.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            content = cleaned(benchmark, agent) | changes
        place.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        return place

    def picture(self, trajectory_id: str, num: int, content: bytes | None = None) -> Path:
        """Write a screenshot at its place; by default a picture of one pixel whose grey is the number."""
        place = self.path / "screenshots" / trajectory_id / f"screenshot_step_{num}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(png(num) if content is None else content)
        return place

    def judge(self, trajectory_id: str, judge: str, content: Any = None, ending: str = "") -> Path:
        """Write a judgment: ``content`` as it is, or a chat completion with that text."""
        benchmark, agent, task_id = trajectory_id.split("/")
        place = self.path / "judgments" / benchmark / agent / judge / f"{task_id}{ending}.json"
        place.parent.mkdir(parents=True, exist_ok=True)
        content = judged(judge, content) if isinstance(content, str) else content
        place.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        return place


def png(grey: int) -> bytes:
    """A picture of one pixel."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    pixels = zlib.compress(bytes([0, grey]))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def judged(judge: str, reply: str, cum_reward: float = 1.0) -> dict[str, Any]:
    """A judgment file as released: a whole chat completion, the prompts with images, the run's summary."""
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,CANARYIMAGE"}}
    return {
        "benchmark": "shop",
        "goal": "Buy a teapot.",
        "agent": "GenericAgent-a",
        "judge": judge,
        "judge_model_name": "judge-model",
        "provider": "somewhere",
        "judge_args": {"use_screenshot": True, "use_axtree": False, "invert_sys_prompt": False},
        "completion_args": {"temperature": 0.0},
        "cost": {"total_cost": 0.1},
        "response": {
            "choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": reply}}]
        },
        "chat_messages": {"regular": [{"role": "user", "content": ["CANARY prompt", picture]}]},
        "trajectory_info": {
            "trajectory_dir": "CANARY /home/recorder",
            "summary_info": {"cum_reward": cum_reward, "err_msg": None},
        },
    }


def cleaned(benchmark: str = "shop", agent: str = "GenericAgent-a") -> dict[str, Any]:
    """A cleaned trajectory with two actions: three steps, the last the final observation."""
    return {
        "benchmark": benchmark,
        "agent": agent,
        "model": "model-x",
        "valid": True,
        "experiment": "run-1",
        "goal": "Buy a teapot.\n",
        "summary_info": {"n_steps": 2, "cum_reward": 1.0, "err_msg": None, "terminated": True}
        | {"stats.cum_cost": 0.25, "stats.cum_step_elapsed": 4.0, "stats.cum_agent_elapsed": 2.5},
        "steps": [
            step(0, action="click('7')", reasoning="Open it."),
            step(1, action="send_msg_to_user('Done.')", reasoning="Tell.", last_action_error="TimeoutError"),
            step(2, action=None, reasoning=None),
        ],
    }


def step(num: int, **changes: Any) -> dict[str, Any]:
    return {
        "num": num,
        "url": f"http://shop/{num}",
        "action": None,
        "reasoning": None,
        "screenshot_path": "None",
        "focused_element": "7",
        "last_action_error": "",
        "axtree": f"tree {num} in full",
        "axtree_pruned": f"tree {num}",
        "axtree_obj": {"nodes": [{"name": {"value": True}}]},
        "chat_messages": [],
        "bounding_boxes": {"7": {"bbox": None}},
    } | changes
