#!/usr/bin/env python3
"""A push spoken to git receive-pack by hand, with whatever git push would not
send. Sourced by tests/scenario/push_hostile.sh.

    raw_push.py REPOSITORY [--atomic] [--no-pack] [--stop N] [--bytes N]
                [--kill] [--hook PROGRAM] < commands

Standard input has the commands, each ended by a NUL byte: "<old> <new> <ref>"
as the packet is to have it, with \\0 as %00 (and % as %25). The report's lines
go to standard output, a line each, as Python shows bytes. --stop hangs up
after N packets, --bytes after N bytes; --kill kills receive-pack then, and all
that it started gets the signal that a closed pipe is. --hook speaks to a
proc-receive hook in receive-pack's place. It ends when all that it started has.
"""
import argparse
import os
import signal
import subprocess
import sys


def packet(data):
    return b"%04x" % (len(data) + 4) + data


def read_packet(stream):
    head = stream.read(4)
    if len(head) < 4:
        return None
    size = int(head, 16)
    return b"" if size < 4 else stream.read(size - 4)


def until_flush(stream):
    lines = []
    while True:
        line = read_packet(stream)
        if line is None:
            return lines, False
        if line == b"":
            return lines, True
        lines.append(line)


def commands():
    given = sys.stdin.buffer.read().split(b"\0")[:-1]
    return [c.replace(b"%00", b"\0").replace(b"%25", b"%") for c in given]


def empty_pack(repository):
    return subprocess.run(
        ["git", "-C", repository, "pack-objects", "--stdout", "-q"],
        input=b"", stdout=subprocess.PIPE, check=True).stdout


def to_receive_pack(args, wanted):
    """What there is to be sent, packet by packet."""
    caps = b"\0 report-status" + (b" atomic" if args.atomic else b"")
    parts = [packet(c + (caps if i == 0 else b""))
             for i, c in enumerate(wanted)]
    parts.append(b"0000")
    if not args.no_pack:
        parts.append(empty_pack(args.repository))
    return parts


def to_hook(args, wanted):
    version = b"version=1" + (b"\0atomic" if args.atomic else b"")
    return ([packet(version), b"0000"] + [packet(c) for c in wanted] +
            [b"0000"])


def send(args, child, parts):
    """All of it, or as much as was asked for."""
    data = b"".join(parts if args.stop is None else parts[:args.stop])
    if args.bytes is not None:
        data = data[:args.bytes]
    try:
        child.stdin.write(data)
        child.stdin.flush()
        if args.kill:
            os.kill(child.pid, signal.SIGKILL)
        child.stdin.close()
    except BrokenPipeError:
        pass


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("repository")
    parser.add_argument("--atomic", action="store_true")
    parser.add_argument("--no-pack", action="store_true")
    parser.add_argument("--stop", type=int)
    parser.add_argument("--bytes", type=int)
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--hook")
    args = parser.parse_args()
    wanted = commands()
    # Whatever is started has one end of it.
    alive, held = os.pipe()
    if args.hook:
        child = subprocess.Popen(
            [args.hook, "hook", "proc-receive"], cwd=args.repository,
            env=dict(os.environ, GIT_DIR="."),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[held])
        parts = to_hook(args, wanted)
    else:
        child = subprocess.Popen(
            ["git", "receive-pack", args.repository],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[held])
        until_flush(child.stdout)
        parts = to_receive_pack(args, wanted)
    os.close(held)
    send(args, child, parts)
    whole = True
    while whole:
        lines, whole = until_flush(child.stdout)
        for line in lines:
            print(line)
        if whole:
            print("flush")
    print("status", child.wait())
    os.read(alive, 1)


main()
