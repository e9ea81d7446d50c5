"""Fernhill Goods, a shop: search, basket, voucher, checkout in two pages, reviews."""

from dataclasses import dataclass, field
from html import escape

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tools.sample_recorder.sites.base import choices, fields, go_to, not_found, page


@dataclass(frozen=True)
class Product:
    """A product, with its price in cents."""

    name: str
    price: int
    stock: int
    colour: str


PRODUCTS = {
    "glass-teapot": Product("Glass teapot", 1600, 0, "#9cc4cf"),
    "blue-mug": Product("Blue enamel mug", 900, 12, "#3d6ea5"),
    "desk-lamp": Product("Desk lamp", 4200, 3, "#d9a441"),
    "stoneware-teapot": Product("Stoneware teapot", 1850, 4, "#8d7b68"),
    "white-mug": Product("White enamel mug", 850, 12, "#dfe3e6"),
    "notebook": Product("Dotted notebook", 620, 30, "#5a7d5a"),
    "iron-teapot": Product("Iron teapot", 3900, 2, "#44484d"),
    "cork-board": Product("Cork board", 1525, 8, "#c79a6b"),
}
VOUCHER = "SPRING10"
FIRST_ORDER = 1001
STYLE = """
body { background: #fbfaf6; color: #26302a; } header { background: #2f5d4a; color: #fff; padding: 12px 28px;
display: flex;
gap: 28px; align-items: center; } header form { margin-left: auto; } button { background: #2f5d4a; }
header button { background: #1e3d31; } .grid { display: grid; grid-template-columns: repeat(4, 1fr); gap:
18px; }
.card { background: #fff; border: 1px solid #e2dfd4; padding: 12px; } .card i { display: block; height:
110px; margin-bottom: 10px; }
.two { display: grid; grid-template-columns: 1fr 1fr; gap: 40px; }
"""


def money(cents: int) -> str:
    """Return an amount of cents in dollars, such as ``$18.50``."""
    return f"${cents // 100}.{cents % 100:02d}"


