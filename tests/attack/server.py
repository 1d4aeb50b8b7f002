"""Attacks on the review server, on loopback: kills, requests without a right, odd images."""

from __future__ import annotations

import http.client
import os
import random
import shutil
import threading
import time
from pathlib import Path

from PIL import Image

from hilltop.audit.folder import AuditFolder
from hilltop.data import read_labels
from hilltop.inputs.synthetic import write_dataset
from tests.attack.outcome import Outcome
from tests.audit.made_up import write_audit
from tests.audit.review.serving import Server, answer_event, serving, stored

PATHS = (
    "/", "/page.js", "/api/start", "/api/pairs?class=0&count=1", "/image/0", "/image/../x",
    "/..%2f..%2fetc%2fpasswd", "//etc/passwd", "/api/start?token=x", "/?token=", "/nowhere",
)  # fmt: skip


def make_audit(folder: Path) -> AuditFolder:
    """A small audit with drawn images."""
    write_dataset(folder / "drawn", images=24, size=64, seed=1)
    labels = next(path for path in (folder / "drawn").iterdir() if path.is_file())
    table = read_labels(labels)
    from hilltop.data import drop_positives, write_labels

    thinned = folder / "thinned.csv"
    write_labels(
        drop_positives(table, "0.8", seed=0).table, thinned, format="list_column", lossy=True
    )
    return write_audit(
        folder / "audit", thinned, format="list_column", images=folder / "drawn" / "images"
    )


def killed_servers(folder: Path, tries: int) -> Outcome:
    """Kill the server while two reviewers answer; every acknowledged answer must be there once."""
    found = Outcome("acknowledged answers over kills of the server")
    audit = make_audit(folder)
    acknowledged: set[str] = set()
    for turn in range(tries):
        with serving(audit.path) as server:
            acknowledged |= _answer_until_killed(server, turn, random.Random(turn).random() * 0.4)
    ids = [event.id for event in stored(audit)]
    lost, doubled = acknowledged - set(ids), len(ids) - len(set(ids))
    found.expect(not lost, f"{len(lost)} acknowledged answers are lost")
    found.expect(not doubled, f"{doubled} answers are there twice")
    found.tries = len(acknowledged)
    found.remark = f"{tries} kills"
    return found


def _answer_until_killed(server: Server, turn: int, seconds: float) -> set[str]:
    one = server.get("/api/start", reviewer="r0")["classes"][0]
    pairs = server.get("/api/pairs", **{"class": one["number"], "count": 20})["pairs"]
    acknowledged: set[str] = set()

    def answer(who: int) -> None:
        number = 0
        try:
            while True:
                number += 1
                name = f"{turn}-{who}-{number}"
                event = answer_event(name, pairs[number % len(pairs)], one["name"], "present")
                status, reply = server.post(f"r{who}", [event])
                if status == 200:
                    acknowledged.update(reply["stored"])
        except (OSError, http.client.HTTPException, ValueError):
            pass  # the server is gone

    threads = [threading.Thread(target=answer, args=(who,)) for who in (0, 1)]
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    server.kill()
    for thread in threads:
        thread.join()
    return acknowledged


def strangers(folder: Path, tries: int) -> Outcome:
    """Requests without the cookie, with made-up ones, from other hosts, origins and methods."""
    found = Outcome("requests without a right get nothing")
    audit = make_audit(folder)
    chance = random.Random(0)
    with serving(audit.path) as server:
        name, _, value = server.cookie.partition("=")
        for _ in range(tries):
            headers = {
                "Cookie": chance.choice(["", f"{name}={value[:-1]}0x", f"{name}=a.b", "a=b c"])
            }
            if chance.random() < 0.3:
                headers = {"Host": chance.choice(["evil.example", "127.0.0.1.evil", "a b", ""])}
            elif chance.random() < 0.3:
                headers = {"Origin": chance.choice(["http://evil.example", "null", "file://"])}
            method = chance.choice(["GET", "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"])
            path = chance.choice(PATHS)
            status, _, body = server.request(method, path, headers=headers)
            found.expect(
                status in (400, 401, 403) and b"root:" not in body and b"classes" not in body,
                f"{method} {path} {headers}: {status}",
            )
        status = server.request("GET", "/api/start")[0]
        found.expect(status == 200, f"the reviewer gets {status} afterwards")
    return found


def odd_images(folder: Path, tries: int) -> Outcome:
    """Pipes, bombs and large pictures beside answers: how long an answer takes meanwhile."""
    found = Outcome("answers beside pipes, bombs and 12-megapixel images")
    audit = make_audit(folder)
    pictures = sorted((folder / "drawn" / "images").iterdir())
    noise, bomb = folder / "noise.jpg", folder / "bomb.png"
    Image.effect_noise((4000, 3000), 60).convert("RGB").save(noise, quality=80)
    Image.new("1", (20_000, 9_000)).save(bomb)
    for number, path in enumerate(pictures[:20]):
        path.unlink()
        if number < 3:
            os.mkfifo(path)
        elif number < 6:
            shutil.copy(bomb, path)
        else:
            shutil.copy(noise, path)
    with serving(audit.path) as server:
        one = server.get("/api/start", reviewer="Ann")["classes"][0]
        pair = server.get("/api/pairs", **{"class": one["number"], "count": 1})["pairs"][0]
        threads = [
            threading.Thread(target=server.request, args=("GET", f"/image/{row}?size=large"))
            for row in range(len(pictures))
        ]
        for thread in threads:
            thread.start()
        longest = 0.0
        for number in range(tries):
            began = time.perf_counter()
            status, _ = server.post("Ann", [answer_event(number, pair, one["name"], "present")])
            longest = max(longest, time.perf_counter() - began)
            found.expect(status == 200, f"an answer got {status}")
        for thread in threads:
            thread.join()
        peak = _peak_mb(server.process.pid)
    found.remark = f"longest answer {longest:.2f} s, peak {peak:.0f} MB"
    return found


def _peak_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
