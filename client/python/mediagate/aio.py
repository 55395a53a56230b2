"""The client for asyncio. There is one implementation: each call is one of Client's, in a thread of its own."""

from __future__ import annotations

import asyncio
import copy
import inspect
import os
import ssl
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, TypeVar

from .client import Client, Fields, Progress
from .transport import Stop, Stopped
from .types import Model, Quote, Task

T = TypeVar("T")

#: How long a cancelled call may take to end, in seconds. Only the lookup of a host's name takes longer.
_GRACE = 1


class AsyncClient:
    """The methods of Client as coroutines, which raise the same.

    A call that is cancelled ends at once: its connection is shut down. The task goes on, and the
    CancelledError names it. progress runs in the event loop, and may be a coroutine function.
    """

    def __init__(
        self, url: str, key: str, *, strict: bool | None = None, context: ssl.SSLContext | None = None
    ) -> None:
        """Take what Client takes."""
        self._client = Client(url, key, strict=strict, context=context)

    async def models(self, category: str = "") -> list[Model]:
        """List the models of a category (video, image or audio), or all that the key may use."""
        return await self._thread(lambda client: client.models(category))

    async def schema(self, model: str) -> dict[str, Any]:
        """Fetch a model's contract: where its requests go, what they may hold and what they cost."""
        return await self._thread(lambda client: client.schema(model))

    async def quote(self, model: str, fields: Fields, *, endpoint: str | None = None) -> Quote:
        """Ask what a request costs at most. It makes and charges nothing."""
        return await self._thread(lambda client: client.quote(model, fields, endpoint=endpoint))

    async def submit(
        self, model: str, fields: Fields, *, endpoint: str | None = None, idempotency_key: str | None = None
    ) -> str:
        """Have a task made, once, however often the answer is lost, and return its id."""
        return await self._thread(
            lambda client: client.submit(model, fields, endpoint=endpoint, idempotency_key=idempotency_key)
        )

    async def task(self, task_id: str) -> Task:
        """Fetch a task as it is now."""
        return await self._thread(lambda client: client.task(task_id))

    async def wait(self, task_id: str, *, progress: Progress | None = None) -> Task:
        """Wait for the end of a task, and return it as it is then, whether it succeeded or not."""
        heard = _in_loop(progress)
        return await self._thread(lambda client: client.wait(task_id, progress=heard))

    async def run(
        self,
        model: str,
        fields: Fields,
        *,
        endpoint: str | None = None,
        idempotency_key: str | None = None,
        progress: Progress | None = None,
    ) -> Task:
        """Submit a request and wait for the end of its task. One that does not complete is a TaskError."""
        heard = _in_loop(progress)
        return await self._thread(
            lambda client: client.run(
                model, fields, endpoint=endpoint, idempotency_key=idempotency_key, progress=heard
            )
        )

    async def cancel(self, task_id: str) -> Task:
        """Ask for the end of a task. For one that has ended it is a GatewayError with the status 409."""
        return await self._thread(lambda client: client.cancel(task_id))

    async def upload(self, kind: str, file: str | os.PathLike[str] | IO[bytes], name: str | None = None) -> str:
        """Store a file for 72 hours, and return the address that requests may name."""
        return await self._thread(lambda client: client.upload(kind, file, name))

    async def save(self, task: Task, folder: str | os.PathLike[str] = ".") -> list[Path]:
        """Save the files of a completed task in the folder, and return their paths."""
        return await self._thread(lambda client: client.save(task, folder))

    async def call(
        self, method: str, path: str, body: Fields | None = None, headers: Mapping[str, str] | None = None
    ) -> Any:
        """Make a call that may be repeated, and return its answer, or None if it is empty."""
        return await self._thread(lambda client: client.call(method, path, body, headers))

    async def _thread(self, call: Callable[[Client], T]) -> T:
        """Make a call in a thread, which ends with the call or when the caller is cancelled.

        The threads of asyncio.to_thread are few, and waits take minutes.
        """
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        client = copy.copy(self._client)
        client._stop = stop = Stop()

        def work() -> None:
            try:
                result = call(client)
            except BaseException as error:
                settle(done.set_exception, error)
            else:
                settle(done.set_result, result)

        def settle(report: Callable[[Any], None], outcome: object) -> None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(lambda: None if done.done() else report(outcome))

        threading.Thread(target=work, name="mediagate", daemon=True).start()
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            stop.set()
            await asyncio.wait({done}, timeout=_GRACE)
            if not done.done():
                done.cancel()
            elif isinstance(left := done.exception(), Stopped):
                raise asyncio.CancelledError(str(left)) from None
            raise


def _in_loop(progress: Progress | None) -> Progress | None:
    """The function that calls progress in the loop, from the thread of a call, and passes on what it raises."""
    if progress is None:
        return None
    loop, call = asyncio.get_running_loop(), progress

    async def hear(task: Task) -> None:
        result = call(task)
        if inspect.isawaitable(result):
            await result

    return lambda task: asyncio.run_coroutine_threadsafe(hear(task), loop).result()
