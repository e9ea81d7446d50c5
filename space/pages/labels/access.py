"""Access rules for annotators, for all routes and pages: who may annotate or read, and what is hidden."""

import hashlib
import hmac
import logging
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from fastapi import HTTPException, Request

from arb.core.ids import TrajectoryId
from space.auth.auth import Auth
from space.pages.trajectories.index import TrajectoryEntry
from space.web.http_errors import AccessRefused
from space.web.query import link_to
from submissions.intake.accounts import Actor
from submissions.labels.annotation_service import AnnotationService
from submissions.labels.annotation_state import AnnotationState
from submissions.privacy.server_secret import SecretUnavailable

logger = logging.getLogger(__name__)
PATH: Final = "/annotate"
NOT_INVITED = "only annotators may do this; a maintainer can invite you on /discuss"
NOT_AN_ANNOTATOR = "only annotators and maintainers may do this; a maintainer can invite you on /discuss"
IN_YOUR_QUEUE: Final = (
    "This trajectory is in your annotation queue. You see verdicts and labels once you have annotated it."
)
SIGN_IN: Final = "Sign in with the account that a maintainer invited."
NOT_INVITED_PAGE: Final = "Only annotators and maintainers can see this page. Ask a maintainer to invite you."
NO_ITEM = "your queue has no such item; GET /api/annotate lists your items"


@dataclass(frozen=True)
class BlindItems:
    """The trajectories that an account has yet to annotate; empty if it does not annotate.

    Every route that shows a verdict, reward, label, answer or agent of a single trajectory must check
    `hides`, even for maintainers who annotate. Counts over many trajectories need no check.
    """

    trajectory_ids: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.trajectory_ids)

    def hides(self, trajectory_id: str) -> bool:
        return trajectory_id in self.trajectory_ids

    def without_tasks(self, entries: Iterable[TrajectoryEntry]) -> tuple[TrajectoryEntry, ...]:
        """Leave out all runs of a task with a hidden run, since its other runs would reveal the agent."""
        tasks = {(each.benchmark, each.task) for each in map(TrajectoryId.parse, self.trajectory_ids)}
        return tuple(entry for entry in entries if (entry.benchmark, entry.task) not in tasks)

    def redacted(self, value: Any) -> Any:
        """Return a JSON value with the hidden ids replaced, since an id contains the agent's name."""
        if isinstance(value, dict):
            return {name: self.redacted(each) for name, each in value.items()}
        if isinstance(value, list | tuple):
            return [self.redacted(each) for each in value]
        return "(in your annotation queue)" if isinstance(value, str) and self.hides(value) else value


@dataclass(frozen=True)
class AnnotatorContext:
    """The actor of a request, the actor's id as an annotator (None for other people), and all annotations."""

    actor: Actor
    annotator: str | None
    state: AnnotationState
    item_key: bytes = field(repr=False)

    def token(self, trajectory_id: str) -> str:
        """Return a token that names a trajectory in this reader's URLs without revealing the agent."""
        reader = self.annotator or f"maintainer {self.actor.name}"
        return hmac.new(self.item_key, f"{reader}\0{trajectory_id}".encode(), hashlib.sha256).hexdigest()[:32]

    def address_of(self, trajectory_id: str) -> str:
        """Return the address of the page where this reader annotates a trajectory."""
        return link_to(PATH, item=self.token(trajectory_id))

    def trajectory_of(self, token: str) -> str:
        """Return the id of the trajectory that a token of this reader names.

        The trajectory is assigned to the reader, or the reader is a maintainer. Raise HTTPException if the
        token is empty (422) or does not belong to this reader (404).
        """
        if not token:
            raise HTTPException(422, "item: give the token of an item in your queue")
        own = [task.trajectory_id for task in self.state.queue(self.annotator)] if self.annotator else []
        every = self.state.assigned if self.actor.is_maintainer else ()
        for name in (*own, *every) if token.isascii() else ():
            if hmac.compare_digest(self.token(name), token):
                return name
        raise HTTPException(404, NO_ITEM)

    def is_closed(self, trajectory_id: str) -> bool:
        """Return whether this reader's answers on a trajectory may no longer change."""
        return self.annotator is not None and self.state.is_closed(trajectory_id, self.annotator)


class Access:
    """FastAPI dependencies that find and check annotators. They may ask the Hub, so call them in a thread."""

    def __init__(self, annotations: AnnotationService, auth: Auth) -> None:
        self._annotations, self._auth = annotations, auth

    def known_actor(self, request: Request) -> Actor | None:
        """Return the signed-in account, or None if nobody is signed in or the token is not valid."""
        try:
            return self._auth.actor_of(request)
        except AccessRefused:
            return None

    def blind_items(self, request: Request) -> BlindItems:
        """Return what the signed-in account may not see yet; nothing is hidden if nobody is signed in."""
        actor = self.known_actor(request)
        if actor is None:
            return BlindItems()
        state = self._annotations.now()
        annotator = state.annotator_of(actor.name)
        return BlindItems(state.blind_items(annotator)) if annotator else BlindItems()

    def reader(self, request: Request) -> AnnotatorContext:
        """Return an annotator's or a maintainer's context; raise NotSignedIn or HTTPException for others."""
        reader = self.context_of(self._auth.require_actor(request))
        if reader.annotator is None and not reader.actor.is_maintainer:
            raise HTTPException(403, NOT_AN_ANNOTATOR)
        return reader

    def annotator(self, request: Request) -> AnnotatorContext:
        """Return the context of a request by an annotator; raise as `reader` does."""
        reader = self.context_of(self._auth.require_actor(request))
        if reader.annotator is None:
            raise HTTPException(403, NOT_INVITED)
        return reader

    def maintainer(self, request: Request) -> AnnotatorContext:
        return self.context_of(self._auth.require_maintainer(request))

    def context_of(self, actor: Actor) -> AnnotatorContext:
        state = self._annotations.now()
        return AnnotatorContext(actor, state.annotator_of(actor.name), state, self._item_key)

    @cached_property
    def _item_key(self) -> bytes:
        try:
            return self._annotations.service.secret.key("annotation-item")
        except SecretUnavailable as reason:
            logger.warning("addresses of annotation items become invalid when this process ends: %s", reason)
            return secrets.token_bytes(32)
