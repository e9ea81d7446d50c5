"""Second Spring, a market for used things. Titles say little, so buyers have to look at the pictures."""

from dataclasses import dataclass, field
from html import escape

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tools.sample_recorder.sites.base import FRESH, choices, fields, go_to, not_found, page, picture


@dataclass(frozen=True)
class Thing:
    """An item for sale, with its price in dollars. Only its picture shows its colour and pattern."""

    title: str
    kind: str
    price: int
    seller: str
    colour: str
    pattern: str = ""


THINGS = {
    "1": Thing("City bicycle, three gears", "bicycle", 60, "Iris", "#d9822b"),
    "2": Thing("Armchair, pick up only", "armchair", 35, "Bruno", "#7a6a58"),
    "3": Thing("Table lamp", "lamp", 22, "Maya", "#d8c15a", "cone"),
    "4": Thing("Guitar with bag", "guitar", 80, "Otto", "#b5733c"),
    "5": Thing("Bicycle, new chain", "bicycle", 55, "Carl", "#b3202a"),
    "6": Thing("Comfortable armchair", "armchair", 45, "Nadia", "#3f6f8f", "striped"),
    "7": Thing("Reading lamp", "lamp", 26, "Ravi", "#6f9fb8", "round"),
    "8": Thing("Armchair from my aunt", "armchair", 70, "Elsa", "#8f3f5f", "striped"),
    "9": Thing("Bicycle, 26 inch", "bicycle", 50, "Jonas", "#2f5f9f"),
    "10": Thing("Lamp, works well", "lamp", 30, "Petra", "#c46a4a", "round"),
    "11": Thing("Small armchair", "armchair", 40, "Sven", "#5f8f5f", "dotted"),
}
COLUMNS = 4
KINDS = ("", "armchair", "bicycle", "guitar", "lamp")
STYLE = """
body { background: #fff; color: #2b2b2b; } header { background: #1f6f6b; color: #fff; padding: 10px 28px;
display: flex; gap: 28px; align-items: center; }
button { background: #1f6f6b; } .grid { display: grid; grid-template-columns: repeat(4, 1fr); gap: 14px; }
.card { border: 1px solid #dfe5e3; padding: 8px; }
.card img { width: 100%; height: 150px; object-fit: contain; display: block; } .card p { margin: 2px 0; }
.two { display: grid; grid-template-columns: 1fr 1fr; gap: 36px; }
.bar { display: flex; gap: 12px; align-items: end; margin-bottom: 12px; } .bar label { margin: 0; }
"""


