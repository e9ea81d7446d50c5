"""Treetop, a forum: boards sorted in two ways, threads with two pages, votes, replies, a profile."""

from dataclasses import dataclass, field
from html import escape

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tools.sample_recorder.sites.base import fields, go_to, not_found, page


@dataclass(frozen=True)
class Thread:
    """A thread with its comments, newest first; ``day`` is a day in May."""

    board: str
    title: str
    author: str
    day: int
    score: int
    comments: tuple[tuple[str, str], ...] = ()


THREADS = {
    "pedals": Thread(
        "Cycling",
        "Best flat pedals for a commuter?",
        "fern",
        3,
        41,
        (
            ("mossy", "Wide ones. Your feet will thank you."),
            ("birch", "Whatever you get, grease the threads."),
            ("mossy", "And take the pins out if you wear thin soles."),
            ("alder", "Plastic is fine in town."),
            ("mossy", "I had metal ones for ten years."),
            ("fern", "Thanks, all!"),
        ),
    ),
    "tubeless": Thread(
        "Cycling", "Tubeless or not?", "alder", 10, 30, (("birch", "Not for me: too messy."),)
    ),
    "brakes": Thread(
        "Cycling", "Squeaky brakes in the rain", "willow", 14, 12, (("fern", "Clean the rims first."),)
    ),
    "basil-cuttings": Thread(
        "Garden", "Basil from cuttings", "rowan", 2, 25, (("mossy", "A glass of water is enough."),)
    ),
    "basil-yellow": Thread(
        "Garden", "Why are the leaves of my basil yellow?", "hazel", 9, 17, (("rowan", "Is it in the sun?"),)
    ),
    "slugs": Thread("Garden", "Slugs again", "birch", 12, 8),
    "flour": Thread("Kitchen", "Which flour for flatbread?", "alder", 6, 14),
}
BOARDS = ("Cycling", "Garden", "Kitchen")
ON_A_PAGE = 4
STYLE = """
body { background: #f4f6f8; color: #1d2733; } header { background: #27415e; color: #fff; padding: 12px 28px;
display: flex; gap: 26px; align-items: center; }
header form { margin-left: auto; } button { background: #27415e; } header button { background: #152a40; }
.post { background: #fff; border: 1px solid #dbe1e8; padding: 12px 16px; margin: 10px 0; display: flex; gap:
18px; align-items: center; }
.post small { color: #61707f; } .on { background: #c0653a; }
"""


