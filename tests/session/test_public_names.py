"""What a user holds: each name and method with a docstring; what releases says what it promises."""

import inspect

from sitr.session.database import Database
from sitr.session.misfits import Check
from sitr.session.profile import Profile, Profiled, ProfileExplanation
from sitr.session.question import Question
from sitr.session.room import Forecast
from sitr.session.table import Groups, PrivateTable

PUBLIC = [Check, Database, Forecast, Groups, PrivateTable, Profile, Profiled, ProfileExplanation, Question]


def test_every_name_and_method_has_a_docstring():
    for value in PUBLIC:
        assert inspect.getdoc(value), value
        for method, found in vars(value).items():
            if not method.startswith("_") and (inspect.isfunction(found) or isinstance(found, property)):
                assert inspect.getdoc(found), f"{value.__name__}.{method}"


def test_what_releases_says_what_it_promises():
    for value in (Question, Profile):
        assert "Privacy:" in inspect.getdoc(value.release)
