import json
import re

from space.fresh_choices import choices_html
from tests.space.boards import board, cell, label, row


def test_the_choices_of_a_board_are_json_that_no_name_ends(hostile):
    spoken = row(hostile, label(cell(1, 1, 1, 1)), id="a", account="</script>")
    html = choices_html(board(spoken), "list")
    (content,) = re.findall(r'<script type="application/json" id="list">(.*)</script>', html)
    assert "<" not in content
    assert json.loads(content) == [[f"{hostile} (tree) · by </script>", "a"]]
