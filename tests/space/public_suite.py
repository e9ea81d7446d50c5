"""A service over the synthetic suite, its labels public, with judges that err in known ways."""

import json
from pathlib import Path

from submissions.service import SubmissionService
from tests.submissions.synthetic import send, settings_for, verdicts, write_suite


def public_service(folder: Path) -> SubmissionService:
    """Nothing submitted yet; anyone may see figures over many labels."""
    write_suite(folder)
    return SubmissionService(settings_for(folder, folder / "state"))


def send_three(service: SubmissionService) -> dict[str, str]:
    """Alpha (9 of 9), Beta (8 of 12) and Gamma (10 of 30 called successful are): the ids by name."""
    return {
        judge: send(
            service, verdicts(service.suite, misses=misses, false_alarms=alarms), judge=judge
        ).submission_id
        for judge, misses, alarms in (("Alpha", 1, 0), ("Beta", 2, 4), ("Gamma", 0, 20))
    }


def with_scores(content: bytes) -> bytes:
    """The same file with a score: 0.9 for every yes, 0.2 for every no."""
    rows = [json.loads(line) for line in content.splitlines()]
    return "\n".join(json.dumps({**row, "score": 0.9 if row["success"] else 0.2}) for row in rows).encode()