@dataclass
class Forum:
    """The forum's state for one member."""

    upvoted: set[str] = field(default_factory=set)
    replies: list[tuple[str, str]] = field(default_factory=list)
    followed: set[str] = field(default_factory=set)
    name: str = "guest-41"
    bio: str = ""

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/", self._home),
                Route("/board/{board}", self._board),
                Route("/thread/{key}", self._thread),
                Route("/thread/{key}/reply", self._reply, methods=["POST"]),
                Route("/thread/{key}/vote", self._vote, methods=["POST"]),
                Route("/thread/{key}/follow", self._follow, methods=["POST"]),
                Route("/search", self._search),
                Route("/profile", self._profile),
                Route("/profile/preview", self._preview, methods=["POST"]),
                Route("/profile/save", self._save, methods=["POST"]),
            ]
        )

    def _page(self, title: str, body: str) -> Response:
        boards = "".join(f'<a href="/board/{board}">{board}</a>' for board in BOARDS)
        return page(
            f"{title} - Treetop",
            f'<header><strong>Treetop</strong><a href="/">Front page</a>{boards}<a href="/profile">'
            "Profile</a>"
            '<form action="/search"><input type="text" name="q" aria-label="Search titles"> <button>'
            "Search</button></form>"
            f"</header><main>{body}</main>",
            STYLE,
        )

    def _list(self, keys: list[str]) -> str:
        return "".join(
            f'<div class="post">{self._vote_button(key)}<div><a href="/thread/{key}">{t.title}</a><br>'
            f"<small>{t.board}, by {t.author}, {t.day} May</small></div></div>"
            for key, t in ((key, THREADS[key]) for key in keys)
        )

    def _vote_button(self, key: str) -> str:
        on = key in self.upvoted
        return (
            f'<form method="post" action="/thread/{key}/vote"><button{" class=on" if on else ""} '
            f'aria-pressed="{str(on).lower()}">'
            f"{'Upvoted' if on else 'Upvote'} {THREADS[key].score + on}</button></form>"
        )

    async def _home(self, request: Request) -> Response:
        keys = sorted(THREADS, key=lambda key: -THREADS[key].score)
        return self._page("Front page", f"<h1>Front page</h1>{self._list(keys[:5])}")

    async def _board(self, request: Request) -> Response:
        board, order = request.path_params["board"], request.query_params.get("order", "popular")
        keys = [key for key, thread in THREADS.items() if thread.board == board]
        keys.sort(key=lambda key: -(THREADS[key].day if order == "newest" else THREADS[key].score))
        return self._page(
            board,
            f'<h1>{escape(board)}</h1><p>Order: <a href="/board/{escape(board)}">Popular</a> '
            f'<a href="/board/{escape(board)}?order=newest">Newest</a></p>{self._list(keys)}',
        )

    async def _search(self, request: Request) -> Response:
        query = request.query_params.get("q", "").strip().lower()
        keys = [key for key, thread in THREADS.items() if query in thread.title.lower()]
        return self._page(
            "Search",
            f"<h1>Titles with: {escape(query)}</h1>"
            f"{self._list(keys) or '<p>No thread has this in its title.</p>'}",
        )

    async def _thread(self, request: Request) -> Response:
        key, start = request.path_params["key"], int(request.query_params.get("from", "0"))
        if key not in THREADS:
            return not_found(STYLE)
        thread = THREADS[key]
        said = [(self.name, text) for k, text in reversed(self.replies) if k == key] + list(thread.comments)
        shown = "".join(
            f"<p><b>{escape(who)}</b>: {escape(text)}</p>" for who, text in said[start : start + ON_A_PAGE]
        )
        older = (
            f'<a href="/thread/{key}?from={start + ON_A_PAGE}">Older comments</a>'
            if len(said) > start + ON_A_PAGE
            else ""
        )
        newer = f'<a href="/thread/{key}">Newer comments</a>' if start else ""
        return self._page(
            thread.title,
            f"<h1>{thread.title}</h1><p>By {thread.author}, {thread.day} May</p><div "
            f'style="display:flex;gap:12px">{self._vote_button(key)}'
            f'<form method="post" action="/thread/{key}/follow"><button>'
            f"{'Following' if key in self.followed else 'Follow thread'}</button></form></div>"
            f'<h2>Comments</h2>{shown}<p>{newer} {older}</p><form method="post" action="/thread/{key}/reply">'
            '<label for="r">Write a reply</label><textarea id="r" name="text" rows="3" cols="60"></textarea>'
            "<br><button>Post reply</button></form>",
        )

    async def _vote(self, request: Request) -> Response:
        self.upvoted ^= {request.path_params["key"]}
        return go_to(request.headers.get("referer", "/"))

    async def _follow(self, request: Request) -> Response:
        self.followed ^= {request.path_params["key"]}
        return go_to(f"/thread/{request.path_params['key']}")

    async def _reply(self, request: Request) -> Response:
        key = request.path_params["key"]
        self.replies.append((key, (await fields(request))["text"]))
        return go_to(f"/thread/{key}")

    def _profile_form(self, name: str, bio: str) -> str:
        return (
            '<form method="post" action="/profile/preview"><label for="n">Display name</label>'
            f'<input type="text" id="n" name="name" value="{escape(name)}"><label for="b">Bio</label>'
            f'<input type="text" id="b" name="bio" size="60" value="{escape(bio)}"> <button>'
            "Preview</button></form>"
        )

    async def _profile(self, request: Request) -> Response:
        return self._page("Profile", f"<h1>Profile</h1>{self._profile_form(self.name, self.bio)}")

    async def _preview(self, request: Request) -> Response:
        sent = await fields(request)
        hidden = "".join(
            f'<input type="hidden" name="{name}" value="{escape(sent[name])}">' for name in ("name", "bio")
        )
        return self._page(
            "Preview",
            f'<h1>Preview</h1><div class="post"><div><b>{escape(sent["name"])}</b><br>'
            f"{escape(sent['bio'])}</div></div>"
            '<p>This is how others will see you. It is not saved yet.</p><form method="post" '
            f'action="/profile/save">{hidden}'
            '<button>Save profile</button></form><p><a href="/profile">Back to editing</a></p>',
        )

    async def _save(self, request: Request) -> Response:
        sent = await fields(request)
        self.name, self.bio = sent["name"], sent["bio"]
        return go_to("/profile")
