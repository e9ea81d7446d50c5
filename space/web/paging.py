"""One page of a list that is shown page by page."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Page(Generic[T]):
    """The items on a page, its number from 1, and how many pages and items there are."""

    items: Sequence[T]
    number: int
    n_pages: int
    n_items: int

    @classmethod
    def of(cls, items: Sequence[T], number: int, size: int) -> "Page[T]":
        """Return a page of ``size`` items. A number past the end means the last page."""
        n_pages = max(1, -(-len(items) // size))
        number = min(number, n_pages)
        return cls(items[(number - 1) * size : number * size], number, n_pages, len(items))
