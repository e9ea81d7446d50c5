"""Wayfarer, a map of a small town: routes by four means of transport, nearby places, saved routes."""

from dataclasses import dataclass, field
from html import escape

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tools.sample_recorder.sites.base import choices, fields, go_to, page

PLACES = {
    "Airport": (820, 70),
    "Botanic Garden": (610, 330),
    "Cafe Luna": (300, 300),
    "Cafe Mistral": (520, 120),
    "Cafe Sol": (170, 250),
    "Harbour Station": (130, 330),
    "Library": (430, 260),
    "Old Mill": (210, 90),
    "Town Hall": (400, 180),
}
"""The position of each place on the drawn map, in pixels. A pixel is ten metres."""
RIVER = "M 0 400 C 200 380, 300 180, 480 215 S 800 330, 900 240"
METRES_A_MINUTE = {"Car": 800, "Bus": 500, "Bicycle": 350, "On foot": 80}
TUNNEL_DETOUR = 1.4
STYLE = """
body { background: #f3f1ea; color: #22313a; } header { background: #8a4b2a; color: #fff; padding: 12px 28px;
display: flex; gap: 28px; }
button { background: #8a4b2a; } .two { display: grid; grid-template-columns: 300px 1fr; gap: 28px; } svg {
background: #e9e4d4; width: 100%; }
form { margin: 0 0 12px; } select { width: 100%; }
"""


def metres(start: str, end: str) -> int:
    """Return the distance in metres between two places, along streets that meet at right angles."""
    (x1, y1), (x2, y2) = PLACES[start], PLACES[end]
    return 10 * (abs(x1 - x2) + abs(y1 - y2))


def minutes(start: str, end: str, means: str, avoids_tunnel: bool = False) -> int:
    """Return how many minutes a route takes. A bus or car that avoids the tunnel makes a detour."""
    detour = TUNNEL_DETOUR if avoids_tunnel and means in ("Car", "Bus") else 1
    return max(1, round(metres(start, end) * detour / METRES_A_MINUTE[means]))


def drawing(start: str = "", end: str = "", zoom: int = 0) -> str:
    """Return the map as SVG, with the route if ``start`` and ``end`` are given."""
    dots = "".join(
        f'<circle cx="{x}" cy="{y}" r="6" fill="#22313a"/><text x="{x + 10}" y="{y + 5}" font-size="15">'
        f"{name}</text>"
        for name, (x, y) in PLACES.items()
    )
    line = ""
    if start and end:
        (x1, y1), (x2, y2) = PLACES[start], PLACES[end]
        corners = f"{x1},{y1} {x2},{y1} {x2},{y2}"
        line = f'<polyline points="{corners}" fill="none" stroke="#c0392b" stroke-width="5"/>'
    left, top = 60 * zoom, 28 * zoom
    box = f"{left} {top} {960 - 2 * left} {440 - 2 * top}"
    return (
        f'<svg viewBox="{box}" shape-rendering="crispEdges" role="img" aria-label="Map of the town">'
        f'<path d="{RIVER}" fill="none" stroke="#9cc4d8" stroke-width="26"/>{line}{dots}</svg>'
    )


