"""Compare plans with bills, before and after ``--pilot 5``: ``python -m bench.pilot``.

A scripted server sends replies whose lengths a plan does not expect, hides reasoning, caches prompts and
counts tokens by its own rule. For five judges the bill of `judges run` over the sample is compared with the
dollars that `judges plan` expects.
"""

import argparse
import json
import random
import sys
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from typer.testing import CliRunner

from arb.judges.__main__ import app
from tests.support.llm_server.chat import Request
from tests.support.llm_server.scripts import share
from tests.support.llm_server.server import LLMServer
from tests.support.llm_server.tokens import InputCache, TokenRule

JUDGES = ("simplified-both", "AER-C", "AER-V", "NNetNav", "WebJudge (o4-mini)")
NEAR = 0.10

LENGTHS = {"change": 45, "key points": 190, "rating": 60, "caption": 310, "verdict": 420}
"""The mean number of tokens of a reply; a plan assumes another number."""

VARIES: Final = 0.2
"""The standard deviation of a reply's length as a share of its mean."""

REASONING = 500
IN, OUT, CACHED = 2.5, 10.0, 1.25
SAID = "in the end nothing had been saved since a banner covered the form and the price stayed as it was"


@dataclass(frozen=True)
class Measured:
    """Dollars: the bill of the run and its plan after the pilot; the whole bill and its plan before that."""

    judge: str
    bill: float
    planned: float
    unaided_bill: float
    unaided: float

    @property
    def off_by(self) -> float:
        return self.planned / self.bill - 1

    @property
    def unaided_off_by(self) -> float:
        return self.unaided / self.unaided_bill - 1


def count(text: str) -> int:
    return -(-len(text.encode()) * 10 // 37)


def reply(request: Request, seed: int = 0) -> str:
    """Return an answer of random length in the form that the prompt asks for."""
    purpose, form = form_of(request, share(request.key) < 0.5)
    drawn = random.Random(f"{seed} {request.key}")
    tokens = LENGTHS[purpose] * min(max(drawn.gauss(1, VARIES), 0.3), 2)
    known, words = SAID.split(), list[str]()
    while count(" ".join(words)) < tokens:
        words.append(drawn.choice(known))
    return form.format(said=" ".join(words))


def form_of(request: Request, is_yes: bool) -> tuple[str, str]:
    """Return the purpose of a prompt, recognised by its words, and a template of the answer."""
    if "State change:" in request.text:
        return "change", "The page changed.\nState change: {said}"
    if "List what has to be true" in request.text:
        return "key points", "{said}"
    if "Score: one number" in request.text:
        return "rating", f"Reasoning: {{said}}\nScore: {4 if is_yes else 2}"
    if "Describe this screenshot" in request.text:
        return "caption", "{said}"
    if "<success>" in request.text:
        word = "Successful" if is_yes else "Unsuccessful"
        return "verdict", f"<reasoning>{{said}}</reasoning><success>{word}</success><side>No</side>"
    if "Reward:" in request.text:
        return "verdict", f"Thought: {{said}}\nReward: {5 if is_yes else 2}"
    return "verdict", f"Thoughts: {{said}}\nStatus: {'success' if is_yes else 'failure'}"


def hidden(request: Request) -> int:
    """Return the number of hidden reasoning tokens: random for o4 models, 0 for all others."""
    drawn = random.Random("hidden" + request.key)
    return round(REASONING * drawn.uniform(0.4, 1.6)) if request.model.startswith("o4") else 0


def open_server(seed: int = 0) -> LLMServer:
    counted = TokenRule(text=count)
    script = partial(reply, seed=seed)
    return LLMServer(script, tokens=counted, input_cache=InputCache(), reasoning_tokens=hidden)


def measure(server: LLMServer, judge: str, folder: Path, pilot: int, *more: str) -> Measured:
    """Plan a run over the sample, plan again with a pilot, make the run, and return all dollars."""
    model = "o4-mini" if judge.startswith("WebJudge") else "gpt-4o"
    chosen = [
        judge,
        "--suite",
        "sample",
        "--split",
        "dev",
        "--model",
        model,
        "--cache",
        folder / "cache",
        *more,
    ]
    chosen += ["--base-url", server.base_url, "--price", f"{model}={IN},{OUT},{CACHED}"]

    def planned(*options: str | int) -> dict:
        return json.loads(_invoke("plan", *chosen, "--json", *options))

    def bill() -> float:
        return server.counts.usd(IN, OUT, CACHED)

    before = bill()
    unaided = planned()["usd"]
    assert bill() == before
    made = planned("--pilot", pilot)
    after = bill()
    assert abs(made["pilot"]["usd"] - (after - before)) <= 0.02 * (after - before)
    _invoke("run", *chosen, "--out", folder / "run")
    paid = bill() - after
    return Measured(judge, paid, made["usd"], paid + after - before, unaided)


def _invoke(*arguments: object) -> str:
    result = CliRunner().invoke(app, list(map(str, arguments)))
    if result.exit_code:
        raise SystemExit(f"{arguments}: {result.output}")
    return result.stdout


def main(arguments: list[str] | None = None) -> int:
    """Print the five figures; return 1 if a plan after the pilot is off by more than a tenth."""
    parser = argparse.ArgumentParser(prog="python -m bench.pilot", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="use six trajectories, and no target")
    parser.add_argument("--pilot", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0, help="seed of the lengths")
    options = parser.parse_args(arguments)
    more = ("--limit", "6") if options.quick else ()
    found = []
    print(f"{'judge':<22}{'bill of the run':>18}{'plan after pilot':>20}{'plan without':>16}")
    for judge in JUDGES:
        with tempfile.TemporaryDirectory() as folder, open_server(options.seed) as server:
            each = measure(server, judge, Path(folder), options.pilot, *more)
        found.append(each)
        print(
            f"{judge:<22}{f'${each.bill:.4f}':>18}{f'${each.planned:.4f} {each.off_by:+.1%}':>20}"
            f"{each.unaided_off_by:>+16.1%}"
        )
    if options.quick:
        return 0
    is_near = all(abs(each.off_by) <= NEAR for each in found)
    print("Every plan is within a tenth of the bill." if is_near else "A plan is off by MORE than a tenth.")
    return 0 if is_near else 1


if __name__ == "__main__":
    sys.exit(main())
