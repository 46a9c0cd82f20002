"""Ask ``laso serve`` for predictions at a rate, while one client teaches; print the latencies.

    python tools/load_test.py --rate 500 --seconds 10 --clients 8

Server and clients talk over the loopback only. The server has one core to itself where the machine
has two; a request that is due while its client still waits for the last answer counts from when it
was due.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from urllib.parse import parse_qs, urlsplit

SENTENCE = "The old man can see a can of fish ."
LESSON = ["B-NP", "I-NP", "I-NP", "B-VP", "I-VP", "B-NP", "I-NP", "B-PP", "B-NP", "O"]


def started(cores: list[int]) -> tuple[subprocess.Popen[str], int, str]:
    """Return the server on its core, its port and its token, when its model is trained."""
    process = subprocess.Popen(
        [sys.executable, "-m", "laso", "serve", "--no-open"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "NUMBA_NUM_THREADS": "1"},
    )
    if len(cores) > 1:
        os.sched_setaffinity(process.pid, {cores[-1]})
        os.sched_setaffinity(0, {cores[0]})
    assert process.stdout is not None
    address = urlsplit(process.stdout.readline().split()[1])
    return process, int(address.port or 0), parse_qs(address.query)["token"][0]


class Client:
    """A connection that stays open."""

    def __init__(self, port: int, token: str) -> None:
        self.port, self.token = port, token

    async def open(self) -> None:
        """Connect."""
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)

    async def ask(self, path: str, content: object) -> tuple[int, bytes]:
        """Return status and body of the answer."""
        body = json.dumps(content).encode()
        self.writer.write(
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n"
            f"Authorization: Bearer {self.token}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        head = (await self.reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.partition(b"content-length: ")[2].partition(b"\r")[0])
        return int(head.split()[1]), await self.reader.readexactly(length)


async def ready(client: Client) -> None:
    """Wait until the model is trained, and until what requests need is compiled."""
    await client.open()
    while (await client.ask("/predict", {"text": SENTENCE}))[0] != 200:
        await asyncio.sleep(0.2)
    lesson = {"text": SENTENCE, "output": LESSON}
    for path, content in (("/teach", lesson), ("/undo", {})):
        status, body = await client.ask(path, content)
        assert status == 200, body


async def asking(client: Client, due: list[float], latencies: list[float]) -> None:
    """Ask for predictions at the times that are due."""
    await client.open()
    for moment in due:
        await asyncio.sleep(max(0.0, moment - time.perf_counter()))
        status, body = await client.ask("/predict", {"text": SENTENCE})
        latencies.append(time.perf_counter() - moment)
        assert status == 200, body


async def teaching(client: Client, until: float, pause: float) -> int:
    """Teach and undo; return how often."""
    await client.open()
    lessons = 0
    await asyncio.sleep(min(pause, max(0.0, until - time.perf_counter())))
    while time.perf_counter() < until:
        for path, content in (("/teach", {"text": SENTENCE, "output": LESSON}), ("/undo", {})):
            status, body = await client.ask(path, content)
            assert status == 200, body
        lessons += 1
        await asyncio.sleep(min(pause, max(0.0, until - time.perf_counter())))
    return lessons


async def measured(port: int, token: str, given: argparse.Namespace) -> dict[str, float]:
    """Return the latencies in milliseconds, by quantile."""
    await ready(Client(port, token))
    n = int(given.rate * given.seconds)
    begin = time.perf_counter() + 0.2
    due = [begin + i / given.rate for i in range(n)]
    askers = given.clients - 1
    latencies: list[float] = []
    tasks = [asking(Client(port, token), due[i::askers], latencies) for i in range(askers)]
    teacher = teaching(Client(port, token), due[-1], given.pause)
    *_, lessons = await asyncio.gather(*tasks, teacher)
    seconds = time.perf_counter() - begin
    ranked = sorted(latencies)
    quantiles = {f"p{q}": round(1000 * ranked[min(n - 1, n * q // 100)], 2) for q in (50, 90, 99)}
    return {
        "requests": n,
        "per second": round(n / seconds, 1),
        "clients": given.clients,
        "lessons": lessons,
        **quantiles,
        "largest": round(1000 * ranked[-1], 2),
    }


def main() -> None:
    """Start the server, ask, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=500.0)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--pause", type=float, default=0.5, help="seconds between two lessons")
    given = parser.parse_args()
    process, port, token = started(sorted(os.sched_getaffinity(0)))
    try:
        print(json.dumps(asyncio.run(measured(port, token, given)), indent=1))
    finally:
        process.terminate()
        process.wait(10)


if __name__ == "__main__":
    main()
