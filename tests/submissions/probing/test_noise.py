"""Keyed noise: a function of key and figure, normal, shared by audiences, whole and possible as a count."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submissions.probing.noise import LARGEST_DRAW, keyed_normal, layered_noise, noisy_count

KEY = b"k" * 32
FIGURE = ("version", "success", "overall", "digest")


def test_a_draw_depends_on_the_key_and_on_every_word():
    draw = keyed_normal(KEY, *FIGURE)
    assert draw == keyed_normal(KEY, *FIGURE)
    others = [(*FIGURE[:place], word + "x", *FIGURE[place + 1 :]) for place, word in enumerate(FIGURE)]
    draws = [keyed_normal(b"l" * 32, *FIGURE), *(keyed_normal(KEY, *other) for other in others)]
    assert len({draw, *draws}) == 6


def test_words_cannot_be_cut_elsewhere():
    assert keyed_normal(KEY, "ab", "c") != keyed_normal(KEY, "a", "bc")


def test_draws_are_standard_normal():
    draws = np.array([keyed_normal(KEY, str(number)) for number in range(20_000)])
    # Standard errors: 1 / sqrt(20000) = 0.007 of the mean, 0.005 of the deviation, 0.0015 of the share.
    assert abs(draws.mean()) < 0.03
    assert abs(draws.std() - 1) < 0.02
    assert abs((np.abs(draws) > 1.96).mean() - 0.05) < 0.007
    assert np.abs(draws).max() < LARGEST_DRAW
    assert 8.2 < LARGEST_DRAW < 8.4


def test_audiences_share_the_finest_noise():
    pairs = []
    for number in range(4_000):
        figure = (*FIGURE[:3], str(number))
        pairs.append(
            [layered_noise(KEY, figure, 3.0, 3.0, "public"), layered_noise(KEY, figure, 3.0, 5.0, "owner")]
        )
    public, owner = np.array(pairs).T
    assert abs(public.std() - 3) < 0.15
    assert abs(owner.std() - 5) < 0.25
    # owner = public + 4 z: of the two, no weighting has less noise than the public one alone.
    assert abs(np.corrcoef(public, owner - public)[0, 1]) < 0.06
    assert abs((owner - public).std() - 4) < 0.2


def test_equal_noise_is_the_same_noise():
    assert layered_noise(KEY, FIGURE, 3.0, 3.0, "owner") == layered_noise(KEY, FIGURE, 3.0, 3.0, "public")


def test_less_than_the_finest_is_refused():
    with pytest.raises(ValueError, match="finest"):
        layered_noise(KEY, FIGURE, 3.0, 2.0, "owner")


@given(st.integers(0, 300), st.floats(-50, 50), st.integers(0, 100), st.integers(0, 200))
def test_a_noisy_count_is_whole_and_within_its_bounds(count, noise, least, width):
    shown = noisy_count(count, noise, least, least + width)
    assert isinstance(shown, int)
    assert least <= shown <= least + width
    if least <= count + noise <= least + width:
        assert abs(shown - (count + noise)) <= 0.5
