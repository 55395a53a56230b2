"""Webhooks, signed as https://www.standardwebhooks.com defines it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Iterable, Mapping

from .errors import WebhookError
from .types import Event, read_task

#: How far the clocks of gateway and receiver may differ, in seconds.
_TOLERANCE = 300


def verify_webhook(
    secret: str, headers: Mapping[str, str] | Iterable[tuple[str, str]], body: bytes | str
) -> Event:
    """Verify a webhook and return its event.

    The secret (whsec_…) is the account's for the callback of a task, and the endpoint's own for an
    endpoint. The body must be the bytes of the request. The headers are a mapping or pairs, with
    names in any case. Raise WebhookError if the signature is missing, wrong or older than five
    minutes.
    """
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    values: dict[str, str] = {}
    for name, value in pairs:
        values[name.lower()] = f"{values[name.lower()]} {value}" if name.lower() in values else value
    message_id, timestamp = values.get("webhook-id", ""), values.get("webhook-timestamp", "")
    try:
        age = abs(time.time() - int(timestamp))
    except ValueError:
        age = _TOLERANCE + 1
    if not message_id or age > _TOLERANCE:
        raise WebhookError("the webhook has no id, or no timestamp of the last five minutes")
    text = _raw(body) if isinstance(body, str) else bytes(body)
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except ValueError:
        key = b""
    if not key:  # anybody could sign with an empty key
        raise ValueError("the secret is not whsec_ with Base64 behind it")
    signed = hmac.new(key, _raw(f"{message_id}.{timestamp}.") + text, hashlib.sha256).digest()
    expected = b"v1," + base64.b64encode(signed)
    if not any(hmac.compare_digest(expected, _raw(s)) for s in values.get("webhook-signature", "").split()):
        raise WebhookError("no signature of the webhook is by this secret")
    return _read_event(text)


def _raw(text: str) -> bytes:
    """Encode a text. Servers decode a byte of a header that is not UTF-8 as a lone surrogate."""
    return text.encode(errors="surrogatepass")


def _read_event(text: bytes) -> Event:
    try:
        read = json.loads(text)
        if "data" not in read:  # a callback: its body is the task itself
            read = {"type": f"task.{read['status']}", "data": read}
        kind, data, timestamp = read["type"], read["data"], read.get("timestamp")
        if not kind or not isinstance(kind, str) or not isinstance(data, dict):
            raise ValueError("type or data is missing")
        return Event(
            type=kind,
            data=data,
            task=read_task(data) if kind.startswith("task.") else None,
            timestamp=timestamp if isinstance(timestamp, str) else None,
        )
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise WebhookError("the webhook is neither an event nor a task") from error
