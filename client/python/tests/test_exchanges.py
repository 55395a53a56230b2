"""The behaviours that all clients share: client/behaviours.json and client/exchanges."""

from __future__ import annotations

import json
import tempfile
import unittest
from pathlib import Path
from typing import Any

from mediagate import behaviours

from exchanges import EXCHANGES, Play, plays, read, said


#: The members of a script that a play knows. One that it does not know is a behaviour that the client lacks.
KNOWN = set(
    """name call answers each model endpoint key id method path category fields strict size n secret body header
    repeat forever leave asks calls keys lasts progress returns fails""".split()
)


class Exchanges(unittest.TestCase):
    def test_table(self) -> None:
        table = json.loads((EXCHANGES.parent / "behaviours.json").read_text())
        own = {name.lower(): value for name, value in vars(behaviours).items() if name.isupper()}
        self.assertEqual(own, table)

    def test_scripts(self) -> None:
        for name in ("submit", "wait", "task", "webhook"):
            for script in read(name):
                with tempfile.TemporaryDirectory() as folder:
                    for number, play in enumerate(plays(script, Path(folder))):
                        with self.subTest(file=name, script=script["name"], number=number):
                            self.check(play)

    def check(self, play: Play) -> None:
        script, stage = play.script, play.stage
        self.assertLessEqual(script.keys(), KNOWN)
        answers = len(stage.answers)
        for _ in range(script.get("repeat", 1)):
            try:
                result, failure = play.call(), None
            except (Exception, KeyboardInterrupt) as error:
                result, failure = None, error
            self.check_result(script, result, failure)
        self.assertEqual(len(stage.asks), script.get("calls", answers), "calls")
        if "lasts" in script:
            self.assertAlmostEqual(stage.time, script["lasts"], delta=0.25)
        if "progress" in script:
            self.assertEqual(play.heard, script["progress"])
        keys = {ask.header["Idempotency-Key"] for ask in stage.asks if "Idempotency-Key" in ask.header}
        if "keys" in script:
            self.assertEqual(len(keys), script["keys"])
        else:
            self.assertLessEqual(keys, {"k"})
        for ask, wanted in zip(stage.asks, script.get("asks", [])):
            path = ask.url.removeprefix("https://gateway.example.com")
            got: dict[str, Any] = {"method": ask.method, "url": ask.url, "path": path}
            for name in wanted.keys() - {"header", "json", "text"}:
                self.assertEqual(got[name], wanted[name])
            for name, value in wanted.get("header", {}).items():
                self.assertEqual(ask.header.get(name), value, name)
            if "json" in wanted:
                self.assertEqual(json.loads(ask.body), wanted["json"])
            for text in wanted.get("text", []):
                self.assertIn(text, ask.body.decode())

    def check_result(self, script: dict[str, Any], result: Any, failure: BaseException | None) -> None:
        fails = script.get("fails")
        if fails is None:
            if failure is not None:
                raise failure
            wanted = script.get("returns")
            if isinstance(wanted, dict) and script["call"] != "call":
                result = {name: result[name] for name in wanted}
            self.assertEqual(result, wanted)
            return
        if failure is None:
            self.fail(f"it returned {result!r}")
        told = said(failure)
        for name, value in fails.items():
            if name == "says":
                self.assertIn(value, told[name])
            else:
                self.assertEqual(told.get(name), value, f"{name} of {failure!r}")
