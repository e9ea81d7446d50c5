"""Deskhand, an office tool in a frame: incidents, a list of assets, a catalogue to order from."""

from dataclasses import dataclass, field
from html import escape

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tools.sample_recorder.sites.base import choices, fields, go_to, page

PEOPLE = ("", "Ana Silva", "Dana Reyes", "Dan Reed", "Tom Okoro")
URGENCIES = ("Low", "Medium", "High")
COLOURS = ("Black", "Grey", "Green")
FIRST_INCIDENT = 4801
ASSETS = (
    ("Laptop A12", "Leeds", "In use"),
    ("Laptop A13", "Leeds", "In stock"),
    ("Laptop B07", "Porto", "In use"),
    ("Monitor 27-1", "Leeds", "In use"),
    ("Monitor 27-2", "Porto", "In stock"),
    ("Monitor 27-3", "Leeds", "Retired"),
    ("Phone 310", "Leeds", "In use"),
    ("Phone 311", "Porto", "In use"),
    ("Phone 312", "Lund", "In use"),
    ("Projector 2", "Lund", "In stock"),
    ("Scanner 5", "Leeds", "In stock"),
    ("Tablet 40", "Leeds", "In use"),
    ("Tablet 41", "Lund", "In use"),
    ("Tablet 42", "Porto", "Retired"),
)
"""The name, place and state of each asset; four assets are in use in Leeds."""
STYLE = """
body { background: #fff; color: #2a2438; } header { background: #4a3b6b; color: #fff; padding: 12px 28px;
display: flex; gap: 28px; }
iframe { border: 0; width: 1240px; height: 640px; margin: 8px 20px; display: block; } button { background:
#4a3b6b; }
td, th { padding: 4px 40px 4px 0; } .bar { display: flex; gap: 14px; align-items: end; margin-bottom: 8px; }
"""


@dataclass
class Office:
    """The tool's state for one worker."""

    incidents: list[dict[str, str]] = field(default_factory=list)
    filters: list[tuple[str, str]] = field(default_factory=list)
    orders: list[tuple[str, str]] = field(default_factory=list)

    def app(self) -> Starlette:
        """Return the site. Each of its parts has an outer page, which shows the part in a frame."""
        return Starlette(
            routes=[
                Route("/", self._outer),
                Route("/{part:str}", self._outer),
                Route("/frame/start", self._start),
                Route("/frame/incident", self._incident, methods=["GET", "POST"]),
                Route("/frame/incident/done", self._incident_done),
                Route("/frame/assets", self._assets),
                Route("/frame/catalogue", self._catalogue),
                Route("/frame/catalogue/mat", self._mat, methods=["GET", "POST"]),
            ]
        )

    async def _outer(self, request: Request) -> Response:
        part = request.path_params.get("part", "start")
        part = part if part in ("incident", "assets", "catalogue") else "start"
        return page(
            "Deskhand",
            '<header><strong>Deskhand</strong><a href="/incident">New incident</a><a href="/assets">'
            "Assets</a>"
            f'<a href="/catalogue">Catalogue</a></header><iframe title="Work area" src="/frame/{part}">'
            "</iframe>",
            STYLE,
        )

    def _inner(self, title: str, body: str) -> Response:
        return page(title, f"<main><h1>{title}</h1>{body}</main>", STYLE)

    async def _start(self, request: Request) -> Response:
        return self._inner("Welcome back", "<p>Choose a part of the tool above.</p>")

    async def _incident(self, request: Request) -> Response:
        sent = await fields(request) if request.method == "POST" else {}
        if sent.get("assigned"):
            self.incidents.append(sent)
            return go_to("/frame/incident/done")
        wrong = '<p class="wrong">Assigned to: this field has to be filled.</p>' if sent else ""
        value = {name: escape(sent.get(name, "")) for name in ("short", "urgency", "notes")}
        return self._inner(
            "New incident",
            f'{wrong}<form method="post" action="/frame/incident"><label for="s">Short description</label>'
            f'<input type="text" id="s" name="short" size="60" value="{value["short"]}"><label for="u">'
            "Urgency</label>"
            f'<select id="u" name="urgency">{choices(URGENCIES, value["urgency"])}</select><label for="a">'
            "Assigned to</label>"
            f'<select id="a" name="assigned">{choices(PEOPLE)}</select><label for="n">Notes</label>'
            f'<textarea id="n" name="notes" rows="4" cols="60">{value["notes"]}</textarea><p><button>'
            "Submit</button></p></form>",
        )

    async def _incident_done(self, request: Request) -> Response:
        number = FIRST_INCIDENT + len(self.incidents) - 1
        return self._inner("Incident created", f'<p class="note">Incident INC{number} is created.</p>')

    async def _assets(self, request: Request) -> Response:
        place, state = request.query_params.get("place", ""), request.query_params.get("state", "")
        if request.query_params:
            self.filters.append((place, state))
        rows = "".join(
            f"<tr><td>{name}</td><td>{at}</td><td>{is_now}</td></tr>"
            for name, at, is_now in ASSETS
            if place in ("", at) and state in ("", is_now)
        )
        return self._inner(
            "Assets",
            '<form action="/frame/assets" class="bar"><div><label for="p">Place</label><select id="p" '
            'name="place">'
            f'{choices(("", "Leeds", "Lund", "Porto"), place)}</select></div><div><label for="s">'
            "State</label>"
            f'<select id="s" name="state">{choices(("", "In use", "In stock", "Retired"), state)}</select>'
            "</div>"
            "<button>Apply filter</button></form><table><tr><th>Asset</th><th>Place</th><th>State</th>"
            f"</tr>{rows}</table>",
        )

    async def _catalogue(self, request: Request) -> Response:
        return self._inner(
            "Catalogue",
            '<ul><li><a href="/frame/catalogue/mat">Desk mat</a></li><li>Foot rest (sold out)</li><li>'
            "Headset (sold out)</li></ul>",
        )

    async def _mat(self, request: Request) -> Response:
        if request.method == "POST":
            sent = await fields(request)
            self.orders.append((sent["colour"], sent["count"]))
            return go_to("/frame/catalogue/mat")
        notice = f'<p class="note">Requests sent: {len(self.orders)}</p>' if self.orders else ""
        return self._inner(
            "Desk mat",
            '<p>A soft mat, 80 by 40 cm.</p><form method="post" action="/frame/catalogue/mat"><label '
            'for="c">Colour</label>'
            f'<select id="c" name="colour">{choices(COLOURS)}</select><label for="n">How many</label>'
            f'<select id="n" name="count">{choices("12345")}</select><p><button>Order now</button></p>'
            f"</form>{notice}",
        )
