/*
 * Two nodes of a group and one PostgreSQL with a standby: a batch, its doubt,
 * and a takeover. docs/decisions/025-group.md explains the steps.
 *
 * Checked:
 *	- an acknowledged row stays in the log, whatever PostgreSQL loses;
 *	- a row that was answered "rejected" never appears;
 *	- an LSN has one row, and its epoch is that of the lease before it;
 *	- the disk of every node is a prefix of the log;
 *	- a node that opens has the whole log.
 *
 * Clocks have no part: a lease may end at every moment, so a follower may take
 * over at every moment. Each name of a fault in an #ifdef is a mutation which
 * breaks one of these (tests/long/model.sh).
 */
#define NODES 2
#ifndef WAL
#define WAL 6 /* entries of PostgreSQL's WAL */
#endif
#ifndef TXNS
#define TXNS 2
#endif
#ifndef FAULTS
#define FAULTS 2 /* of all kinds together */
#endif
#define NOBODY 255

mtype = { NONE, LEASE, RENEWAL, ROW };

/* What a transaction of PostgreSQL has written. VISIBLE: to other sessions. */
typedef entry {
	mtype kind;
	byte epoch;
	byte lsn;
	byte txn;
	bool visible;
};

entry wal[WAL];
byte wal_len;
byte replicated;         /* entries that the quorum has */
byte timeline;           /* another primary, or another start of it */
bool shared[NODES];      /* FOR KEY SHARE on the lease, by a fence */
/* A batch that was sent before its node was killed or its socket was cut. The
 * session of the database may still do the batch, at any later moment. */
typedef batch {
	byte epoch;
	byte lsn;
	byte txn; /* 0: none */
};
batch late[NODES];
byte faults;

/* Counted anew after each change of the WAL. */
byte seen_epoch, seen_rows;   /* as other sessions see the log */
byte last_epoch, all_rows;    /* as it is written */
byte pending_leases, pending_renewals, pending_rows;
#define PENDING (pending_leases + pending_renewals + pending_rows)

byte last_txn;
byte acknowledged[TXNS + 1]; /* of a transaction: its LSN */
bool rejected[TXNS + 1];

typedef node_disk {
	byte rows;
	byte txn[TXNS + 2]; /* of an LSN */
};
node_disk disk[NODES];

/* ---- what must be true ---- */

inline find_row(the_lsn, the_txn, found) {
	found = false;
	for (k : 0 .. WAL - 1) {
		if
		:: k < wal_len && wal[k].kind == ROW && wal[k].lsn == the_lsn &&
		    wal[k].txn == the_txn -> found = true
		:: else
		fi
	}
}

inline check_all() {
	for (m : 1 .. TXNS) {
		if
		:: acknowledged[m] -> find_row(acknowledged[m], m, is_there);
			assert(is_there)
		:: else
		fi;
		if
		:: rejected[m] ->
			for (k : 0 .. WAL - 1) {
				assert(k >= wal_len || wal[k].kind != ROW ||
				    wal[k].txn != m)
			}
		:: else
		fi
	}
	for (n : 0 .. NODES - 1) {
		for (m : 1 .. TXNS + 1) {
			if
			:: m <= disk[n].rows ->
				find_row(m, disk[n].txn[m], is_there);
				assert(is_there)
			:: else
			fi
		}
	}
	m = 0; n = 0; k = 0; is_there = false
}

/* ---- PostgreSQL ---- */

inline count() {
	seen_epoch = 0; seen_rows = 0; last_epoch = 0; all_rows = 0;
	pending_leases = 0; pending_renewals = 0; pending_rows = 0;
	for (k : 0 .. WAL - 1) {
		if
		:: k < wal_len && wal[k].kind == LEASE ->
			last_epoch = wal[k].epoch;
			if
			:: wal[k].visible -> seen_epoch = wal[k].epoch
			:: else -> pending_leases++
			fi
		:: k < wal_len && wal[k].kind == ROW ->
			all_rows++;
			if
			:: wal[k].visible -> seen_rows++
			:: else -> pending_rows++
			fi
		:: k < wal_len && wal[k].kind == RENEWAL ->
			pending_renewals = pending_renewals +
			    (wal[k].visible -> 0 : 1)
		:: else
		fi
	}
	k = 0
}

inline append(what, its_epoch, its_lsn, its_txn) {
	if
	:: what == LEASE -> assert(its_epoch > last_epoch)
	:: else -> assert(its_epoch == last_epoch)
	fi;
	for (k : 0 .. WAL - 1) {
		assert(what != ROW || k >= wal_len || wal[k].kind != ROW ||
		    wal[k].lsn != its_lsn)
	}
	wal[wal_len].kind = what;
	wal[wal_len].epoch = its_epoch;
	wal[wal_len].lsn = its_lsn;
	wal[wal_len].txn = its_txn;
	wal[wal_len].visible = false;
	at = wal_len;
	began = timeline;
	wal_len++;
	count()
}