@dataclass
class Wayfarer:
    """The map's state for one visitor; a saved route is (from, to, means, avoids the tunnel)."""

    saved: dict[str, tuple[str, str, str, bool]] = field(
        default_factory=lambda: {"Home to office": ("Library", "Town Hall", "On foot", False)}
    )

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/", self._route),
                Route("/nearby", self._nearby),
                Route("/saved", self._show_saved),
                Route("/saved/add", self._save, methods=["POST"]),
                Route("/saved/delete", self._delete, methods=["POST"]),
            ]
        )

    def _page(self, title: str, body: str) -> Response:
        return page(
            f"{title} - Wayfarer",
            '<header><strong>Wayfarer</strong><a href="/">Routes</a><a href="/nearby">Nearby</a>'
            f'<a href="/saved">Saved routes</a></header><main>{body}</main>',
            STYLE,
        )

    async def _route(self, request: Request) -> Response:
        asked = request.query_params
        start, end, means = asked.get("from", ""), asked.get("to", ""), asked.get("by", "Car")
        avoids, zoom = "tunnel" in asked, min(int(asked.get("zoom", "0")), 3)
        is_route = start in PLACES and end in PLACES and means in METRES_A_MINUTE
        found = self._found(start, end, means, avoids) if is_route else ""
        form = (
            '<form action="/"><label for="f">From</label><select id="f" name="from">'
            f"{choices(PLACES, start)}</select>"
            f'<label for="t">To</label><select id="t" name="to">{choices(PLACES, end)}</select>'
            f'<label for="b">By</label><select id="b" name="by">{choices(METRES_A_MINUTE, means)}</select>'
            f'<p><input type="checkbox" id="a" name="tunnel"{" checked" if avoids else ""}> '
            '<label for="a" style="display:inline">Avoid the tunnel</label></p><button>Find route</button>'
            "</form>"
        )
        chart = drawing(start, end, zoom) if is_route else drawing(zoom=zoom)
        closer = (
            f'<p><a href="/?zoom={zoom + 1}">Zoom in</a> <a href="/?zoom={max(0, zoom - 1)}">Zoom out</a></p>'
        )
        return self._page(
            "Routes", f'<div class="two"><div>{form}{found}</div><div>{chart}{closer}</div></div>'
        )

    def _found(self, start: str, end: str, means: str, avoids: bool) -> str:
        time = minutes(start, end, means, avoids)
        hidden = "".join(
            f'<input type="hidden" name="{name}" value="{value}">'
            for name, value in (
                ("from", start),
                ("to", end),
                ("by", means),
                ("tunnel", "yes" if avoids else ""),
            )
        )
        return (
            f'<p class="note">{means}, {metres(start, end) / 1000:.1f} km: {time} min</p>'
            f'<form method="post" action="/saved/add">{hidden}<label for="n">Save as</label>'
            '<input type="text" id="n" name="name" oninput="this.form.querySelector(\'button\').disabled = '
            '!this.value"> '
            "<button disabled>Save route</button></form>"
        )

    async def _nearby(self, request: Request) -> Response:
        place, kind = request.query_params.get("place", ""), request.query_params.get("kind", "")
        if kind == "Cafe" and place in PLACES:
            rows = "".join(
                f"<tr><td>{name}</td><td>{metres(place, name)} m</td></tr>"
                for name in PLACES
                if name.startswith(kind)
            )
            found = f"<table><tr><th>Place</th><th>On foot</th></tr>{rows}</table>"
        elif place:
            found = '<p class="wrong">Choose what to look for.</p>'
        else:
            found = ""
        return self._page(
            "Nearby",
            '<h1>What is near?</h1><div class="two"><form action="/nearby"><label for="p">Place</label>'
            '<select id="p" name="place">'
            f'{choices(PLACES, place)}</select><label for="k">Look for</label><select id="k" name="kind">'
            f"{choices(('', 'Cafe', 'Museum'), kind)}"
            f"</select><p><button>Show</button></p></form><div>{found}</div></div>",
        )

    async def _show_saved(self, request: Request) -> Response:
        rows = "".join(
            f"<tr><td>{escape(name)}</td><td>{start} to {end}, "
            f"{means}{', no tunnel' if avoids else ''}</td><td>"
            '<form method="post" action="/saved/delete"><input type="hidden" name="name" '
            f'value="{escape(name)}">'
            f'<button aria-label="Delete {escape(name)}">Delete</button></form></td></tr>'
            for name, (start, end, means, avoids) in self.saved.items()
        )
        return self._page("Saved routes", f"<h1>Saved routes</h1><table>{rows}</table>")

    async def _save(self, request: Request) -> Response:
        sent = await fields(request)
        self.saved[sent["name"]] = (sent["from"], sent["to"], sent["by"], bool(sent["tunnel"]))
        return go_to("/saved")

    async def _delete(self, request: Request) -> Response:
        self.saved.pop((await fields(request))["name"], None)
        return go_to("/saved")
