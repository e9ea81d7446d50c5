"""Who may annotate and who may read: the one place where routes and pages of annotation ask."""

from dataclasses import dataclass

from fastapi import HTTPException, Request

from space.auth.auth import Auth
from submissions.intake.accounts import Actor
from submissions.labels.annotation_actions import NOT_YOURS
from submissions.labels.annotation_service import AnnotationService
from submissions.labels.annotation_state import AnnotationState

NOT_INVITED = "only annotators may do this; maintainers invite them on /discuss"
NOBODY_HERE = "only annotators and maintainers may do this; maintainers invite annotators on /discuss"


@dataclass(frozen=True)
class AnnotatorContext:
    """Who asks: the actor, as which annotator (None: a maintainer who is none), and all annotations."""

    actor: Actor
    annotator: str | None
    state: AnnotationState

    def require_story_access(self, trajectory_id: str) -> None:
        """Raise HTTPException 403 unless the blind story of a trajectory is for this reader."""
        is_mine = self.annotator is not None and self.state.is_assigned(trajectory_id, self.annotator)
        if not (is_mine or self.actor.is_maintainer):
            raise HTTPException(403, NOT_YOURS)


class Access:
    """FastAPI dependencies over the annotations; they may ask the Hub, so call them in a thread."""

    def __init__(self, annotations: AnnotationService, auth: Auth) -> None:
        self._annotations, self._auth = annotations, auth

    def reader(self, request: Request) -> AnnotatorContext:
        """An annotator or a maintainer. Raises NotSignedIn, and HTTPException 403 for all others."""
        actor = self._auth.require_actor(request)
        reader = self._context(actor)
        if reader.annotator is None and not actor.is_maintainer:
            raise HTTPException(403, NOBODY_HERE)
        return reader

    def annotator(self, request: Request) -> AnnotatorContext:
        """An annotator. Raises NotSignedIn, and HTTPException 403 for all others."""
        reader = self._context(self._auth.require_actor(request))
        if reader.annotator is None:
            raise HTTPException(403, NOT_INVITED)
        return reader

    def maintainer(self, request: Request) -> AnnotatorContext:
        """A maintainer. Raises NotSignedIn, NotAMaintainer."""
        return self._context(self._auth.require_maintainer(request))

    def _context(self, actor: Actor) -> AnnotatorContext:
        state = self._annotations.now()
        return AnnotatorContext(actor, state.annotator_of(actor.name), state)
