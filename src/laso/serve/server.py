"""The server of the page: on the loopback, at a free port, with a token of its own."""

from __future__ import annotations

import secrets
import socket
import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from laso.serve.workbench import Workbench

HOST = "127.0.0.1"
SWITCH = 0.001  # seconds after which a thread lets others go on


def check_installed() -> None:
    """Raise ModuleNotFoundError with the command that installs what the server needs."""
    try:
        import starlette
        import uvicorn  # noqa: F401
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"the package {error.name} is not there: python -m pip install 'laso[serve]'",
            name=error.name,
        ) from error
    del starlette


class PageServer:
    """Serves a workbench until ``close``.

    Parameters
    ----------
    bench : Workbench
        What is served.
    port : int, default=0
        The port; 0: a free one.
    """

    def __init__(self, bench: Workbench, *, port: int = 0) -> None:
        check_installed()
        import uvicorn

        from laso.serve.app import make_app

        # asyncio sends without delay by sockets that say they are TCP only.
        tcp = socket.IPPROTO_TCP
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, tcp)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind((HOST, port))
        self.port = int(self._socket.getsockname()[1])
        self.token = secrets.token_urlsafe(24)
        app: Any = make_app(bench, token=self.token, port=self.port)
        config = uvicorn.Config(
            app, log_level="error", access_log=False, lifespan="off", server_header=False
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, name="laso-serve", daemon=True)

    @property
    def address(self) -> str:
        """The address to open, which has the token."""
        return f"http://{HOST}:{self.port}/?token={self.token}"

    def start(self) -> None:
        """Serve in a thread, from now on."""
        sys.setswitchinterval(SWITCH)
        self._socket.listen(128)
        self._thread.start()

    def _run(self) -> None:
        self._server.run(sockets=[self._socket])

    def wait(self) -> None:
        """Return when the server has ended; Ctrl-C raises KeyboardInterrupt."""
        while self._thread.is_alive():
            self._thread.join(0.2)

    def close(self) -> None:
        """End the server."""
        self._server.should_exit = True
        self._thread.join(5)
        self._socket.close()
