"""Who may call what: a line a route, and a line a page handler. A new one fails `test_permissions` until it
is placed here. On a Space; without one, whoever reaches the server is believed their name.
"""

ACTORS = ("anonymous", "submitter", "another", "maintainer", "expired")
"""``submitter`` sent the recorded submission, ``another`` did not; the token of ``expired`` was revoked."""

ROUTES = """
# method path                                          anonymous submitter another maintainer expired
# The board and what is read beside it: anyone, and a bad token changes nothing
GET  /                                                 200 =
GET  /compare                                          200 =
GET  /suites                                           200 =
GET  /judge                                            200 =
GET  /my-agent                                         200 =
GET  /rates                                            200 =
GET  /validate                                         200 =
GET  /trajectories                                     200 =
GET  /paper                                            404 =
GET  /board/rows                                       200 =
GET  /about                                            200 =
GET  /submit                                           200 =
GET  /gradio.js                                        200 =
GET  /api                                              200 =
GET  /api/openapi.json                                 200 =
GET  /api/board.json                                   200 =
GET  /api/board                                        200 =
GET  /api/board.csv                                    200 =
GET  /api/judges                                       200 =
GET  /api/suites                                       200 =
GET  /api/parts                                        422 =
GET  /api/boards                                       200 =
GET  /api/boards/{label_version}                       404 =
POST /api/estimate                                     422 =
POST /my-agent                                         422 =
POST /rates                                            422 =
POST /validate                                         422 =
GET  /api/template                                     200 =
GET  /api/screenshot                                   422 =
GET  /api/goal_image                                   422 =
GET  /api/tree                                         422 =
GET  /trajectories/reasoning                           422 =
GET  /trajectories/steps                               422 =
GET  /bundles/{name}                                      404 =
GET  /healthz                                          200 =
GET  /readyz                                           200 =
POST /api/check                                        422 =

# Who one is (no sign-in is set up here, so that it answers 503: its ways are tested in `auth/`)
GET  /api/me                                           200 200 200 200 401
GET  /sign-in                                          303 =
POST /sign-in                                          404 =
POST /sign-out                                         403 =
GET  /login/start                                      503 =
GET  /login/callback                                   503 =

# Annotating: nobody is invited here; a maintainer may look on, and runs the discussion
GET  /annotate                                         401 403 403 200 401
GET  /discuss                                          401 403 403 200 401
GET  /api/annotate                                     401 403 403 403 401
GET  /api/annotate/answers                             401 403 403 403 401
PUT  /api/annotate/answers                             401 403 403 403 401
GET  /api/annotate/screenshot                          401 403 403 422 401
GET  /api/annotate/goal_image                          401 403 403 422 401
GET  /api/annotate/tree                                401 403 403 422 401
GET  /api/discuss                                      401 403 403 200 401
GET  /api/discuss/agreement                            401 403 403 200 401
POST /api/discuss/decisions                            401 403 403 422 401
POST /api/discuss/invite                               401 403 403 422 401
POST /api/discuss/uninvite                             401 403 403 422 401
POST /api/discuss/gold                                 401 403 403 422 401
POST /api/discuss/rule                                 401 403 403 422 401
POST /api/discuss/assign                               401 403 403 409 401
POST /api/discuss/publish                              401 403 403 422 401

# Disputes, errors of judges, label versions: all may read, whoever is known may add
GET  /disputes                                         200 =
GET  /errors                                           200 =
GET  /labels                                           200 =
GET  /api/disputes                                     200 =
GET  /api/errors                                       422 =
GET  /api/errors.csv                                   200 =
POST /api/disputes                                     401 422 422 422 401
POST /api/errors                                       401 422 422 422 401
POST /api/maintain/disputes/{dispute_id}               401 403 403 422 401

# MCP: its tools answer for themselves (400: no JSON was sent along)
POST /mcp                                              400 =

# Submitting: whoever is known (422: no file was sent along)
POST /api/submissions                                  401 422 422 422 401

# One's own: those of others and those that there are none of get one answer (x is none)
GET  /mine                                             401 200 200 200 401
GET  /mine/{submission_id}                             401 403 403 404 401
GET  /api/submissions/{submission_id}                  401 403 403 404 401
POST /api/submissions/{submission_id}/withdraw         401 403 403 404 401
POST /api/submissions/{submission_id}/publish          401 409 409 409 401
POST /api/submissions/{submission_id}/refresh          401 409 409 409 401
POST /api/judges/rename                                401 422 422 422 401
GET  /api/sessions                                     401 200 200 200 401
POST /api/sessions/end                                 401 422 422 422 401
GET  /api/allowance                                    401 200 200 200 401

# Maintainers (422: no decision was sent along)
GET  /metrics                                          404 404 404 200 404
GET  /maintain                                         403 403 403 200 403
POST /api/maintain/submissions/{submission_id}         401 403 403 422 401
POST /api/maintain/accounts/{name:path}                401 403 403 422 401
POST /api/maintain/rescore                             401 403 403 202 401
GET  /api/maintain/rescore                             401 403 403 200 401
GET  /api/maintain/labels                              401 403 403 200 401
POST /api/maintain/labels                              401 403 403 422 401
GET  /api/maintain/log                                 401 403 403 200 401

# Gradio's own: what the page /submit and gradio_client use
GET  /config                                           200 =
GET  /theme.css                                        200 =
GET  /static/{path:path}                               404 =
GET  /assets/{path:path}                               404 =
GET  /favicon.ico                                      200 =
GET  /robots.txt                                       200 =
POST /gradio_api/upload                                422 =
GET  /gradio_api/upload_progress                       200 =
POST /gradio_api/queue/join                            422 =
GET  /gradio_api/queue/data                            422 =
POST /gradio_api/reset                                 422 =
POST /gradio_api/cancel                                422 =
GET  /gradio_api/info                                  200 =
GET  /gradio_api/app_id                                200 =

# Gradio's own: closed
GET  /svelte/{path:path}                               404 =
GET  /manifest.json                                    404 =
GET  /pwa_icon                                         404 =
GET  /pwa_icon/{size}                                  404 =
GET  /openapi.json                                     404 =
GET  /gradio_api/queue/status                          404 =
GET  /gradio_api/heartbeat/{session_hash}              404 =
GET  /gradio_api/startup-events                        404 =
GET  /gradio_api/theme.css                             404 =
GET  /gradio_api/openapi.json                          404 =
GET  /gradio_api/user                                  404 =
GET  /gradio_api/token                                 404 =
GET  /gradio_api/login_check                           404 =
POST /login                                            404 =
GET  /logout                                           404 =
GET  /monitoring                                       404 =
GET  /monitoring/summary                               404 =
GET  /monitoring/{key}                                 404 =
GET  /gradio_api/deep_link                             404 =
GET  /gradio_api/dev/reload                            404 =
GET  /gradio_api/runs                                  404 =
GET  /gradio_api/custom_component/{id}/{environment}/{type}/{file_name} 404 =
GET  /gradio_api/proxy={url_path:path}                 404 =
GET  /gradio_api/file={path_or_url:path}               404 =
GET  /gradio_api/file/{path:path}                      404 =
POST /gradio_api/stream/{event_id}                     404 =
POST /gradio_api/stream/{event_id}/close               404 =
GET  /gradio_api/stream/{session_hash}/{run}/{component_id}/playlist.m3u8 404 =
GET  /gradio_api/stream/{session_hash}/{run}/{component_id}/{segment_id}.{ext} 404 =
GET  /gradio_api/stream/{session_hash}/{run}/{component_id}/playlist-file 404 =
POST /gradio_api/api/{api_name}                        404 =
POST /gradio_api/run/{api_name}                        404 =
POST /gradio_api/call/{api_name}                       404 =
POST /gradio_api/call/v2/{api_name}                    404 =
GET  /gradio_api/call/{api_name}/{event_id}            404 =
GET  /gradio_api/call/v2/{api_name}/{event_id}         404 =
POST /gradio_api/component_server                      404 =
POST /gradio_api/process_recording                     404 =
POST /gradio_api/vibe-edit                             404 =
POST /gradio_api/undo-vibe-edit                        404 =
GET  /gradio_api/vibe-code                             404 =
POST /gradio_api/vibe-code                             404 =
POST /gradio_api/vibe-starter-queries                  404 =
"""
"""``=``: the same for all.
Paths with a slash at their end are those without, again."""

