"""A judge of one's own, named by where it is: ``path/to/file.py:Name`` or ``package.module:Name``."""

import hashlib
import importlib
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Final

from judges.base import Judge, RewardJudge

_MODULE: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_JUDGE_ATTRIBUTES: Final = ("name", "inputs", "calls", "source", "wants", "models", "prompts_hash", "ask")
_REWARD_JUDGE_ATTRIBUTES: Final = ("name", "judge_reward")


class CustomJudgeError(ValueError):
    """A judge that cannot be loaded; the message says what is wrong with the file, or with the judge."""


def is_address(name: str) -> bool:
    """Whether a name says where a judge is: a file or a module, a colon, and an attribute."""
    place, _, attribute = name.rpartition(":")
    return attribute.isidentifier() and (place.endswith(".py") or _MODULE.fullmatch(place) is not None)


def load_judge(address: str) -> Judge | RewardJudge:
    """The judge at an address: an instance, or a class that is made without arguments.

    Runs the file. Raises CustomJudgeError.
    """
    place, _, attribute = address.rpartition(":")
    module = _module(place)
    if not hasattr(module, attribute):
        raise CustomJudgeError(f"{place}: has no {attribute}")
    judge = getattr(module, attribute)
    if isinstance(judge, type):
        try:
            judge = judge()
        except Exception as error:
            raise CustomJudgeError(f"{address}: cannot be made without arguments ({error})") from error
    required = _REWARD_JUDGE_ATTRIBUTES if hasattr(judge, "judge_reward") else _JUDGE_ATTRIBUTES
    if absent := [name for name in required if not hasattr(judge, name)]:
        raise CustomJudgeError(f"{address}: a judge needs {', '.join(absent)}; see judges/base.py")
    return judge


def _module(place: str) -> ModuleType:
    try:
        return _module_of_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    except CustomJudgeError:
        raise
    except Exception as error:  # whatever the file does when it is run
        raise CustomJudgeError(f"{place}: cannot be loaded ({type(error).__name__}: {error})") from error


def _module_of_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise CustomJudgeError(f"{path}: there is no such file")
    resolved = path.resolve()
    name = f"judge_of_{resolved.stem}_{hashlib.sha256(str(resolved).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, resolved)
    if spec is None or spec.loader is None:
        raise CustomJudgeError(f"{path}: is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look a class's module up by name
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