@dataclass
class Shop:
    """The shop's state for one visitor."""

    basket: dict[str, int] = field(default_factory=dict)
    voucher: bool = False
    message: str = ""
    address: dict[str, str] = field(default_factory=dict)
    orders: list[dict] = field(default_factory=list)
    reviews: list[tuple[str, str, str]] = field(default_factory=list)

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/", self._home),
                Route("/item/{key}", self._item),
                Route("/item/{key}/add", self._add, methods=["POST"]),
                Route("/item/{key}/review", self._review, methods=["POST"]),
                Route("/basket", self._show_basket),
                Route("/basket/voucher", self._use_voucher, methods=["POST"]),
                Route("/checkout", self._checkout, methods=["GET", "POST"]),
                Route("/confirm", self._confirm, methods=["GET", "POST"]),
                Route("/thanks", self._thanks),
            ]
        )

    def total(self) -> int:
        """Return the price of the basket in cents, minus a tenth if the voucher was used."""
        full = sum(PRODUCTS[key].price * count for key, count in self.basket.items())
        return full - full // 10 if self.voucher else full

    def _page(self, title: str, body: str) -> Response:
        count = sum(self.basket.values())
        return page(
            f"{title} - Fernhill Goods",
            '<header><strong>Fernhill Goods</strong><a href="/">All goods</a><a href="/basket">Basket '
            f"({count})</a>"
            '<form action="/"><input type="text" name="q" aria-label="Search goods"> <button>'
            "Search</button></form>"
            f"</header><main>{body}</main>",
            STYLE,
        )

    async def _home(self, request: Request) -> Response:
        query = request.query_params.get("q", "").strip().lower()
        found = [(key, product) for key, product in PRODUCTS.items() if query in product.name.lower()]
        cards = "".join(
            f'<div class="card"><i style="background:{p.colour}"></i><a href="/item/{key}">{p.name}</a><p>'
            f"{money(p.price)}</p></div>"
            for key, p in found
        )
        heading = f"Results for {escape(query)}" if query else "All goods"
        return self._page(
            heading,
            f'<h1>{heading}</h1><div class="grid">{cards}</div>{"" if found else "<p>Nothing found.</p>"}',
        )

    async def _item(self, request: Request) -> Response:
        key = request.path_params["key"]
        if key not in PRODUCTS:
            return not_found(STYLE)
        product = PRODUCTS[key]
        said = "".join(
            f"<p>{escape(stars)} stars: {escape(text)}</p>" for k, stars, text in self.reviews if k == key
        )
        stock = f"{product.stock} in stock" if product.stock else "Out of stock"
        return self._page(
            product.name,
            f'<h1>{product.name}</h1><div class="two"><div class="card"><i '
            f'style="background:{product.colour};height:260px"></i></div><div>'
            f'<p><b>{money(product.price)}</b></p><p>{stock}</p><form method="post" action="/item/{key}/add">'
            f'<label for="n">Quantity</label><select id="n" name="n">{choices("12345")}</select> '
            f"<button{'' if product.stock else ' disabled'}>Add to basket</button></form>"
            f'<h2>Write a review</h2><form method="post" action="/item/{key}/review"><label for="s">'
            "Stars</label>"
            f'<select id="s" name="stars">{choices("54321")}</select><label for="t">Your review</label>'
            '<input type="text" id="t" name="text" size="40"> <button>Post review</button></form></div></div>'
            f'<div style="margin-top:330px"><h2>Reviews</h2>{said or "<p>No reviews yet.</p>"}</div>',
        )

    async def _add(self, request: Request) -> Response:
        key, sent = request.path_params["key"], await fields(request)
        self.basket[key] = self.basket.get(key, 0) + int(sent["n"])
        return go_to(f"/item/{key}")

    async def _review(self, request: Request) -> Response:
        key, sent = request.path_params["key"], await fields(request)
        self.reviews.append((key, sent["stars"], sent["text"]))
        return go_to(f"/item/{key}")

    async def _show_basket(self, request: Request) -> Response:
        rows = "".join(
            f"<tr><td>{PRODUCTS[key].name}</td><td>{count}</td><td>"
            f"{money(PRODUCTS[key].price * count)}</td></tr>"
            for key, count in self.basket.items()
        )
        return self._page(
            "Basket",
            f"<h1>Basket</h1>{self.message}<table><tr><th>Goods</th><th>Quantity</th><th>Price</th></tr>"
            f"{rows}</table>"
            f"<p>Total: <b>{money(self.total())}</b></p>"
            '<form method="post" action="/basket/voucher"><label for="v">Voucher code</label>'
            '<input type="text" id="v" name="code"> <button>Apply voucher</button></form>'
            '<p><a href="/checkout">Go to checkout</a></p>',
        )

    async def _use_voucher(self, request: Request) -> Response:
        self.voucher = (await fields(request))["code"] == VOUCHER
        self.message = (
            '<p class="note">Voucher applied: 10 % off.</p>'
            if self.voucher
            else '<p class="wrong">We do not know this voucher.</p>'
        )
        return go_to("/basket")

    async def _checkout(self, request: Request) -> Response:
        if request.method == "POST":
            self.address = await fields(request)
            return go_to("/confirm")
        lines = "".join(
            f'<label for="{name}">{label}</label><input type="text" id="{name}" name="{name}" size="40">'
            for name, label in (("name", "Full name"), ("street", "Street"), ("town", "Town"))
        )
        return self._page(
            "Checkout",
            f'<h1>Checkout</h1><form method="post" action="/checkout">{lines}'
            '<p><input type="checkbox" id="offers" name="offers" checked> '
            '<label for="offers" style="display:inline">Send me offers by e-mail</label></p><button>'
            "Continue</button></form>",
        )

    async def _confirm(self, request: Request) -> Response:
        if request.method == "POST":
            self.orders.append({"goods": dict(self.basket), "total": self.total(), **self.address})
            self.basket, self.voucher = {}, False
            return go_to("/thanks")
        goods = ", ".join(f"{count} x {PRODUCTS[key].name}" for key, count in self.basket.items())
        return self._page(
            "Check your order",
            f"<h1>Check your order</h1><p>{goods}</p><p>To: "
            f"{escape(', '.join(self.address.get(n, '') for n in ('name', 'street', 'town')))}</p>"
            f"<p>Total: <b>{money(self.total())}</b></p><p>Nothing is ordered yet.</p>"
            '<form method="post" action="/confirm"><button>Place order</button></form>',
        )

    async def _thanks(self, request: Request) -> Response:
        return self._page(
            "Thank you",
            f'<h1>Thank you</h1><p class="note">Order {FIRST_ORDER + len(self.orders) - 1} is placed.</p>',
        )
