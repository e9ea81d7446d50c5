"""Versions of formats: known ones are read, and a missing one is the first."""

import pytest

from arb.core import formats
from arb.core.formats import format_problem


@pytest.mark.parametrize("content", [{}, {"format": 1}, {"format": 3}, []])
def test_a_document_of_a_known_or_no_format_is_read(monkeypatch, content):
    monkeypatch.setattr(formats, "FORMATS", {"leaf": 3})
    assert format_problem("leaf", content) is None


@pytest.mark.parametrize("version", [0, 4, -1, 1.5, "1", None, [1], 10**30])
def test_any_other_format_is_refused_with_what_to_do(monkeypatch, version):
    monkeypatch.setattr(formats, "FORMATS", {"leaf": 3})
    problem = format_problem("leaf", {"format": version})
    assert problem.endswith(", but this program reads formats up to 3; upgrade it") and len(problem) < 90
