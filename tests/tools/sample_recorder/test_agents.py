import pytest

from tools.sample_recorder.agents import ScriptedAgent, ScriptError, find_element, is_unchanged

TREE = """RootWebArea 'Shop', focused, url='http://shop/'
\t[7] link 'Basket (0)', clickable, visible, url='http://shop/basket'
\t[9] textbox 'Search' value='tea', clickable, visible
\t[12] button 'Add', clickable, visible
\t[a13] button "Dad's order", visible
\t[14] combobox 'Quantity' value='1', visible
\t\tStaticText 'Order 1001 is placed.'"""
CHANGED = TREE.replace("Basket (0)", "Basket (1)")


@pytest.fixture
def agent(character):
    def made(*moves, name="careful", **reads):
        return ScriptedAgent(character[name], moves, reads, "http://shop")

    return made


def test_an_element_is_found_by_its_role_and_its_whole_name():
    assert find_element(TREE, "link", "Basket (0)") == "7"
    assert find_element(TREE, "button", "Dad's order") == "a13"
    assert find_element(TREE, "textbox", "Search") == "9"
    assert find_element(TREE, "button", "Basket (0)") is None
    assert find_element(TREE, "link", "Basket") is None


@pytest.mark.parametrize(
    ("move", "action"),
    [
        (("click", "button", "Add", "why"), "click('12')"),
        (("fill", "Search", "two 'mugs'", "why"), "fill('9', \"two 'mugs'\")"),
        (("select", "Quantity", "2", "why"), "select_option('14', '2')"),
        (("scroll", "-300", "why"), "scroll(0, -300)"),
        (("goto", "/checkout", "why"), "goto('http://shop/checkout')"),
        (("back", "why"), "go_back()"),
        (("say", "Done.", "why"), "send_msg_to_user('Done.')"),
        (("infeasible", "No.", "why"), "report_infeasible('No.')"),
    ],
)
def test_a_move_becomes_an_action_on_what_the_page_shows(agent, move, action):
    decision = agent(move).act(TREE)
    assert (decision.action, decision.reasoning) == (action, "why")


def test_what_a_page_showed_can_be_repeated_later(agent):
    moves = (("click", "button", "Add", "why"), ("say", "Number {order}.", "why"))
    two = agent(*moves, order=r"Order (\d+)")
    two.act(TREE)
    assert two.act("RootWebArea 'Elsewhere'").action == "send_msg_to_user('Number 1001.')"


def test_what_no_page_showed_cannot_be_repeated(agent):
    with pytest.raises(ScriptError, match="'order' was never seen"):
        agent(("say", "Number {order}.", "why"), order=r"Order (\d+)").act("RootWebArea 'Empty'")


def test_an_element_that_is_not_there_is_named(agent):
    with pytest.raises(ScriptError, match="ScriptedAgent-careful: no button 'Buy' on this page"):
        agent(("click", "button", "Buy", "why")).act(TREE)


def test_only_the_stubborn_agent_clicks_again_when_nothing_happened(agent):
    moves = (("click", "button", "Add", "first"), ("say", "Done.", "last"))
    careful, stubborn = agent(*moves), agent(*moves, name="stubborn")
    assert [careful.act(TREE).action for _ in moves] == ["click('12')", "send_msg_to_user('Done.')"]
    # one click, three more that change nothing, then it goes on
    actions = [stubborn.act(TREE).action for _ in range(5)]
    assert actions == ["click('12')"] * 4 + ["send_msg_to_user('Done.')"]


def test_the_stubborn_agent_goes_on_when_the_page_gives_in(agent):
    stubborn = agent(("click", "button", "Add", "first"), ("say", "Done.", "last"), name="stubborn")
    actions = [stubborn.act(tree).action for tree in (TREE, TREE, CHANGED)]
    assert actions == ["click('12')", "click('12')", "send_msg_to_user('Done.')"]


def test_a_moved_focus_is_no_change_of_the_page():
    assert is_unchanged(TREE, TREE.replace("'Shop', focused", "'Shop'").replace("'Add'", "'Add', focused"))
    assert not is_unchanged(TREE, CHANGED)