inline new_timeline() {
	for (k : 0 .. WAL - 1) {
		if
		:: k < wal_len -> wal[k].visible = true
		:: else ->
			wal[k].kind = NONE; wal[k].epoch = 0; wal[k].lsn = 0;
			wal[k].txn = 0; wal[k].visible = false
		fi
	}
	for (n : 0 .. NODES - 1) {
		shared[n] = false
	}
	timeline++;
	n = 0;
	count()
}

#define LATE_FENCE(x)                                                          \
	(wal_len < WAL && pending_leases == 0 && pending_rows == 0 &&          \
	    seen_epoch == late[x].epoch && seen_rows == late[x].lsn - 1)

active proctype postgres() {
	byte i, k, m, n, at, began;
	bool is_there;

end:	do
	:: d_step { replicated < wal_len ->
		wal[replicated].visible = true;
		replicated++;
		count() }
	/* The standby becomes the primary, without the last entries. */
	:: d_step { faults < FAULTS ->
		faults++;
		wal_len = replicated;
		new_timeline();
		check_all() }
	/* The primary starts again: commits that waited are visible. */
	:: d_step { faults < FAULTS ->
		faults++;
		new_timeline() }
	/* A commit that waits is cancelled: COMMIT with a warning. */
	:: d_step { faults < FAULTS && replicated < wal_len ->
		i = replicated;
		do
		:: i < wal_len - 1 && wal[i].visible -> i++
		:: else -> break
		od;
		wal[i].visible = true;
		faults++;
		i = 0;
		count() }
	/* synchronous_standby_names is emptied, or set again and not yet read
	 * by the checkpointer: no commit waits, and none has a warning. */
	:: d_step { faults < FAULTS && replicated < wal_len ->
		for (i : replicated .. wal_len - 1) {
			wal[i].visible = true
		}
		faults++;
		i = 0;
		count() }
	/* The batch of a dead client: fence, row and COMMIT. */
	:: d_step { late[0].txn != 0 && LATE_FENCE(0) ->
		append(ROW, late[0].epoch, late[0].lsn, late[0].txn);
		late[0].txn = 0; at = 0; began = 0 }
	:: d_step { late[1].txn != 0 && LATE_FENCE(1) ->
		append(ROW, late[1].epoch, late[1].lsn, late[1].txn);
		late[1].txn = 0; at = 0; began = 0 }
	/* A timeout, or the new leader, ends the session of a fence. */
	:: d_step { shared[0] -> shared[0] = false }
	:: d_step { shared[1] -> shared[1] = false }
	od
}

/* ---- a node ---- */

#ifdef TRUST_COMMIT
#define TRUSTS_COMMIT true
#else
#define TRUSTS_COMMIT false
#endif

/* Waits for the commit of the entry AT, then reads the standby's position. */
inline wait_commit(ok) {
	if
	:: d_step { began == timeline && wal[at].visible &&
	    at < replicated -> ok = true }
	:: d_step { began == timeline && wal[at].visible &&
	    at >= replicated -> ok = TRUSTS_COMMIT }
	:: d_step { began != timeline -> ok = false }
	:: d_step { faults < FAULTS -> faults++; ok = false } /* a cut socket */
	fi
}

inline publish(a_row, its_id) {
	assert(disk[me].rows == a_row - 1);
	disk[me].rows = a_row;
	disk[me].txn[a_row] = its_id;
	find_row(a_row, its_id, is_there);
	assert(is_there);
	k = 0; is_there = false
}

/* Applies the visible rows before the entry LIMIT that this node lacks. */
inline apply_all(limit) {
	for (m : 0 .. WAL - 1) {
		if
		:: m < wal_len && m < limit && wal[m].kind == ROW &&
		    wal[m].visible && wal[m].lsn == disk[me].rows + 1 ->
			publish(wal[m].lsn, wal[m].txn)
		:: else
		fi
	}
	m = 0
}

#ifdef NO_KEY_UPDATE
#define MAY_TAKE true
#else
#define MAY_TAKE (PENDING == 0 && !shared[0] && !shared[1])
#endif
#ifdef NO_SHARE
#define SHARE skip
#define MAY_INSERT true
#else
#define SHARE shared[me] = true
#define MAY_INSERT shared[me]
#endif
#ifdef OTHER_CONNECTION
#define SAME_CONNECTION true
#else
#define SAME_CONNECTION (read == timeline)
#endif
#ifdef KEEP_EPOCH
#define KILLED again
#else
#define KILLED follow
#endif
#ifdef APPLY_UNPROVEN
#define PROVEN true
#else
#define PROVEN (replicated >= seen)
#endif

