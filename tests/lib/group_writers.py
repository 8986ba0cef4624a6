"""For tests/long/group_whole.py: clients that update refs by `refd update`. A
writer is the only one of its refs: it knows their values. Rivals share a
ref."""
import collections
import random
import time

from group_clients import ZERO, Client, new_id


class Writer(Client):
    """New commits on a ref. No update may fail because of the value."""

    def __init__(self, world, repo, number):
        super().__init__(world, repo)
        self.refs = self.names(number)
        self.values = {ref: ZERO for ref in self.refs}
        self.number = 0
        self.acked = set()

    @staticmethod
    def names(number):
        return [f'refs/heads/w{number}']

    def __str__(self):
        return f'{self.repo} {self.refs[0]}'

    def commit(self, node, parent, message):
        return node.commit(self.repo, parent if parent != ZERO else None,
                           message)

    def plan(self):
        """The parent of a new commit, or a value; then the refs to change."""
        return self.values[self.refs[0]], None, self.refs

    def turn(self):
        node, txid = self.world.node, new_id()
        self.number += 1
        message = f'{self} {self.number}'
        parent, value, refs = self.plan()

        def make(node):
            """The new value, or nothing if the parent has not come yet."""
            return value or self.commit(node, parent, message)

        new = make(node)
        if not new:
            self.world.learn(node, '')
            return
        changes = [(ref, new, self.values[ref]) for ref in refs]
        answer, why = self.update(node, txid, changes)
        if answer == 'unknown':
            answer, why = self.settle(txid, changes, make)
        if answer == 'ok':
            self.values.update((ref, new) for ref in refs)
            if new != ZERO:
                self.acked.add(new)
            self.world.ack()
        elif value and 'nonexistent object' in why:
            # A node that was copied lacks the commits of a deleted branch.
            self.acked.discard(value)
        elif answer != 'busy':
            self.world.problem(f'{self}: {txid} {changes}: {answer}: {why}')
            raise RuntimeError('the value is not known any more')

    def check(self, refs, history):
        """The refs have the last acknowledged values, and their history all
        earlier ones. HISTORY(value): all commits that the value reaches."""
        problems = [
            f'{self}: {ref}: {refs.get(ref, ZERO)}, acknowledged was {value}'
            for ref, value in self.values.items()
            if refs.get(ref, ZERO) != value]
        if self.is_line() and self.acked and not problems:
            problems = [
                f'{self}: {value} is not in the history' for value in
                self.acked - history(self.values[self.refs[0]])]
        return problems

    @staticmethod
    def is_line():
        """Has the last value all earlier ones?"""
        return True


class Twins(Writer):
    """Two refs with the same value, in one transaction."""

    @staticmethod
    def names(number):
        return [f'refs/heads/twin{number}', f'refs/tags/twin{number}']


class Brancher(Writer):
    """Deletes a branch, and makes it again from an earlier value."""

    @staticmethod
    def names(number):
        return [f'refs/heads/branch{number}']

    def plan(self):
        value = self.values[self.refs[0]]
        if value != ZERO and random.random() < 0.3:
            return None, ZERO, self.refs
        if value == ZERO and self.acked and random.random() < 0.7:
            return None, random.choice(sorted(self.acked)), self.refs
        return value, None, self.refs

    @staticmethod
    def is_line():
        return False


class Rival(Client):
    """One of several writers of a ref, each with the value it has seen."""
    # repo, ref: (old, new, begin, end); without an acknowledgement no end
    done = collections.defaultdict(list)

    def __init__(self, world, repo, number, name):
        super().__init__(world, repo)
        self.ref, self.name_of = f'refs/heads/r{number}', name
        self.number = 0

    def __str__(self):
        return f'{self.repo} {self.ref} {self.name_of}'

    def turn(self):
        node, txid = self.world.node, new_id()
        self.number += 1
        message = f'{self} {self.number}'
        old = node.git(self.repo, 'rev-parse', '-q', '--verify',
                       self.ref) or ZERO

        def make(node):
            return node.commit(self.repo, old if old != ZERO else None, message)

        new = make(node)
        if not new:
            return
        begin = time.monotonic()
        changes = [(self.ref, new, old)]
        answer, _ = self.update(node, txid, changes)
        if answer == 'unknown' and random.random() < 0.5:
            answer, _ = self.settle(txid, changes, make)
        if answer in ('ok', 'unknown'):
            end = time.monotonic() if answer == 'ok' else float('inf')
            self.done[self.repo, self.ref].append((old, new, begin, end))
        if answer == 'ok':
            self.world.ack()
        time.sleep(random.random() / 20)

    @classmethod
    def check(cls, repo, ref, refs):
        """All acknowledged updates are one chain that ends at the value, and no
        update is before another one that had ended when it began."""
        updates = {update[1]: update for update in cls.done[repo, ref]}
        chain, value = [], refs.get(ref, ZERO)
        while value in updates:
            chain.append(updates.pop(value))
            value = chain[-1][0]
        problems = [f'{repo} {ref}: {old} -> {new} is lost'
                    for old, new, _, end in updates.values()
                    if end != float('inf')]
        if value != ZERO:
            problems.append(f'{repo} {ref}: nobody has written {value}')
        latest = 0      # begin of an update of the chain so far
        for old, new, begin, end in reversed(chain):
            if end < latest:
                problems.append(f'{repo} {ref}: {old} -> {new} came too late')
            latest = max(latest, begin)
        return problems
