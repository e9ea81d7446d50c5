"""A Space on which the three real verdict files were submitted, and a fourth with scores and costs."""

import json
import random
import re
from pathlib import Path

from core.settings import Settings
from submissions.intake.declaration import declare
from submissions.service import SubmissionService
from tests.e2e.conftest import REPOSITORY, RunningSpace
from tests.support.clocks import one_a_day

PICTURES = REPOSITORY / "test-results" / "screenshots"
JUDGES = {
    "AER-C": ("aer-c", "LLM judge", "caption"),
    "NNetNav": ("nnetnav", "LLM judge", "changes"),
    "Rule-based": ("rule-based", "Rule-based", "other"),
}


class JudgedSpace(RunningSpace):
    """``ids`` maps a judge's name to its submission; ``Scored`` is AER-C with made scores and costs."""

    def __init__(self, folder: Path, verdicts: Path) -> None:
        state = folder / "state"
        service = SubmissionService(Settings(state_dir=state), clock=one_a_day())
        self.ids = {}
        for judge, (file, kind, inputs) in JUDGES.items():
            content = (verdicts / f"{file}.jsonl").read_bytes()
            self.ids[judge] = _submit(service, content, judge, kind, inputs)
        content = _with_scores((verdicts / "aer-c.jsonl").read_bytes())
        self.ids["Scored"] = _submit(service, content, "Scored", "LLM judge", "caption")
        super().__init__(state)
        self._service = service

    def submit(self, content: bytes, judge: str) -> str:
        """Submit to the running Space's records; gives the submission's id."""
        return _submit(self._service, content, judge, "Other", "tree")


def _submit(service: SubmissionService, content: bytes, judge: str, kind: str, inputs: str) -> str:
    declaration = declare(account="Ada", judge=judge, kind=kind, inputs=inputs, test_labels_used=False)
    return service.submit(service.check(content, "verdicts.jsonl", "test"), declaration).submission_id


def _with_scores(content: bytes) -> bytes:
    """Scores around 0.75 for a yes and 0.2 for a no, and a cent for every verdict."""
    generator = random.Random(1)
    rows = [json.loads(line) for line in content.splitlines()]
    for row in rows:
        score = generator.gauss(0.75 if row["success"] else 0.2, 0.2)
        row |= {"score": round(min(1, max(0, score)), 2), "cost_usd": 0.01}
    return "\n".join(map(json.dumps, rows)).encode()


def keep_picture(page, name: str) -> None:
    """The whole page as a picture, for people to look at after the tests."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=PICTURES / f"{name}.png", full_page=True)


def is_dark(page) -> bool:
    """Whether the page's ground is nearer to black than to white."""
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return sum(int(part) for part in re.findall(r"\d+", ground)[:3]) < 3 * 128
