"""JSON that is almost as a program writes it: any value may be of another type, absent, or twice there."""

import copy
from contextlib import suppress
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from arb.core.trajectory import Recording
from dataset_script.sources.base import TrajectorySource
from dataset_script.sources.problems import SourceError, UnusableFileError

WITH_FOLDER = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
    max_examples=60,
)
"""Settings of a test that writes each example into the same folder."""

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def mutated(draw: st.DrawFn, content: Any) -> Any:
    """The content with one to three of its values replaced, removed or written twice."""
    content = copy.deepcopy(content)
    for _ in range(draw(st.integers(1, 3))):
        places = list(_places(content))
        if not places:
            break
        holder, key = draw(st.sampled_from(places))
        change = draw(st.sampled_from(("replace", "remove", "twice")))
        if change == "replace":
            holder[key] = draw(ANY_JSON)
        elif change == "remove":
            del holder[key]
        elif isinstance(holder, list):
            holder.insert(key, copy.deepcopy(holder[key]))
    return content


def _places(content: Any) -> Any:
    """Every container of the content with each of its keys."""
    keys = range(len(content)) if isinstance(content, list) else content if isinstance(content, dict) else ()
    for key in keys:
        yield content, key
        yield from _places(content[key])


def read_or_refused(source: TrajectorySource) -> list[Recording]:
    """Read every run of a source. A listing or a run may be refused; what is read has texts fit for UTF-8."""
    try:
        files = source.list_runs().files
    except SourceError:
        return []
    found = []
    for file in files:
        source.identity(file)
        with suppress(UnusableFileError, SourceError):
            found.append(source.read(file)[0])
    for run in found:
        assert [step.num for step in run.steps] == list(range(len(run.steps)))
        texts = [run.goal, run.answer, run.state]
        for step in run.steps:
            texts += [step.url, step.action, step.reasoning, step.text, step.last_action_error, step.axtree]
        assert all(text is None or text.encode() is not None for text in texts)
    return found
