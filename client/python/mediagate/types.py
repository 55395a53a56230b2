"""The gateway's answers as Python values. The field raw holds the whole answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any


@dataclass(frozen=True)
class Failure:
    """Why a task failed."""

    code: str
    message: str
    retryable: bool


@dataclass(frozen=True)
class Source:
    """An input that is a file of another task."""

    task_id: str
    #: The number of the file, from 1.
    file: int
    #: The field of the request, such as image_urls[0].
    field: str
    #: The status of that task, or "erased".
    status: str


@dataclass(frozen=True)
class File:
    """A file that a task made."""

    #: The number of the file, from 1, as in file_of.
    n: int
    #: A link that works without a key.
    url: str
    media_type: str | None = None
    #: In bytes, if it is known.
    size: int | None = None
    #: When the link expires.
    expires_at: datetime | None = None


@dataclass(frozen=True)
class Task:
    """A task, as it was when the gateway answered."""

    id: str
    #: pending, processing, completed, failed or cancelled.
    status: str
    model: str = ""
    #: video, image, music or art.
    type: str = ""
    #: 0 to 100.
    progress: int = 0
    #: The amount charged, in the gateway's currency.
    cost: Decimal = Decimal(0)
    estimated_cost: Decimal = Decimal(0)
    reference: str | None = None
    #: Unix seconds, like completed. completed is the time of the end, whatever the status.
    created: int | None = None
    completed: int | None = None
    error: Failure | None = None
    #: The inputs that are files of other tasks.
    sources: tuple[Source, ...] = ()
    #: The files of a completed task.
    files: tuple[File, ...] = ()
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def ended(self) -> bool:
        """Whether the task is completed, failed or cancelled."""
        return self.status in ("completed", "failed", "cancelled")


@dataclass(frozen=True)
class Event:
    """The content of a webhook.

    It is an event that an endpoint of the account receives, or the end of a task that the task's
    callback receives.
    """

    #: task.completed, task.failed, task.cancelled, balance.low, key.quota_low or test. More types may be added.
    type: str
    #: The data of the event. For a task event it is the task as it came.
    data: Mapping[str, Any]
    #: The task, for types that begin with "task.".
    task: Task | None = None
    #: When the event happened (RFC 3339). A callback has no timestamp.
    timestamp: str | None = None


@dataclass(frozen=True)
class Model:
    """A model that the key may use."""

    id: str
    #: video, image or audio.
    category: str
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class Quote:
    """The most that a request can cost."""

    #: In the currency, with at most six decimals.
    cost: Decimal
    credits_cost: Decimal
    currency: str
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


def read_task(value: Any) -> Task:
    """Read a task of the API or of a webhook. Raise ValueError for any other value."""
    if not isinstance(value, dict) or not value.get("id") or not value.get("status"):
        raise ValueError("this is no task")
    try:
        return Task(
            id=str(value["id"]),
            status=str(value["status"]),
            model=str(value.get("model") or ""),
            type=str(value.get("type") or ""),
            progress=int(value.get("progress") or 0),
            cost=amount(value.get("cost")),
            estimated_cost=amount(value.get("estimated_cost")),
            reference=value.get("reference"),
            created=value.get("created"),
            completed=value.get("completed"),
            error=_failure(value.get("error")),
            sources=tuple(Source(s["task_id"], s["file"], s["field"], s["status"]) for s in value.get("sources") or ()),
            files=tuple(_files(value.get("result") or {})),
            raw=value,
        )
    except (AttributeError, KeyError, TypeError, ArithmeticError) as error:
        raise ValueError(f"this is no task: {error!r}") from error


def amount(value: Any) -> Decimal:
    """Read an amount. The shortest text of a float is the number in the answer."""
    return Decimal(str(value or 0))


def _failure(value: Any) -> Failure | None:
    if not value:
        return None
    return Failure(str(value.get("code", "")), str(value.get("message", "")), bool(value.get("retryable")))


def _files(result: dict[str, Any]) -> list[File]:
    files: list[File] = []
    for kind in ("images", "videos", "audios"):
        for item in result.get(kind) or ():
            expires = item.get("expires_at")
            urls = item["url"]
            if not isinstance(urls, list) or not all(isinstance(url, str) for url in urls):
                raise TypeError("url is no list of links")
            for url in urls:
                files.append(
                    File(
                        n=len(files) + 1,
                        url=url,
                        media_type=item.get("mime_type"),
                        size=item.get("size_bytes"),
                        expires_at=None if expires is None else datetime.fromtimestamp(expires, timezone.utc),
                    )
                )
    return files


def is_id(value: Any) -> bool:
    """Whether the value has the form of a gateway's id, which is safe in file names and shells."""
    return isinstance(value, str) and re.fullmatch("[A-Za-z0-9_]+", value) is not None
