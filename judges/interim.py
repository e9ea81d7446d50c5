"""Replies that a judge builds on, such as captions: their text, or the state that ends the judging."""

from judges.base import Answer, Reply


def text_of(reply: Reply) -> str | None:
    """The text of a reply; None when the call failed, the model refused, or the text is empty."""
    if reply.state != "ok" or reply.refusal or reply.finish_reason == "content_filter":
        return None
    return reply.text if (reply.text or "").strip() else None


def failed_answer(reply: Reply) -> Answer:
    """The answer of a judge that cannot go on without the text of this reply."""
    if reply.state != "ok":
        return Answer(reply.state)
    if reply.refusal or reply.finish_reason == "content_filter":
        return Answer("refused")
    return Answer("truncated" if reply.finish_reason == "length" else "error")
