"""What the benchmark of growth says of what it measured."""

from bench.growth import Measured, ranks_seconds, report


def measured(ranked: float, readers: float) -> Measured:
    return Measured(start=1.0, ranked=[ranked] * 3, first=[9.0], readers=[readers] * 3, memory=300.0)


def test_uploads_may_take_half_as_long_again_at_300_rows_and_two_seconds_at_1000(capsys):
    small = measured(ranked=0.2, readers=0.01)
    assert report({20: small, 300: measured(ranked=0.28, readers=0.014), 1_000: measured(1.9, 0.01)})
    assert "x1.40" in capsys.readouterr().out
    assert not report({20: small, 300: measured(ranked=0.31, readers=0.01)})
    assert not report({20: small, 300: measured(ranked=0.2, readers=0.016)})
    assert not report({20: small, 1_000: measured(ranked=2.1, readers=0.01)})
    assert report({20: small, 10_000: measured(ranked=30, readers=0.01)})


def test_the_ranks_of_a_large_board_are_timed():
    assert ranks_seconds(130) > 0
