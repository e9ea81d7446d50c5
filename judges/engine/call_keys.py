"""The name of a call's answer: a hash of everything that the answer depends on."""

import hashlib
import json

from judges.base import Image, Message, ModelSettings


def call_key(model: ModelSettings, messages: tuple[Message, ...], max_output_tokens: int, sample: int) -> str:
    """The name of a call's answer: SHA-256 of model, parameters, messages and sample.

    Pictures go in by hash, detail and media type. The endpoint's address and its key's name are left out:
    the same model behind another address gives the same answers.
    """
    asked = {
        "provider": model.provider,
        "model": model.model,
        "temperature": model.temperature,
        "seed": model.seed,
        "max_output_tokens": max_output_tokens,
        "logprobs": model.logprobs,
        "extra": dict(model.extra),
        "sample": sample,
    }
    digest = hashlib.sha256(json.dumps(asked, sort_keys=True, separators=(",", ":")).encode())
    for message in messages:
        parts = (message.content,) if isinstance(message.content, str) else message.content
        digest.update(f"\n{message.role} {len(parts)}".encode())
        for part in parts:
            if isinstance(part, Image):
                digest.update(f"\npicture {part.sha256} {part.media_type} {part.detail}".encode())
            else:
                text = part.encode("utf-8", "surrogatepass")  # half a pair stands in some pages
                digest.update(f"\ntext {len(text)}\n".encode())  # its length, so that no text looks like two
                digest.update(text)
    return digest.hexdigest()
