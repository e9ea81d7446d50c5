import pytest

from tools.sample_recorder.agents import ScriptedAgent, ScriptError, is_unchanged

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