@dataclass
class Market:
    """The market's state for one buyer."""

    viewed: list[str] = field(default_factory=list)
    favourites: set[str] = field(default_factory=set)
    reserved: list[str] = field(default_factory=list)
    offers: list[tuple[str, int]] = field(default_factory=list)
    messages: list[tuple[str, str]] = field(default_factory=list)
    bought: list[str] = field(default_factory=list)
    notice: str = ""

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/", self._home),
                Route("/picture/{key}.svg", self._picture),
                Route("/thing/{key}", self._thing),
                Route("/thing/{key}/favourite", self._favourite, methods=["POST"]),
                Route("/thing/{key}/reserve", self._reserve, methods=["POST"]),
                Route("/thing/{key}/offer", self._offer, methods=["POST"]),
                Route("/thing/{key}/message", self._message, methods=["POST"]),
                Route("/thing/{key}/buy", self._buy, methods=["GET", "POST"]),
            ]
        )

    def _page(self, title: str, body: str) -> Response:
        return page(
            f"{title} - Second Spring",
            f'<header><strong>Second Spring</strong><a href="/">Everything</a></header><main>{body}</main>',
            STYLE,
        )

    async def _home(self, request: Request) -> Response:
        asked = request.query_params
        query, kind, order = asked.get("q", "").lower(), asked.get("kind", ""), asked.get("order", "Newest")
        keys = [key for key, t in THINGS.items() if query in t.title.lower() and kind in ("", t.kind)]
        if order == "Cheapest":
            keys.sort(key=lambda key: THINGS[key].price)
        cards = "".join(
            f'<div class="card"><img src="/picture/{key}.svg" alt="Photo"><p><a href="/thing/{key}">'
            f"{THINGS[key].title}</a></p>"
            f"<p>${THINGS[key].price}</p></div>"
            for key in keys
        )
        return self._page(
            "Everything",
            '<form action="/" class="bar"><div><label for="q">Words</label><input type="text" id="q" '
            'name="q" value="'
            f'{escape(query)}"></div><div><label for="k">Kind</label><select id="k" name="kind">'
            f"{choices(KINDS, kind)}</select></div>"
            '<div><label for="o">Order</label><select id="o" name="order">'
            f"{choices(('Newest', 'Cheapest'), order)}</select></div>"
            f'<button>Show</button></form><div class="grid">{cards}</div>'
            f"{'' if keys else '<p>Nothing like that here.</p>'}",
        )

    async def _picture(self, request: Request) -> Response:
        thing = THINGS.get(request.path_params["key"])
        if thing is None:
            return not_found(STYLE)
        return Response(
            picture(thing.kind, thing.colour, thing.pattern), media_type="image/svg+xml", headers=FRESH
        )

    async def _thing(self, request: Request) -> Response:
        key = request.path_params["key"]
        if key not in THINGS:
            return not_found(STYLE)
        thing, notice, self.notice = THINGS[key], self.notice, ""
        self.viewed.append(key)
        heart = "In favourites" if key in self.favourites else "Add to favourites"
        return self._page(
            thing.title,
            f'<h1>{thing.title}</h1>{notice}<div class="two"><div class="card"><img style="height:300px" '
            f'src="/picture/{key}.svg" alt="Photo"></div><div>'
            f'<p><b>${thing.price}</b>, sold by {thing.seller}</p><form class="bar" method="post" '
            f'action="/thing/{key}/favourite"><button>{heart}</button></form>'
            f'<form class="bar" method="post" action="/thing/{key}/reserve"><button>Reserve</button><a '
            f'href="/thing/{key}/buy">Buy now</a></form>'
            f'<form method="post" action="/thing/{key}/offer"><label for="a">Your offer in dollars</label>'
            '<input type="text" id="a" name="amount" size="8"> <button>Send offer</button></form>'
            f'<form method="post" action="/thing/{key}/message"><label for="m">Message to '
            f'{thing.seller}</label><textarea id="m" name="text" rows="3" cols="44"></textarea>'
            "<br><button>Send message</button></form></div></div>",
        )

    def _with_notice(self, key: str, kind: str, words: str) -> Response:
        self.notice = f'<p class="{kind}">{words}</p>'
        return go_to(f"/thing/{key}")

    async def _favourite(self, request: Request) -> Response:
        self.favourites ^= {request.path_params["key"]}
        return go_to(f"/thing/{request.path_params['key']}")

    async def _reserve(self, request: Request) -> Response:
        self.reserved.append(request.path_params["key"])
        return self._with_notice(
            request.path_params["key"], "note", "Reserved for you until tonight. Not bought yet."
        )

    async def _offer(self, request: Request) -> Response:
        key, amount = request.path_params["key"], (await fields(request))["amount"]
        if not (amount.isascii() and amount.isdigit()):
            return self._with_notice(key, "wrong", "Please write the amount in digits only.")
        self.offers.append((key, int(amount)))
        return self._with_notice(
            key, "note", f"Your offer of ${int(amount)} is sent to {THINGS[key].seller}."
        )

    async def _message(self, request: Request) -> Response:
        key = request.path_params["key"]
        self.messages.append((key, (await fields(request))["text"]))
        return self._with_notice(key, "note", f"Your message is sent to {THINGS[key].seller}.")

    async def _buy(self, request: Request) -> Response:
        key = request.path_params["key"]
        if request.method == "POST":
            self.bought.append(key)
            return self._with_notice(key, "note", f"Bought. {THINGS[key].seller} will write to you.")
        return self._page(
            "Confirm",
            f'<h1>Buy this?</h1><p>{THINGS[key].title}, ${THINGS[key].price}</p><form method="post" '
            f'action="/thing/{key}/buy">'
            f'<button>Confirm purchase</button></form><p><a href="/thing/{key}">Cancel</a></p>',
        )
