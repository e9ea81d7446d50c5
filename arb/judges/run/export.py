"""Export a run in the paper's layout: ``judgments/<benchmark>/<agent>/<judge>/<task_id>.json``.

Each file contains one reply, from which the verdict can be parsed again. If several samples voted, the file
has the first reply that agrees with the vote. If no reply contains the verdict, the judgment is left out.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from arb.core.cli import write_file
from arb.core.ids import TrajectoryId
from arb.core.replies import read_reply
from arb.core.suites.targets import RELEASED_ANSWERS
from arb.judges.engine.prompt_store import Picture, PromptReader
from arb.judges.run.folder import open_prompts, read_judgments, read_run
from arb.judges.run.records import JudgmentRecord, error_of
from arb.judges.types import OptionsError
from dataset_script.sources.released_files import ERROR_ENDING, RULE_BASED


@dataclass(slots=True)
class ExportSummary:
    """The result of an export: the name of the judge's folder, the number of files, and ids left out.

    ``errors`` is the number of files that contain an error instead of a judgment.
    """

    judge: str
    files: int = 0
    errors: int = 0
    left_out: list[str] = field(default_factory=list)


def export_released_layout(run_folder: Path, out: Path, judge: str | None = None) -> ExportSummary:
    """Write every judgment of a run into ``out``, with ``judge`` as the name of the judge's folder.

    By default, a judge of the paper has the name of its released folder. Any other judge has a name made from
    its full name. A failed judgment becomes ``<task_id>_error.json``. Existing files are replaced.

    Raises RunFolderError, OptionsError, and PromptStoreError if a prompt is damaged.
    """
    run = read_run(run_folder)
    facts = run.get("judge", {})
    name = facts.get("name") or run["configuration"]["judge"]  # a run without a session has no facts
    judge = judge or facts.get("released_folder") or folder_name(name)
    if judge in (".", "..") or not re.fullmatch(r"[\w.+-]+", judge):
        raise OptionsError(f"--judge-folder {judge!r}: use only letters, digits and . _ + -")
    if judge == RULE_BASED and facts.get("asks_models"):
        raise OptionsError(f"--judge-folder {judge}: is reserved for the rule-based judge; use another name")
    if not facts.get("asks_models") and judge != RULE_BASED:
        raise OptionsError(
            f"{run['configuration']['judge']} calls no model, so there are no replies to export"
        )
    done = ExportSummary(judge)
    with open_prompts(run_folder) as prompts:
        for record in read_judgments(run_folder):
            found = document(record, judge, run, prompts)
            if found is None:
                done.left_out.append(record["trajectory_id"])
                continue
            place = TrajectoryId.parse(record["trajectory_id"])
            folder = out / "judgments" / place.folder / place.agent / judge
            names = [f"{place.task_id}.json", f"{place.task_id}{ERROR_ENDING}.json"]
            is_error = "error" in found
            write_file(folder / names[is_error], json.dumps(found, indent=1))
            (folder / names[not is_error]).unlink(missing_ok=True)
            done.files, done.errors = done.files + 1, done.errors + is_error
    return done


def document(
    record: JudgmentRecord, judge: str, run: Mapping[str, Any], prompts: PromptReader | None = None
) -> dict[str, Any] | None:
    """Return the content of the file for a judgment, or None if no single reply contains its verdict.

    The content for a failed judgment has the key ``error``. The messages that were sent are under
    ``chat_messages``, with the key ``pruned`` if the prompt was shortened, else ``regular``.
    """
    place = TrajectoryId.parse(record["trajectory_id"])
    head = {"benchmark": place.folder, "agent": place.agent, "judge": judge}
    if judge == RULE_BASED:
        if "problem" in record or "reward" not in record:
            return {**head, "error": record.get("problem", "no reward was recorded")}
        info = {"summary_info": {"cum_reward": record["reward"]}}
        return {**head, "judge_model_name": "judge", "cost": 0, "trajectory_info": info}
    call = None if "problem" in record else _call_with_the_verdict(record, judge)
    if call is None:
        if record["state"] not in ("error", "too_long"):
            return None
        sent = _chat_messages(record["calls"][-1], prompts) if record["calls"] else {}
        return {**head, "error": error_of(record), **sent}
    model = run["configuration"]["models"].get(call["role"], {})
    return {
        **head,
        "judge_model_name": model.get("model"),
        "provider": model.get("provider"),
        "judge_args": run.get("judge", {}).get("judge_args"),
        "completion_args": {
            name: model[name] for name in ("temperature", "seed", "max_output_tokens") if name in model
        },
        "cost": record["cost_usd"],
        "response": _completion(call),
        **_chat_messages(call, prompts),
    }


def messages_of(call: JudgmentRecord, prompts: PromptReader | None) -> list[dict[str, Any]] | None:
    """Return the messages of a call as they were sent, with hashes in place of pictures.

    Returns None if the messages are not stored. Raises PromptStoreError if they are damaged.
    """
    if prompts is None or (name := call.get("prompt")) is None:
        return None
    return [
        {"role": role, "content": content if isinstance(content, str) else list(map(_part, content))}
        for role, content in prompts.get(name)
    ]


def _part(part: str | Picture) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    about = {name: value for name, value in part.items() if name not in ("sha256", "detail")}
    return {
        "type": "image_url",
        "image_url": {"url": f"sha256:{part['sha256']}", "detail": part["detail"]},
        **about,
    }


def _chat_messages(call: JudgmentRecord, prompts: PromptReader | None) -> dict[str, Any]:
    sent = messages_of(call, prompts)
    kind = "pruned" if call["reply"].get("used_shorter") else "regular"
    return {} if sent is None else {"chat_messages": {kind: sent}}


def folder_name(name: str) -> str:
    """Return the folder name for a judge's name: ``GPT-4o (A), 3 samples`` gives ``gpt-4o-a-3-samples``."""
    return re.sub(r"[^a-z0-9.]+", "-", name.casefold()).strip("-.") or "judge"


def _call_with_the_verdict(record: JudgmentRecord, judge: str) -> JudgmentRecord | None:
    """Return a call of the last stage whose reply contains the verdict, or None.

    A reply that also agrees with all other labels of the answer is preferred.
    """
    answer, found = record["answer"], None
    last = max((call["stage"] for call in record["calls"]), default=0)
    for call in record["calls"]:
        reply = call["reply"]
        if call["stage"] != last or reply["state"] not in ("ok", "refused"):
            continue
        read = read_reply(judge, reply.get("text"), reply.get("finish_reason"), _refusal(reply))
        if (read.state, read.success) != (record["state"], answer.get("success")):
            continue
        if all(getattr(read, name) == answer.get(name) for name in RELEASED_ANSWERS):
            return call
        found = found or call
    return found


def _refusal(reply: JudgmentRecord) -> str | None:
    """Return the model's refusal, or the error if the endpoint refused the prompt, or else None."""
    return reply.get("refusal") or (reply.get("error") if reply["state"] == "refused" else None)


def _completion(call: JudgmentRecord) -> dict[str, Any]:
    reply = call["reply"]
    tokens = reply.get("input_tokens"), reply.get("output_tokens")
    message = {"role": "assistant", "content": reply.get("text"), "refusal": _refusal(reply)}
    return {
        "id": call["key"],
        "object": "chat.completion",
        "model": reply.get("model"),
        "choices": [{"index": 0, "finish_reason": reply.get("finish_reason"), "message": message}],
        "usage": {
            "prompt_tokens": tokens[0],
            "completion_tokens": tokens[1],
            "total_tokens": None if None in tokens else sum(tokens),
        },
    }