QUERIES = {"GET /api/template": {"split": "dev"}}
"""What a call takes along; parts of a path in braces are called ``x``."""

NOT_ALWAYS_THE_SAME = (
    "GET /api/me", "GET /mine", "GET /api/submissions/{submission_id}",
    "GET /api/allowance", "GET /api/sessions", "GET /api/maintain/rescore", "GET /api/maintain/log",
    "GET /api/maintain/labels", "GET /labels",
    "GET /api/annotate", "GET /api/annotate/answers", "GET /api/annotate/screenshot",
    "GET /api/annotate/tree", "GET /api/annotate/goal_image", "GET /api/discuss",
    "GET /api/discuss/agreement",
    "GET /disputes", "GET /api/disputes",
)  # fmt: skip
"""All other answers to GET are the same bytes for every actor who gets the same status."""

HANDLERS = {
    "space.gradio_app.endpoints.add_endpoints.<locals>.check": "anyone",
    "space.gradio_app.endpoints.add_endpoints.<locals>.submit": "signed in",
    "space.gradio_app.endpoints.add_endpoints.<locals>.board": "anyone",
    "space.gradio_app.endpoints.add_endpoints.<locals>.judges": "anyone",
    "space.gradio_app.submit_page.build_form.<locals>.follow": "anyone",
    "space.gradio_app.submit_page.build_form.<locals>.check": "anyone",
    "space.gradio_app.submit_page.build_form.<locals>.submit": "signed in",
}
"""Functions behind the events of pages. ``signed in`` and ``maintainer`` are called as every actor."""


def expected() -> dict[str, tuple[str, ...]]:
    """``METHOD path`` to the status for every actor, in the order of ACTORS."""
    found = {}
    for line in ROUTES.splitlines():
        words = line.split()
        if not words or words[0] == "#":
            continue
        method, path, *statuses = words
        same = len(statuses) == 1 or statuses[1] == "="
        assert same or len(statuses) == len(ACTORS), line
        assert f"{method} {path}" not in found, line
        found[f"{method} {path}"] = (statuses[0],) * len(ACTORS) if same else tuple(statuses)
    return found