active [NODES] proctype node() {
	byte me = _pid - 1, at, began, read, seen, k, m, n, epoch, lsn, txn;
	bool ok, is_there, was_sent;

follow:
	skip;
	d_step { shared[me] = false; epoch = 0; lsn = 0; txn = 0; at = 0;
		began = 0; read = 0; seen = 0; was_sent = false; ok = false;
		is_there = false };
end:	do
	/* Reads rows, and applies them when a synchronous commit on the same
	 * connection has shown that the quorum has them. */
	:: d_step { seen_rows > disk[me].rows ->
		read = timeline; seen = wal_len };
		if
		:: d_step { read == timeline && PROVEN -> apply_all(seen) }
		:: d_step { read != timeline -> skip }
		fi;
		goto follow
	/* Takes over: a key update, which waits for every fence. */
	:: d_step { wal_len < WAL && MAY_TAKE ->
		epoch = seen_epoch + 1;
		append(LEASE, epoch, 0, 0) };
		wait_commit(ok);
		if
		:: ok -> break
		:: else -> goto follow
		fi
	od;
	skip;
	d_step {
#ifndef OPEN_EARLY
		apply_all(at);
#endif
		/* Unless a different node has taken over meanwhile. */
		assert(last_epoch != epoch || disk[me].rows == all_rows);
		ok = false }

#ifdef KEEP_EPOCH
	goto lead;

again:	/* A new process with the former epoch. */
	skip;
	d_step { apply_all(wal_len); find_row(lsn, txn, is_there);
		rejected[txn] = !is_there; is_there = false; k = 0;
		was_sent = false };
#endif

lead:	/* The next batch. */
	if
	:: d_step { last_txn < TXNS -> last_txn++; txn = last_txn;
		lsn = disk[me].rows + 1; was_sent = false }
	:: d_step { faults < FAULTS -> faults++ }; goto follow /* kill -9 */
	fi;
#ifdef PUBLISH_FIRST
	d_step { disk[me].rows = lsn; disk[me].txn[lsn] = txn };
#endif

send:	/* The fence, which locks the lease; then the row, and COMMIT. */
	if
	:: d_step { pending_leases == 0 && seen_epoch == epoch ->
		began = timeline; SHARE }
	/* A different epoch, or the setting is empty. */
	:: d_step { pending_leases == 0 ->
		rejected[txn] = !was_sent };
		goto follow
	:: d_step { faults < FAULTS && late[me].txn == 0 -> faults++;
		late[me].epoch = epoch; late[me].lsn = lsn;
		late[me].txn = txn; was_sent = true };
		if
		:: goto KILLED
		:: goto doubt /* a cut socket */
		fi
	fi;
	if
	:: d_step { wal_len < WAL && began == timeline && MAY_INSERT &&
		pending_rows == 0 && seen_rows == lsn - 1 ->
		append(ROW, epoch, lsn, txn);
		shared[me] = false; was_sent = true }
	/* The LSN has a row: this one, or that of a different leader. */
	:: d_step { pending_rows == 0 && seen_rows >= lsn ->
		shared[me] = false }; goto doubt
	:: d_step { began != timeline || !MAY_INSERT -> shared[me] = false };
		goto send
	:: d_step { faults < FAULTS -> faults++; shared[me] = false };
		goto doubt
	fi;
	wait_commit(ok);
	if
	:: ok -> goto done
	:: else
	fi;

doubt:	/* Reads by the id, then commits a renewal on the same connection. */
	skip;
	d_step { is_there = false; read = timeline;
		for (m : 0 .. WAL - 1) {
			if
			:: m < wal_len && wal[m].kind == ROW &&
			    wal[m].txn == txn && wal[m].visible ->
				is_there = true
			:: else
			fi
		}
		m = 0 };
#ifdef TRUST_READING
	if
	:: is_there -> goto done
	:: else
	fi;
#endif
#ifdef REJECT_ABSENT
	if
	:: !is_there -> d_step { rejected[txn] = true }; goto follow
	:: else
	fi;
#endif
	if
	:: d_step { wal_len < WAL && pending_leases == 0 &&
		pending_renewals == 0 && seen_epoch == epoch &&
		SAME_CONNECTION ->
		append(RENEWAL, epoch, 0, 0) }
	:: d_step { read != timeline -> skip }; goto doubt
	:: d_step { pending_leases == 0 && seen_epoch != epoch -> skip };
		goto follow
	:: d_step { faults < FAULTS -> faults++ }; goto follow
	fi;
	wait_commit(ok);
	if
	:: !ok -> goto doubt
	:: ok && is_there
	:: ok && !is_there -> goto send
	fi;

done:	skip;
	d_step { ok = false; is_there = false;
#ifndef PUBLISH_FIRST
		publish(lsn, txn);
#endif
	};
	if
	:: d_step { acknowledged[txn] = lsn; find_row(lsn, txn, is_there);
		assert(is_there); is_there = false; k = 0; txn = 0; lsn = 0;
		at = 0; began = 0; read = 0; was_sent = false }; goto lead
	:: d_step { faults < FAULTS -> faults++ }; goto follow
	fi
}
