import pytest

from space.auth.declaring import declare_as
from submissions.accounts import Actor
from submissions.declaration import DeclarationError
from tests.submissions.synthetic import FORM

ADA = Actor("ada", how="session")


@pytest.mark.parametrize("said", ["", None, "ada", " Ada "])
def test_whoever_is_signed_in_is_the_account(said):
    declaration, actor = declare_as(ADA, **{**FORM, "account": said})
    assert (declaration.account, actor) == ("ada", ADA)


def test_naming_somebody_else_is_a_problem_beside_the_others():
    with pytest.raises(DeclarationError) as caught:
        declare_as(ADA, **{**FORM, "account": "grace", "judge": ""})
    messages = dict(caught.value.problems)
    assert "signed in as ada" in messages["account"]
    assert "fill it in" in messages["judge"]


def test_without_anybody_signed_in_the_forms_name_is_believed():
    declaration, actor = declare_as(None, **FORM)
    assert declaration.account == FORM["account"] == actor.name
    assert (actor.how, actor.is_maintainer) == ("local", False)


def test_without_anybody_signed_in_a_name_is_needed():
    with pytest.raises(DeclarationError, match="fill it in"):
        declare_as(None, **{**FORM, "account": ""})
