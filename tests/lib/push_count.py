#!/usr/bin/env python3
"""Clients that count: what each was told of each ref, against what is there.

	push_count.py REFD WORK SERVER PUSHERS UPDATERS SECONDS SEED

PUSHERS run `git push` from WORK, UPDATERS run `refd update`, each on refs of
its own in SERVER, for SECONDS, while somebody kills the daemon. No value is
given to a ref twice, so what happens twice is seen. Now and then a push's
hook, its receive-pack, or an updater is killed too; an update is sent twice,
and another one under its id.

What is held against each other at the end, for each ref:
	told	ok: it happened; rejected: it did not; unknown: `refd query`
		says which, and that is so; killed, and told nothing: either
	journal	each change begins where the one before ended, the last one's
		value is the ref's, none happens twice
	reflog	the journal's changes since the ref was made, line by line

Prints counts, then a line for each thing that is wrong.
"""
import collections
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time

REFD, WORK, SERVER, PUSHERS, UPDATERS, SECONDS, SEED = sys.argv[1:]
REFS = 8
NULL = '0' * 40
HOOK_LOST = 'fail to run proc-receive hook'

values = open(f'{WORK}/values').read().split()
counts = collections.Counter()
bad = []
lock = threading.Lock()


def count(what, n=1):
    with lock:
        counts[what] += n


def wrong(text):
    with lock:
        bad.append(text)


def run(*argv, **options):
    return subprocess.run(argv, capture_output=True, text=True, **options)


def in_session(sid):
    """Processes of one session, (pid, arguments): what one push began."""
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            stat = open(f'/proc/{pid}/stat', encoding='latin-1').read()
            args = open(f'/proc/{pid}/cmdline',
                        encoding='latin-1').read().split('\0')
        except OSError:
            continue
        if int(stat.rsplit(')', 1)[1].split()[3]) == sid:
            yield int(pid), args


class Client:
    """One client's refs: what they are, as far as it knows (None: no ref),
    and what it was told of each change, in order."""

    def __init__(self, name, seed):
        self.refs = [f'refs/heads/{name}/r{i}' for i in range(REFS)]
        self.now = dict.fromkeys(self.refs)
        self.told = {ref: [] for ref in self.refs}  # (new, verdict)
        self.random = random.Random(seed)
        self.used = 0

    def plan(self):
        """A change for some refs: to a new value, or to none."""
        self.used += 1
        refs = self.random.sample(self.refs, self.random.randrange(1, REFS + 1))
        plan = {}
        for ref in refs:
            old = self.now[ref]
            delete = old is not None and self.random.random() < 0.15
            plan[ref] = (old, None if delete else values[self.used])
        return plan

    def look(self, ref):
        got = run('git', '-C', SERVER, 'rev-parse', '-q', '--verify', ref)
        return got.stdout.strip() or None

    def note(self, ref, new, verdict):
        self.told[ref].append((new, verdict))
        count(verdict)
        if verdict == 'ok':
            self.now[ref] = new
        elif verdict == 'open':
            self.now[ref] = self.look(ref)

    def settle(self, txids, plan, verdicts):
        """What was unknown, by asking; the daemon comes back."""
        said = {}
        for txid in txids:
            for _ in range(3000):
                got = run(REFD, 'query', txid)
                if got.returncode != 75 and \
                        not re.search(r'pending', got.stdout):
                    break
                time.sleep(0.1)
            for line in got.stdout.splitlines():
                words = line.split()
                if words[0] in ('ok', 'ng') and len(words) > 1:
                    said[words[1]] = words[0]
            if 'unknown' in got.stdout:
                wrong(f'still unknown: {got.stdout!r}')
        for ref in plan:
            if verdicts[ref] == 'unknown':
                count('asked')
                verdicts[ref] = {'ok': 'ok'}.get(said.get(ref), 'rejected')


