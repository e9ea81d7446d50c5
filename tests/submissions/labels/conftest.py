"""A labelling annotation over the synthetic suite, with two annotators where a test asks for them."""

import pytest

from submissions.intake.accounts import Actor
from submissions.labels.annotation_service import AnnotationService
from submissions.labels.annotation_state import Draft

GRACE = Actor("grace", is_maintainer=True)
ADA, BOB, EVE = Actor("ada"), Actor("bob"), Actor("eve")


def said(success="yes", side_effect="no", repetition="no", optimality="4", comment="", is_done=True) -> Draft:
    """A finished draft, or one that is not."""
    answers = {
        "success": success,
        "side_effect": side_effect,
        "repetition": repetition,
        "optimality": optimality,
    }
    return Draft(answers, comment, 12.0, is_done)


def queue_of(annotation: AnnotationService, actor: Actor) -> list[str]:
    """The trajectories in somebody's queue."""
    state = annotation.now()
    return [task.trajectory_id for task in state.queue(state.annotator_of(actor.name) or "")]


@pytest.fixture
def annotation(service) -> AnnotationService:
    """Nobody is invited yet."""
    return AnnotationService(service)


@pytest.fixture
def annotating(annotation) -> AnnotationService:
    """Ada and Bob each have all of four trajectories, in either place."""
    annotation.invite("ada", GRACE)
    annotation.invite("bob", GRACE)
    four = [trajectory.trajectory_id for trajectory in annotation.service.suite.split("test")[:4]]
    assert annotation.assign_trajectories(four, 1.0, 1, GRACE) == 8
    return annotation
