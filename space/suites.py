"""The suites of one Space: the services of each, opened at first use, and the routes of further suites."""

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from fastapi import APIRouter, HTTPException
from starlette.concurrency import run_in_threadpool
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

from space.services import Services
from space.web.suite_path import PARAMETER
from submissions.errors import RecordsUnavailable, TemporarilyClosed

logger = logging.getLogger(__name__)
TRY_AGAIN_SECONDS: Final = 10.0
"""How long a suite that could not be opened is refused before the Space tries to open it again."""


class SuiteClosed(TemporarilyClosed):
    """Raised when the records of a further suite cannot be opened."""


class SuiteServices(Mapping[str, Services]):
    """The services of each suite, keyed by name, the default suite first. Opened at first use. Thread-safe.

    Raises KeyError for a suite that the Space does not serve, and SuiteClosed for one that cannot be opened.
    """

    def __init__(self, names: tuple[str, ...], open_suite: Callable[[str], Services]) -> None:
        self._names, self._open = names, open_suite
        self._opened: dict[str, Services] = {}
        self._failed_at: dict[str, float] = {}
        self._locks: dict[str, threading.Lock] = defaultdict(threading.Lock)

    @property
    def default(self) -> Services:
        return self[self._names[0]]

    @property
    def opened(self) -> tuple[Services, ...]:
        """The services that have been opened so far."""
        return tuple(self._opened.values())

    def __getitem__(self, name: str) -> Services:
        if (found := self._opened.get(name)) is not None:
            return found
        if name not in self._names:
            raise KeyError(name)
        with self._locks[name]:
            if name not in self._opened:
                self._opened[name] = self._opened_now(name)
            return self._opened[name]

    def _opened_now(self, name: str) -> Services:
        if name == self._names[0]:
            return self._open(name)
        closed = SuiteClosed(f"the suite {name} cannot be opened now; the log of the server says why")
        if time.monotonic() < self._failed_at.get(name, -TRY_AGAIN_SECONDS) + TRY_AGAIN_SECONDS:
            raise closed
        try:
            return self._open(name)
        except RecordsUnavailable as problem:
            logger.error("the suite %s cannot be opened: %s", name, problem)
            self._failed_at[name] = time.monotonic()
            raise closed from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def no_such_suite(name: str, known: Mapping[str, object]) -> str:
    return f"there is no suite {name[:40]!r} here; use one of {', '.join(known)}"


class SuiteRoutes(BaseRoute):
    """The routes of all further suites; they answer every request for which `SuitePath` found a suite."""

    def __init__(self, suites: SuiteServices, build: Callable[[str, Services], APIRouter]) -> None:
        """``build`` returns the routes of a suite, from its name and services."""
        self._suites, self._build = suites, build
        self._routers: dict[str, APIRouter] = {}
        self._lock = threading.Lock()

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        is_further = PARAMETER in scope.get("state", ())
        return (Match.FULL if is_further else Match.NONE), {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = scope["state"][PARAMETER]
        if name not in self._suites:
            raise HTTPException(404, no_such_suite(name, self._suites))
        router = self._routers.get(name)
        if router is None:
            router = await run_in_threadpool(self._router, name)
        await router(scope, receive, send)

    def _router(self, name: str) -> APIRouter:
        services = self._suites[name]
        with self._lock:
            if name not in self._routers:
                self._routers[name] = self._build(name, services)
            return self._routers[name]
