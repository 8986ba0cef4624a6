"""A receiver of web hooks on the loopback, for the tests of refd-deliver.

    hook.py PORT-FILE RULES-FILE [SECRET [LOG]]

Answers 204, unless the body contains a word of RULES-FILE, which has lines
"ANSWER WORD": a status, "hang" (no answer) or "flood" (200 with a megabyte).
GET /counts returns the counts. Deliveries of a repository must come in order: a
delivery is new if its position is behind the last, and a repetition if it is
the last; anything else is disorder. LOG gets a JSON line per request.
"""
import asyncio
import hashlib
import hmac
import json
import os
import sys

port_file, rules_file = sys.argv[1:3]
secret = sys.argv[3].encode() if len(sys.argv) > 3 else b""
log = open(sys.argv[4], "a") if len(sys.argv) > 4 else None
counts = {"requests": 0, "new": 0, "again": 0, "disorder": 0, "unsigned": 0}
last = {}
rules, rules_time = [], None


def load_rules():
    global rules, rules_time
    time = os.stat(rules_file).st_mtime_ns
    if time != rules_time:
        rules_time = time
        rules = [line.encode().split(b" ", 1)
                 for line in open(rules_file).read().splitlines()]


def place(delivery):
    numbers = delivery.split(":")[1].split(".")
    return [int(n) for n in numbers]


def judge(headers, body, answer):
    counts["requests"] += 1
    sign = hmac.new(secret, body, hashlib.sha256).hexdigest()
    signed = headers.get("x-hub-signature-256") == "sha256=" + sign
    counts["unsigned"] += not signed
    change = json.loads(body)
    repo, at = change.get("repo", ""), headers["x-refd-delivery"]
    if answer in (b"204", b"flood"):
        if repo not in last or place(at) > place(last[repo]):
            counts["new"] += 1
            last[repo] = at
        else:
            counts["again" if at == last[repo] else "disorder"] += 1
    if log:
        print(json.dumps({
            "id": at, "event": headers["x-refd-event"], "signed": signed,
            "attempt": int(headers["x-refd-attempt"]),
            "type": headers["content-type"], "answer": answer.decode(),
            "body": body.decode()}), file=log, flush=True)


class Hook(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport, self.data = transport, b""

    def data_received(self, data):
        self.data += data
        while True:
            head, found, rest = self.data.partition(b"\r\n\r\n")
            if not found:
                return
            line, *fields = head.decode().split("\r\n")
            headers = {k.lower(): v for k, v in
                       (f.split(": ", 1) for f in fields)}
            length = int(headers.get("content-length", 0))
            if len(rest) < length:
                return
            self.data = rest[length:]
            self.answer(line, headers, rest[:length])

    def answer(self, line, headers, body):
        if line.startswith("GET /counts "):
            self.send("200 OK", json.dumps(counts).encode())
            return
        load_rules()
        answer = next((r[0] for r in rules if r[1] in body), b"204")
        judge(headers, body, answer)
        if answer == b"flood":
            self.send("200 OK", b"x" * 1000000)
        elif answer != b"hang":
            self.send(answer.decode() + " Words", b"")

    def send(self, status, body):
        length = "" if status.startswith("204") else \
            f"Content-Length: {len(body)}\r\n"
        self.transport.write(
            f"HTTP/1.1 {status}\r\n{length}Location: /counts\r\n\r\n".encode()
            + body)


async def main():
    server = await asyncio.get_running_loop().create_server(
        Hook, "127.0.0.1", 0)
    with open(port_file + ".new", "w") as f:
        f.write(str(server.sockets[0].getsockname()[1]))
    os.rename(port_file + ".new", port_file)
    await server.serve_forever()


asyncio.run(main())