class Pusher(Client):
    def turn(self):
        plan = self.plan()
        options = ['--porcelain', '--force']
        if self.random.random() < 0.3:
            options.append('--atomic')
        specs = [f'{new or ""}:{ref}' for ref, (_, new) in plan.items()]
        p = subprocess.Popen(['git', '-C', WORK, 'push', *options, SERVER,
            *specs], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True)
        killer = None
        if self.random.random() < 0.2:
            killer = threading.Thread(target=self.strike, args=[p,
                self.random.choice(['proc-receive', 'receive-pack']),
                self.random.random() * 0.04])
            killer.start()
        out, err = p.communicate()
        if killer:
            killer.join()
        self.await_end(p.pid)
        self.take(plan, out, err)

    @staticmethod
    def strike(push, what, delay):
        """Kills the push's hook, or its receive-pack, DELAY after it is seen."""
        found = []
        while not found and push.poll() is None:
            found = [pid for pid, args in in_session(push.pid)
                if any(arg.endswith(what) for arg in args[:3])
                and args[0] != 'sh']
            time.sleep(0.002)
        time.sleep(delay)
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
                count(f'killed {what}')
            except OSError:
                pass

    @staticmethod
    def await_end(sid):
        """A hook whose receive-pack is gone may be at it still."""
        for _ in range(10000):
            if not list(in_session(sid)):
                return
            time.sleep(0.02)
        wrong('a hook did not end')

    def take(self, plan, out, err):
        count('pushes')
        lines = {}
        for line in out.splitlines():
            fields = line.split('\t')
            if len(fields) >= 3:
                lines[fields[1].rpartition(':')[2]] = line
        verdicts = {}
        for ref in plan:
            line = lines.get(ref, '')
            if not line or HOOK_LOST in line or 'remote failed' in line:
                verdicts[ref] = 'open'
            elif 'outcome unknown' in line:
                verdicts[ref] = 'unknown'
            else:
                verdicts[ref] = 'rejected' if line[0] == '!' else 'ok'
        # Of a push whose report is torn nothing is certain.
        txids = set(re.findall(r'query ([0-9a-f]{32})', out + err))
        self.settle(txids, plan, verdicts)
        for ref, (_, new) in plan.items():
            self.note(ref, new, verdicts[ref])


