"""Noise that nobody can average away: drawn from a secret and from what is shown, not from a generator.

A draw is a pure function of the server's key, the label version and the figure, so that the same verdicts
show the same figure for as long as the labels stay. The label version is part of it: with the same noise
before and after a correction the difference of two figures would be the exact effect of the correction.
"""

import hashlib
import hmac
import json
from math import sqrt
from statistics import NormalDist
from typing import Final

_STANDARD: Final = NormalDist()
_BITS: Final = 53
LARGEST_DRAW: Final = -_STANDARD.inv_cdf(0.5**_BITS / 2)
"""No draw is further from 0 than this many standard deviations: 8.3, which one draw in 10**16 would pass."""


def keyed_normal(key: bytes, *what: str) -> float:
    """A standard normal draw that only ``key`` and the words of ``what`` decide.

    The first 53 bits of HMAC-SHA256 (RFC 2104) of the words as a JSON list, as a share of (0, 1), through the
    inverse of the normal distribution. A JSON list, so that no two lists of words have the same bytes.
    """
    digest = hmac.new(key, json.dumps(what).encode(), hashlib.sha256).digest()
    whole = int.from_bytes(digest[:8], "big") >> (64 - _BITS)
    return _STANDARD.inv_cdf((whole + 0.5) / 2**_BITS)


def layered_noise(key: bytes, figure: tuple[str, ...], finest: float, wanted: float, audience: str) -> float:
    """Noise of standard deviation ``wanted`` on a figure for an audience; nobody sees less than ``finest``.

    ``figure`` names label version, label, cell and digest. Independent noise for each audience could be
    averaged by one who is both: of 5 and 3 counts 2.6 would be left. So all share one draw of standard
    deviation ``finest``, and a coarser audience gets a second one on top, of sqrt(wanted^2 - finest^2): to
    have both figures says no more than the finer one alone. Raises ValueError where ``wanted`` is below
    ``finest``.
    """
    if wanted < finest:
        raise ValueError(f"noise of {wanted} was asked for, where the finest is {finest}")
    shared = finest * keyed_normal(key, "everyone", *figure)
    if wanted == finest:
        return shared
    return shared + sqrt(wanted**2 - finest**2) * keyed_normal(key, audience, *figure)


def noisy_count(count: int, noise: float, least: int, most: int) -> int:
    """A count with noise, as a whole number from ``least`` to ``most``.

    Rounding and clamping look at the noisy count and at bounds that do not depend on the labels of single
    trajectories: they tell nothing that the noisy count did not.
    """
    return min(max(round(count + noise), least), most)
