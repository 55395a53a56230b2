"""Webhooks, which are signed by the scheme of https://www.standardwebhooks.com."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Iterable, Mapping

from .errors import WebhookError
from .types import Task, read_task

#: How far the clocks of the gateway and of the receiver may be apart, in seconds.
_TOLERANCE = 300


def verify_webhook(
    secret: str, headers: Mapping[str, str] | Iterable[tuple[str, str]], body: bytes | str
) -> Task:
    """Read the task of a webhook, if its signature is one by the account's secret (whsec_…).

    The body is that of the request, byte for byte. The headers are a mapping or pairs, with names
    in any case. A webhook that is not signed, or is older than five minutes, is a WebhookError.
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
    text = body.encode() if isinstance(body, str) else bytes(body)
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except binascii.Error:
        raise ValueError("the secret is not whsec_ with Base64 behind it") from None
    signed = hmac.new(key, f"{message_id}.{timestamp}.".encode() + text, hashlib.sha256).digest()
    expected = "v1," + base64.b64encode(signed).decode()
    if not any(hmac.compare_digest(expected.encode(), s.encode()) for s in values.get("webhook-signature", "").split()):
        raise WebhookError("no signature of the webhook is by this secret")
    return read_task(json.loads(text))
