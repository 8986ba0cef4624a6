"""Runs the conformance suite of the client libraries.

    run.py DIRECTORY SOCKET RUNNER... -- NAME=VALUE...

RUNNER is NAME=COMMAND. Each runner gets the messages of proto/vectors.json and
the cases of the file `cases`; README.md has both languages. Prints `ok` and
`not ok` lines. DIRECTORY is for sockets. The NAME=VALUE words are variables of
the cases; {socket} is SOCKET. All runners must answer every command in the
same words.
"""
import json
import os
import re
import secrets
import subprocess
import sys
import time

from server import Server

HERE = os.path.dirname(os.path.abspath(__file__))
UNSAFE = re.compile(rb"[^A-Za-z0-9_./:@-]")


def encoded(text):
    return UNSAFE.sub(lambda m: b"%%%02X" % m[0][0],
                      text.encode("latin-1")).decode()


def shows(name, wanted, got):
    if wanted == got:
        print("ok", name)
    else:
        print("not ok %s: wanted %s, got %s" % (name, wanted, got))


class Runner:
    def __init__(self, command):
        self.process = subprocess.Popen(
            command, shell=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True)

    def ask(self, line):
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        return self.process.stdout.readline().rstrip("\n") or "(it ended)"


# ---- vectors ----

def flat(tree, prefix=""):
    for key, value in (tree.items() if isinstance(tree, dict)
                       else enumerate(tree)):
        if isinstance(value, (dict, list)):
            yield from flat(value, f"{prefix}{key}.")
        elif value is True:
            yield f"{prefix}{key}=true"
        elif value != "":
            yield f"{prefix}{key}={encoded(str(value))}"


def run_vectors(client, runner):
    with open(os.path.join(HERE, "../../proto/vectors.json"),
              encoding="ascii") as file:
        vectors = json.load(file)
    for v in vectors:
        name = "%s: vector %s" % (client, v["name"])
        data = encoded("".join(v["packets"]))
        if "request" in v:
            shows(name, "bytes bytes=" + data,
                  runner.ask(" ".join(["encode", *flat(v["request"])])))
        elif "refused" not in v:
            kind = "fatal" if "fatal" in v else (
                "hello" if "hello" in v else "answer")
            if "hello" in v and v["hello"]["version"] != 2:
                kind = "fatal"  # the client hangs up
            wanted = [] if kind == "fatal" else sorted(flat(v[kind]))
            got = runner.ask("decode bytes=" + data).split(" ")
            shows(name, [kind, *wanted], [got[0], *sorted(got[1:])])


# ---- cases ----

def read_cases(path):
    """[(name, steps)]; a step is (kind, text)."""
    cases = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            line = line.rstrip("\n")
            if line.startswith("== "):
                cases.append((line[3:], []))
            elif line and not line.startswith("#"):
                steps = cases[-1][1]
                if line.startswith("  "):
                    steps[-1] = (steps[-1][0],
                                 steps[-1][1] + "\n" + line.strip())
                else:
                    steps.append((line[0], line[2:]))
    return cases


FIELDS = {"update": ("oid", "old-oid"), "create": ("oid",),
          "delete": ("old-oid",), "verify": ("old-oid",),
          "symref-update": ("target", "old-target"),
          "symref-create": ("target",), "symref-delete": ("old-target",),
          "symref-verify": ("old-target",)}


def update_words(number, text):
    """The words of an update: [no-deref] COMMAND REF FIELD..."""
    words = text.split()
    fields = {}
    if words[0] == "no-deref":
        fields["no-deref"] = "true"
        del words[0]
    fields.update(zip(("command", "ref", *FIELDS[words[0]]), words))
    return [f"updates.{number}.{key}={value}"
            for key, value in fields.items()]


def command_line(text):
    """A command, with words and updates on further lines."""
    first, *updates = text.split("\n")
    words = first.split()
    number = 0
    for line in updates:
        if "=" in line:
            words += line.split()
        else:
            words += update_words(number, line)
            number += 1
    return " ".join(words)


def said(line):
    """An answer as the cases have it: without ids, texts and numbers, and the
    status and the ref of each result in one word."""
    name, *words = line.split(" ")
    fields = dict(word.partition("=")[::2] for word in words)
    shown = [name]
    for key in ("outcome", "status", "state", "first", "gap", "more"):
        if key in fields:
            shown.append(fields[key])
    number = 0
    while f"results.{number}.status" in fields:
        at = f"results.{number}."
        shown.append(fields[at + "status"] + ":" + fields[at + "ref"])
        number += 1
    record = 0
    while f"records.{record}.lsn" in fields:
        at, change = f"records.{record}.changes.", 0
        while f"{at}{change}.status" in fields:
            shown.append("%s:%s" % (fields[f"{at}{change}.status"],
                                    fields[f"{at}{change}.ref"]))
            change += 1
        record += 1
    return " ".join(shown), fields


class Case:
    def __init__(self, name, runner, directory, variables):
        self.name, self.runner, self.directory = name, runner, directory
        self.variables = dict(variables)
        self.server = None
        self.fields = {}

    def filled(self, text):
        def value(match):
            key = match[1]
            if key.startswith("txid") and key not in self.variables:
                self.variables[key] = "%012x%s" % (
                    time.time_ns() // 1000000, secrets.token_hex(10))
            return self.variables[key]
        return re.sub(r"\{(\w+)\}", value, text)

    def run(self, steps):
        answer = None
        try:
            for kind, text in steps:
                if kind == "!":
                    self.serve(text)
                elif kind == ">":
                    line = command_line(self.filled(text))
                    answer, self.fields = said(self.runner.ask(line))
                elif kind == "=":
                    name, key = text.split()
                    # An early end of a page, as below.
                    while key not in self.fields and \
                            answer.startswith("page true"):
                        answer, self.fields = said(self.runner.ask(line))
                    self.variables[name] = self.fields.get(key, "none")
                elif kind == "?":
                    wanted = self.filled(text)
                    shows(f"{self.name}: {wanted}", wanted,
                          " ".join(self.server.heard))
                else:
                    wanted = self.filled(text.replace("\n", " "))
                    # A page may end early when the daemon is slow.
                    if not wanted.startswith("page true"):
                        answer = re.sub("^page true", "page", answer)
                    shows(f"{self.name}: {wanted}", wanted, answer)
            self.runner.ask("close")
        finally:
            if self.server:
                self.server.stop()

    def serve(self, text):
        path = os.path.join(self.directory, "fake.sock")
        if os.path.exists(path):
            os.unlink(path)
        script = [re.sub(r"\{socket\}", self.variables["socket"], line)
                  for line in text.split("\n")[1:]]
        self.server = Server(path, script)
        self.variables["fake"] = path


def main(directory, path, *words):
    split = words.index("--")
    variables = {"socket": path, "null": "0" * 40,
                 "target": "refs/heads/target"}
    variables.update(word.split("=", 1) for word in words[split + 1:])
    cases = read_cases(os.path.join(HERE, "cases"))
    for client, command in (w.split("=", 1) for w in words[:split]):
        variables["client"] = client
        runner = Runner(command)
        run_vectors(client, runner)
        for name, steps in cases:
            Case(f"{client}: {name}", runner, directory, variables).run(steps)
        runner.process.stdin.close()
        shows(f"{client}: the runner ends well", 0, runner.process.wait(60))


main(*sys.argv[1:])
