"""From a model's reply to a judge's answer: by tags, by a status line, by a rating."""

from dataset_script.sources.replies import Form, read_rating, read_verdict
from judges.base import Answer, Reply
from judges.scores import score_of

LONGEST_REASONING = 1_200
"""Characters of a reply in a prediction file: a thousand rows stay within what an upload may be."""


def answer_of_tags(reply: Reply) -> Answer:
    """The answer of a simplified judge: ``<success>``, ``<side>``, ``<optimal>``, ``<loop>``."""
    return answer_of(reply, "tags")


def answer_of_status(reply: Reply) -> Answer:
    """The answer in a line ``Status: success``, as AER and WebJudge give it."""
    return answer_of(reply, "status")


def answer_of_rating(reply: Reply) -> Answer:
    """The answer in a line ``Reward: 4``, as NNetNav gives it; 4 and 5 are a success."""
    return answer_of(reply, "rating")


def answer_of(reply: Reply, form: Form) -> Answer:
    """The answer in a reply of this form; the reply's own state when the call failed.

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
        shortened(reply.text),
    )


def rating_of(text: str) -> int | None:
    """The last rating from 1 to 5, in a line ``Score: 4``; 3.5 counts as 3. None when there is none."""
    rating = read_rating(text)
    return None if rating is None else int(rating)


def shortened(text: str | None) -> str | None:
    """A reply as the reasoning of a prediction file: no longer than `LONGEST_REASONING`; None for none."""
    if text is None or not (said := text.strip()):
        return None
    return said if len(said) <= LONGEST_REASONING else said[: LONGEST_REASONING - 2] + " \u2026"
