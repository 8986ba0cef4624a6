"""For tests/long/group_whole.py: how long nobody could write, after which
faults."""
import collections

# Nobody can write before the end of these.
BLOCKING = {'cut_fetches', 'fill_node'}
# PostgreSQL cannot commit before its standby, or its failover, is there.
STOPPING = {'cancel_commit', 'terminate_commit', 'reset_commit', 'empty_names',
            'restart_primary', 'pause_primary', 'stop_standbys', 'cut_standbys',
            'fill_server', 'fail_over', 'fail_over_cut', 'fail_over_return',
            'fail_over_behind', 'switch_over'}
# Writes are possible again, in seconds. See Event.delay.
GOAL = 10


class Event:
    """One fault, or several at once. The times are seconds of the monotonic
    clock: BEGIN, END, and ABLE, the end of the last time without a primary that
    commits."""

    def __init__(self, names, is_storm, begin, end, able):
        self.names, self.is_storm = names, is_storm
        self.begin, self.end = begin, end
        self.able = self.since(able)
        self.gap = self.delay = None

    def since(self, able):
        """From when on writes must be possible."""
        if self.is_storm or self.names[0] in BLOCKING:
            return self.end
        if self.names[0] in STOPPING:
            return min(able or self.end, self.end)
        return self.begin

    def measure(self, acks):
        """GAP: the longest time without an acknowledgement, from the begin to
        the first one after the end. DELAY: the same, from ABLE on."""
        times = []
        for ack in acks:
            if ack > self.begin:
                times.append(ack)
            if ack > self.end:
                break
        self.gap = longest([self.begin, *times])
        self.delay = longest([self.able, *(t for t in times if t > self.able)])

    def kind(self):
        return 'several at once' if self.is_storm else self.names[0]

    def __str__(self):
        return '+'.join(self.names)


def longest(times):
    return max((y - x for x, y in zip(times, times[1:])), default=0)


def summary(events):
    """For JSON. Seconds, by kind."""
    delays = collections.defaultdict(list)
    for event in events:
        delays[event.kind()].append(event.delay)
    worst = max(events, key=lambda event: event.gap, default=None)
    return {
        'faults': sum(len(event.names) for event in events),
        'kinds': dict(collections.Counter(
            name for event in events for name in event.names)),
        'longest': worst and [round(worst.gap, 1), str(worst)],
        'late': [[round(event.delay, 1), str(event)] for event in events
                 if event.delay > GOAL],
        'delays': {kind: {
            'max': round(max(values), 1),
            'p95': round(sorted(values)[int(len(values) * 0.95)], 1),
            'all': [round(value, 2) for value in values]}
            for kind, values in sorted(delays.items())}}
