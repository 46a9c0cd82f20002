"""The workbench over HTTP: who may ask, how much, and for what."""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from laso.errors import LasoError, cut
from laso.pictures.marks import STYLE, style
from laso.serve.workbench import VERSION, Json, NotReady, Workbench

MOST_BYTES = 4_000_000  # of a request
SHORT = 20_000  # bytes of a request for predictions that are made at once, in the event loop
TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class Refused(Exception):
    """A request that is not answered: its status and the reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Guard:
    """Lets in requests to this host, from this page, by those who know the token.

    The token comes in the first address, goes into a cookie, and leaves the address bar by a
    redirect. Programs send it as ``Authorization: Bearer TOKEN``.
    """

    def __init__(self, app: Any, *, token: str, port: int) -> None:
        self._app, self._token = app, token
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self._cookie = f"laso-{port}"

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        try:
            response = self._checked(request)
        except Refused as refused:
            response = as_json({"error": str(refused)}, refused.status)
        if response is not None:
            await response(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _checked(self, request: Request) -> Response | None:
        """Return the redirect for an address with the token; raise Refused for a bad request."""
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        if host not in self._hosts:
            raise Refused(421, "found another host, expected the address that laso serve printed")
        if origin is not None and origin.removeprefix("http://") not in self._hosts:
            raise Refused(403, "found a request of another page, which gets no answer")
        given = request.query_params.get("token")
        if request.url.path == "/" and given is not None and self._is_token(given):
            response = RedirectResponse("/", 303, HEADERS)
            response.set_cookie(self._cookie, self._token, httponly=True, samesite="strict")
            return response
        known = request.cookies.get(self._cookie, "")
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        if not self._is_token(known) and not (scheme == "Bearer" and self._is_token(bearer)):
            raise Refused(403, "found no valid token, expected the address that laso serve printed")
        return None

    def _is_token(self, given: str) -> bool:
        return secrets.compare_digest(given.encode(), self._token.encode())


def as_json(content: Json, status: int = 200) -> Response:
    """Return an answer with the version of the format."""
    text = json.dumps({"version": VERSION, **content}, ensure_ascii=False, default=_plain)
    return Response(text.encode("utf-8", "replace"), status, HEADERS, "application/json")


def _plain(value: Any) -> Any:
    """Return what JSON has no form for as something that it has."""
    for name in ("as_json", "tolist"):
        if hasattr(value, name):
            return getattr(value, name)()
    return sorted(value) if isinstance(value, (set, frozenset)) else str(value)


async def body_of(request: Request) -> tuple[Json, int]:
    """Return the JSON of a request that is not too long, and its length."""
    kind = request.headers.get("content-type", "").partition(";")[0]
    if kind != "application/json":
        raise Refused(415, f"found the content type {kind!r}, expected application/json")
    data = bytearray()
    async for part in request.stream():
        data += part
        if len(data) > MOST_BYTES:
            raise Refused(413, f"found a request of more than {MOST_BYTES} bytes, expected less")
    try:
        content = json.loads(bytes(data))
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"found no JSON: {error}") from None
    if not isinstance(content, dict):
        raise Refused(400, "found no JSON object, expected one")
    return content, len(data)


def answered(operation: Callable[[Json], Json], *, quick: bool = False) -> Any:
    """Return an endpoint for an operation of the workbench; a ``quick`` one needs no thread."""

    async def endpoint(request: Request) -> Response:
        try:
            content, length = ({}, 0) if request.method == "GET" else await body_of(request)
            if quick and length <= SHORT:
                return as_json(operation(content))
            return as_json(await run_in_threadpool(operation, content))
        except Refused as refused:
            return as_json({"error": str(refused)}, refused.status)
        except NotReady as error:
            return as_json({"error": str(error)}, 503)
        except (LasoError, ValueError, TypeError, KeyError, IndexError) as error:
            logging.getLogger("laso").debug("a request failed", exc_info=error)
            return as_json({"error": cut(str(error) or type(error).__name__)}, 400)

    return endpoint


def download(name: str, content: Callable[[], str | bytes]) -> Any:
    """Return an endpoint that sends a file."""

    async def endpoint(request: Request) -> Response:
        data = await run_in_threadpool(content)
        told = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(data, 200, {**HEADERS, **told}, "application/octet-stream")

    return endpoint


def page_files() -> dict[str, tuple[bytes, str]]:
    """Return the files of the page by their paths, with their types."""
    found = {f"/{STYLE}": (style().encode(), TYPES["css"])}
    for file in files("laso.serve").joinpath("page").iterdir():
        ending = file.name.rpartition(".")[2]
        if ending in TYPES:
            path = "/" if file.name == "index.html" else f"/{file.name}"
            found[path] = (file.read_bytes(), TYPES[ending])
    return found


def make_app(bench: Workbench, *, token: str, port: int) -> Guard:
    """Return the application for a workbench, at a port, for those who know the token."""

    def sent(data: bytes, kind: str) -> Any:
        async def endpoint(request: Request) -> Response:
            return Response(data, 200, HEADERS, kind)

        return endpoint

    routes = [Route(path, sent(*file)) for path, file in page_files().items()]
    routes += [
        Route("/about", answered(lambda _: bench.about())),
        Route("/predict", answered(bench.predict, quick=True), methods=["POST"]),
        Route("/training", answered(bench.watched.since), methods=["POST"]),
        Route("/model.laso", download("model.laso", bench.model_file)),
        Route("/corrections", download("corrections.txt", bench.corrections)),
    ]
    operations = ("look", "explain", "rescue", "teach", "undo", "save", "compare", "export")
    routes += [
        Route(f"/{name}", answered(getattr(bench, name)), methods=["POST"]) for name in operations
    ]
    return Guard(Starlette(routes=routes), token=token, port=port)