class Updater(Client):
    def turn(self):
        plan = self.plan()
        txid = '%012x%s' % (int(time.time() * 1000), os.urandom(10).hex())
        text = ''.join(
            f'update {ref} {new} {old or NULL}\n' if new else
            f'delete {ref} {old}\n' for ref, (old, new) in plan.items())
        options = ['--stdin', '--porcelain', '--create-reflog', '--timeout',
            '3000', '--txid', txid]
        options.append(self.random.choice(['--atomic', '--batch-updates']))
        for _ in range(200):
            out, code = self.send(options, text)
            said = {ref: word for word, ref in
                re.findall(r'^(ok|ng) (\S+)', out, re.M)}
            if code in (0, 1) and set(said) == set(plan):
                break
            count('sent again')
            time.sleep(0.05)
        else:
            wrong(f'{text} came to no end: {code} {out}')
            self.used = len(values)
            return
        if self.random.random() < 0.2:
            self.send_twice(options, text, said)
        for ref, (_, new) in plan.items():
            if re.search(rf'^ng {ref} unknown', out, re.M):
                verdict = 'unknown'
            else:
                verdict = 'ok' if said[ref] == 'ok' else 'rejected'
            verdicts = {ref: verdict}
            self.settle([txid] if verdict == 'unknown' else [], {ref: 0},
                verdicts)
            self.note(ref, new, verdicts[ref])
        count('updates')

    def send_twice(self, options, text, said):
        """The same under the same id is what it was; another is refused."""
        count('told twice')
        again = run(REFD, 'update', '--git-dir', SERVER, *options, input=text)
        told = {ref: word for word, ref in
            re.findall(r'^(ok|ng) (\S+)', again.stdout, re.M)}
        is_open = again.returncode == 75 or 'outcome unknown' in again.stderr
        if not is_open and told != said:
            wrong(f'told {said}, and then {again.stdout} {again.stderr}')
        other = run(REFD, 'update', '--git-dir', SERVER, *options,
            input=text + f'create refs/heads/other/{options[-2]} {values[0]}\n')
        if re.search('^ok refs/heads/other/', other.stdout, re.M):
            wrong(f'another one under the same id: {other.stdout}')

    def send(self, options, text):
        p = subprocess.Popen([REFD, 'update', '--git-dir', SERVER, *options],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        killer = None
        if self.random.random() < 0.2:
            killer = threading.Timer(self.random.random() * 0.06, p.kill)
            killer.start()
        try:
            out, _ = p.communicate(text)
        except BrokenPipeError:
            out = ''
        if killer:
            killer.cancel()
        return out, p.returncode


def journal():
    """By ref: its changes, in order. Every value's record, ok or not."""
    for _ in range(3000):
        got = run(REFD, 'log', '--repo', SERVER, '--reverse', '--json')
        if got.returncode == 0:
            break
        # The daemon may be killed once more.
        time.sleep(0.1)
    else:
        wrong(f'no log: {got.returncode} {got.stderr}')
    changes = collections.defaultdict(list)
    for line in got.stdout.splitlines():
        d = json.loads(line)
        if d['status'] == 'ok':
            old, new = d.get('old') or NULL, d.get('new') or NULL
            if old != new:
                changes[d['ref']].append((old, new))
    return changes


def reflog(ref):
    try:
        lines = open(f'{SERVER}/logs/{ref}').read().splitlines()
    except OSError:
        return []
    return [tuple(line.split(' ', 2)[:2]) for line in lines]


def judge(client, changes):
    for ref in client.refs:
        at, given = NULL, set()
        for old, new in changes[ref]:
            if old != at:
                wrong(f'{ref}: the journal goes on from {old}, not {at}')
            if new != NULL and new in given:
                wrong(f'{ref}: {new} twice')
            given.add(new)
            at = new
        if (client.look(ref) or NULL) != at:
            wrong(f'{ref}: is {client.look(ref)}, the journal says {at}')
        since = max([i + 1 for i, c in enumerate(changes[ref])
            if c[1] == NULL], default=0)
        if reflog(ref) != changes[ref][since:]:
            wrong(f'{ref}: the reflog has {reflog(ref)},'
                f' the journal {changes[ref][since:]}')
        judge_told(ref, client.told[ref], changes[ref])


def judge_told(ref, told, changes):
    """A killed one may come late: it is in no order."""
    told_new = {new: verdict for new, verdict in told}
    deletions = collections.Counter(v for new, v in told if new is None)
    order = [new for _, new in changes if told_new.get(new) == 'ok']
    for new, verdict in told:
        happened = any(c[1] == new for c in changes)
        if new and happened and verdict == 'rejected':
            wrong(f'{ref}: told no of {new}, which is in the journal')
    if order != [new for new, v in told if new and v == 'ok']:
        wrong(f'{ref}: told ok of other changes than there are')
    for _, new in changes:
        if new != NULL and new not in told_new:
            wrong(f'{ref}: {new} is in the journal, and was never asked for')
    nr = sum(new == NULL for _, new in changes)
    if not deletions['ok'] <= nr <= deletions['ok'] + deletions['open']:
        wrong(f'{ref}: {nr} deletions; told: {dict(deletions)}')


def go(client, until):
    try:
        while time.monotonic() < until and client.used + 1 < len(values):
            client.turn()
    except Exception as e:
        wrong(f'{type(e).__name__}: {e}')


clients = [Pusher(f'p{i}', f'{SEED} p{i}') for i in range(int(PUSHERS))] + \
    [Updater(f'u{i}', f'{SEED} u{i}') for i in range(int(UPDATERS))]
until = time.monotonic() + float(SECONDS)
threads = [threading.Thread(target=go, args=(c, until)) for c in clients]
for t in threads:
    t.start()
for t in threads:
    t.join()
open(f'{WORK}/done', 'w').close()
# What the killed ones left may be in the works.
for _ in range(3000):
    if 'transactions: 0\n' in run(REFD, 'status', '-v').stdout:
        break
    time.sleep(0.1)
changes = journal()
for c in clients:
    judge(c, changes)
print(', '.join(f'{what} {n}' for what, n in sorted(counts.items())))
print('\n'.join(bad[:40]))
