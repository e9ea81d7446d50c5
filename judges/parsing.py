"""From a model's reply to a judge's answer: by tags, by a status line, by a rating."""

from dataset_script.sources.replies import Form, read_rating, read_verdict
from judges.base import Answer, Reply
from judges.scores import score_of

MAX_REASONING_CHARS = 1_200
"""Characters of a reply in a prediction file: a thousand rows stay within what an upload may be."""


def parse_answer(reply: Reply, form: Form) -> Answer:
    """The answer in a reply; the reply's own state when the call failed.

    Simplified judges answer in ``tags`` (``<success>``), AER and WebJudge in a ``status`` line, NNetNav with
    a ``rating`` (4 and 5 are a success).

    The score is the probability of success by the log-probabilities of the verdict's token, where the reply
    has them; else None. The reasoning is the reply's text, shortened; whole it stands in judgments.jsonl.
    """
    if reply.state != "ok":
        return Answer(reply.state)
    verdict = read_verdict(form, reply.text, reply.finish_reason, reply.refusal)
    return Answer(
        verdict.state,
        verdict.success,
        verdict.side_effect,
        verdict.repetition,
        verdict.optimality,
        score_of(reply, form, verdict),
        shorten(reply.text),
    )


def parse_rating(text: str) -> int | None:
    """The last rating from 1 to 5, in a line ``Score: 4``; 3.5 counts as 3. None when there is none."""
    rating = read_rating(text)
    return None if rating is None else int(rating)


def shorten(text: str | None) -> str | None:
    """A reply as the reasoning of a prediction file: no longer than `MAX_REASONING_CHARS`; None for none."""
    if text is None or not (text := text.strip()):
        return None
    return text if len(text) <= MAX_REASONING_CHARS else text[: MAX_REASONING_CHARS - 2] + " \u2026"
