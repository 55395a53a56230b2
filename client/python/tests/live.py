"""Plays the client's paths against the gateway of MEDIAGATE_URL.

They are a quote, a video to its file, refusals, uploads, a cancel, and a webhook that is received here.
"""

import io
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import NoReturn

from mediagate import Client, GatewayError, TaskError, WebhookError, verify_webhook

client = Client(os.environ["MEDIAGATE_URL"], os.environ["MEDIAGATE_API_KEY"], strict=True)
fields = {"prompt": "a red boat – ein rotes Boot", "duration": 5}


def succeeded() -> NoReturn:
    sys.exit("a call succeeded that should have failed")


assert any(model.id == "alpha-v3" for model in client.models("video"))
quote = client.quote("alpha-v3", fields)
heard: list[int] = []
task = client.run("alpha-v3", fields, progress=lambda now: heard.append(now.progress))
assert task.cost == quote.cost and heard, (task, quote, heard)
(film,) = client.save(task)
assert film.read_bytes()[4:8] == b"ftyp"

once = [client.submit("alpha-v3", fields, idempotency_key="the-same-of-python") for _ in range(2)]
assert once[0] == once[1]
try:
    client.submit("alpha-v3", {**fields, "duration": 99})
    succeeded()
except GatewayError as refused:
    assert (refused.status, refused.param, refused.reason) == (400, "duration", "out_of_range"), refused
try:
    client.submit("alpha-v3", {**fields, "durations": 5})
    succeeded()
except GatewayError as refused:
    assert refused.reason == "unknown_field", refused
try:
    client.run("alpha-v3", {"prompt": "forbidden [[sandbox: fail=moderation]]"})
    succeeded()
except TaskError as failed:
    assert failed.task.error and failed.task.error.code == "content_policy_violation", failed

with film.open("rb") as opened:
    assert client.upload("videos", opened, "boat.mp4").startswith("http")
try:
    client.upload("images", io.BytesIO(b"meow"))
    succeeded()
except GatewayError as refused:
    assert refused.status == 400, refused

slow = client.submit("alpha-v3", {"prompt": "slow [[sandbox: duration=600]]"})
client.cancel(slow)
assert client.wait(slow).status == "cancelled"

received: list[tuple[list[tuple[str, str]], bytes]] = []


class Hooks(BaseHTTPRequestHandler):
    """A receiver of webhooks."""

    def do_POST(self) -> None:
        received.append((self.headers.items(), self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()


hooks = HTTPServer(("127.0.0.1", 0), Hooks)
thread = threading.Thread(target=hooks.handle_request)
thread.start()
hooked = client.submit("alpha-v3", {**fields, "webhook": f"http://127.0.0.1:{hooks.server_port}/hooks"})
thread.join()
hooks.server_close()
((headers, body),) = received
secret = client.call("GET", "/v1/webhooks/secret")["secret"]
told = verify_webhook(secret, headers, body)
assert told.task and (told.type, told.task.id) == ("task.completed", hooked), told
try:
    verify_webhook(secret, headers, body + b" ")
    succeeded()
except WebhookError:
    pass
