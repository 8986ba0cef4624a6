/*
 * The service: joins the daemon and the log of the group, as a leader or as a
 * follower. The main thread, beside lease_keeper.h and hold_thread.h. The happy
 * path:
 *
 *	1. The daemon's HELLO has the node and the last applied LSN.
 *	2. The daemon gets ROLE as a follower, with the uuid of the group.
 *	3. If this node has the lease, it sends the rows to the daemon, and
 *	   takes the next epoch. So no session of an earlier process can insert
 *	   a row any longer.
 *	4. The daemon gets the rest of the rows behind its last LSN, also rows
 *	   of its own earlier process, and then ROLE. A leader appends batches,
 *	   a follower reads rows and looks at the lease.
 *	5. The lease of the leader is over, or the leader has given it to this
 *	   node: a follower takes the lease, reads the log to its end, and is
 *	   the leader.
 *
 * Failures: while PostgreSQL is away, the service tries again. A leader that
 * has lost the lease settles its transaction, and is a follower then, because
 * another node may lead already. A different group and a log that ends too
 * early end the program.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/group/service/guard.h"
#include "daemon/group/service/service_internal.h"
#include "daemon/group/service/verbs.h"
#include "proto/lib/clock.h"

#define TURN_MS  200 /* between two looks at lease and log */
#define PAUSE_MS 200
#define BOOT_ID  "/proc/sys/kernel/random/boot_id"
#define NEXT_MS  20 /* the same, if this node shall lead */
#define WISH_MS  1000
#define NOTE_MS  1000
#define TELL_MS  60000
/* Bytes of rows that the daemon has neither applied nor put off. */
#define UNTAKEN (32 * 1024 * 1024)

void service_report(struct service *v, const char *doing, const char *why)
{
	uint64_t now = clock_now_ms();
	struct service_told *t = v->failures;

	while (t->doing && strcmp(t->doing, doing) != 0)
		t++;
	if (t->doing && now - t->ms < TELL_MS)
		return;
	*t = (struct service_told){ doing, now };
	say_warning("%s: %s", doing, why ? why : "failed");
}

bool service_retry(struct service *v, const char *doing)
{
	service_report(v, doing, v->log.s.why.data);
	v->stops |= daemon_link_await_stop(&v->link, PAUSE_MS);
	return !v->stops;
}

/* After a restored backup, the log can have other rows than this node, so the
 * last row is compared. False: not known. */
static bool check_end(struct service *v)
{
	static const uint8_t none[GROUP_UUID_BYTES];
	bool differs = false;
	uint64_t last;

	if (!group_log_last(&v->log, &last) ||
	    (memcmp(v->last_id, none, sizeof(none)) != 0 &&
		!group_log_compare(&v->log, v->last, v->last_id, &differs)))
		return false;
	if (v->last <= last && !differs)
		return true;
	if (!group_log_prove(&v->log, v->told.epoch, 0))
		return false;
	if (differs)
		group_log_refuse(&v->log,
		    xasprintf(
			"this node has applied another row with LSN %llu than "
			"the group's log has: PostgreSQL was at an earlier "
			"time, so stop the units of this node, and run refd "
			"group join",
			(unsigned long long)v->last));
	group_log_refuse(&v->log,
	    xasprintf("this node has applied LSN %llu, and the log of the "
		      "group ends at LSN %llu: PostgreSQL is at an earlier "
		      "time, so restore a later one, or make a new group",
		(unsigned long long)v->last, (unsigned long long)last));
}

bool service_connect(struct service *v)
{
	if (v->log.s.conn)
		return true;
	switch (group_log_open(&v->log)) {
	case SESSION_OK:
		return check_end(v);
	case SESSION_WRONG:
		die("%s", v->log.s.why.data);
	case SESSION_AWAY:
		break;
	}
	return false;
}

/* ---- roles ---- */

static void send_role(struct service *v, const struct lease *lease)
{
	struct group_frame f = { .type = GROUP_ROLE };

	f.role.is_leader = v->epoch != 0;
	f.role.epoch = lease->epoch;
	f.role.lsn = v->last;
	memcpy(f.role.group, v->log.group, sizeof(f.role.group));
	strcpy(f.role.leader, lease->owner);
	daemon_link_send(&v->link, &f);
}

/* The daemon needs the uuid of the group before the first row. LEASE is not
 * proven, so its epoch is not kept. */
static void greet(struct service *v, const struct lease *lease)
{
	if (*v->told.owner)
		return;
	send_role(v, lease);
	strcpy(v->told.owner, lease->owner);
}

/* Tells the daemon the role of this node by LEASE. */
static void tell_role(struct service *v, const struct lease *lease)
{
	send_role(v, lease);
	if (v->epoch)
		say("leads the group '%s' in epoch %llu, from LSN %llu on",
		    v->config->name, (unsigned long long)lease->epoch,
		    (unsigned long long)v->last);
	else
		say("follows '%s' in the group '%s', epoch %llu", lease->owner,
		    v->config->name, (unsigned long long)lease->epoch);
	v->told = *lease;
	v->has_role = true;
	hold_thread_set(v->holds, lease->epoch);
}

static void send_current(struct service *v, uint64_t ms)
{
	struct group_frame f = { .type = GROUP_CURRENT, .current.ms = ms };

	v->current_ms = ms;
	daemon_link_send(&v->link, &f);
}

/* Tells a leader how long the lease lasts, also while a transaction is in
 * work. */
static bool tell_lease(void *arg)
{
	struct service *v = arg;
	uint64_t until = lease_keeper_until(v->keeper);

	if (v->epoch && until > v->current_ms)
		send_current(v, until);
	return false;
}

static void send_row(void *arg, uint64_t lsn, uint64_t epoch,
    const struct group_row *row)
{
	struct group_frame f = { .type = GROUP_ROW };
	struct service *v = arg;

	f.row.lsn = lsn;
	f.row.epoch = epoch;
	f.row.row = *row;
	daemon_link_send(&v->link, &f);
	v->untaken += row->record.len + row->objects.len;
	v->last = lsn;
	memcpy(v->last_id, row->id, sizeof(v->last_id));
}

/* The daemon can be slow, and asks for objects. So its frames must be read
 * while many rows are on their way: otherwise both sides would wait. */
static void await_room(struct service *v)
{
	while (v->untaken > UNTAKEN && v->taken < v->last && !v->stops)
		batches_follow(v, TURN_MS);
	if (v->taken == v->last)
		v->untaken = 0;
}

/* Sends all rows behind v->last. False: failed. */
static bool send_rows(struct service *v)
{
	long nr = 1;

	while (nr > 0 && !v->stops) {
		nr = group_log_read(&v->log, v->last, v->applied, send_row, v);
		await_room(v);
	}
	return nr == 0;
}

/* Sends all rows up to the end of the log at a moment after the start of EPOCH.
 * Reading no row does not prove the end, because an old primary has no later
 * rows. So the session is proven, too. */
static bool send_whole_log(struct service *v, uint64_t epoch)
{
	return service_connect(v) && send_rows(v) &&
	    group_log_prove(&v->log, epoch, v->applied);
}

/* True: this node has the lease now, in the epoch that LEASE then has. A daemon
 * that hangs cannot lead, and its node would keep the lease from other nodes.
 * So the result is false if the daemon is silent. */
static bool take_lease(struct service *v, struct lease *lease)
{
	uint64_t until = lease_now_ms() + v->config->lease_ms;
	enum lease_result result;

	if (daemon_link_is_silent(&v->link))
		return false;
	result = lease_take(&v->log.s, lease->epoch);
	if (result == LEASE_FAILED)
		service_report(v, "taking the lease", v->log.s.why.data);
	if (result != LEASE_DONE)
		return false;
	lease->epoch++;
	strcpy(lease->owner, v->config->node);
	lease->is_over = false;
	lease_keeper_set(v->keeper, lease->epoch, until);
	return true;
}

/* True: the daemon has applied the whole log. The wait has a limit. Otherwise
 * this node could have the lease without end, and never open for writes. */
static bool await_daemon(struct service *v)
{
	uint64_t end = clock_now_ms() + v->config->lease_ms;

	while (v->applied < v->last && !v->stops) {
		if (clock_now_ms() > end)
			return false;
		batches_follow(v, TURN_MS);
	}
	return true;
}

/* Sends the rest of the log to the daemon, and then the role. False: not yet.
 * The epoch of LEASE may never have been proven, so a failover can take it
 * away. So after false, the next turn begins with another look at the lease. */
static bool begin_role(struct service *v, const struct lease *lease, bool leads)
{
	if (!send_whole_log(v, lease->epoch)) {
		lease_keeper_set(v->keeper, 0, 0);
		return false;
	}
	if (leads && !await_daemon(v)) {
		service_report(v, "leading",
		    "the daemon has not applied the log in time, so this node "
		    "gives the lease up");
		lease_keeper_set(v->keeper, 0, 0);
		lease_leave(&v->log.s, lease->epoch);
		leads = false;
	}
	v->epoch = leads ? lease->epoch : 0;
	v->current_ms = v->look_ms = 0;
	tell_lease(v);
	tell_role(v, lease);
	return true;
}

static bool is_mine(const struct service *v, const struct lease *lease)
{
	return !strcmp(lease->owner, v->config->node);
}

/* ---- the start ---- */

static void check_hello(const struct service *v, const struct group_frame *f)
{
	if (f->type != GROUP_HELLO)
		die("the daemon has not begun with HELLO");
	if (strcmp(f->hello.node, v->config->node) != 0)
		die("the daemon is the node '%s', and refd-group is the node "
		    "'%s': group.node must be the same",
		    f->hello.node, v->config->node);
}

/* The name can be of this machine before it booted again. */
static void await_name(struct service *v)
{
	uint64_t now = lease_now_ms();

	if (!v->name_ms)
		v->name_ms = now + GROUP_LOG_NAME_MS + PAUSE_MS;
	else if (now > v->name_ms)
		die("%s", v->log.s.why.data);
}

static bool begin(struct service *v)
{
	struct lease lease;
	bool leads = false;

	if (!service_connect(v) || !lease_look(&v->log.s, &lease))
		return false;
	/* An old copy of the node has a lower number than before. */
	switch (group_log_begin(&v->log, v->applied)) {
	case SESSION_OK:
		break;
	case SESSION_WRONG:
		await_name(v);
		return false;
	case SESSION_AWAY:
		return false;
	}
	greet(v, &lease);
	/* A node that cannot get the rows must leave the lease to others. */
	if (is_mine(v, &lease) &&
	    !(send_rows(v) && (leads = take_lease(v, &lease))))
		return false;
	return begin_role(v, &lease, leads);
}

static void start(struct service *v)
{
	struct daemon_frame *hello;
	const struct group_frame *f;

	while (!(hello = daemon_link_next(&v->link, -1)))
		continue;
	f = &hello->frame;
	check_hello(v, f);
	memcpy(v->log.group, f->hello.group, sizeof(v->log.group));
	v->applied = f->hello.applied;
	v->taken = v->last = f->hello.last;
	while (!begin(v) && service_retry(v, "the start"))
		continue;
	daemon_frame_free(hello);
}

/* ---- turns ---- */

/* Writes down what is applied, for the commands of refd group, about once a
 * second. A follower proves its looks at the log instead. */
static void note_applied(struct service *v)
{
	uint64_t now = lease_now_ms();

	if (v->applied == v->noted || now - v->noted_ms < NOTE_MS)
		return;
	v->noted_ms = now;
	if (v->log.s.conn && group_log_note(&v->log, v->applied))
		v->noted = v->applied;
}

/* Another node has the lease. The next turn reads which one. */
static void step_down(struct service *v)
{
	lease_keeper_set(v->keeper, 0, 0);
	v->epoch = 0;
	v->is_lost = v->has_role = false;
}

/* Looks about once a second for a wish of refd group promote. */
static bool is_wished(struct service *v, struct lease *lease)
{
	uint64_t now = clock_now_ms();

	if (now - v->wish_ms < WISH_MS || !v->log.s.conn)
		return false;
	v->wish_ms = now;
	return lease_look(&v->log.s, lease) && lease->epoch == v->epoch &&
	    lease->is_wished;
}

/* Closes the daemon for updates before the lease goes to the successor. The
 * successor can take rows before the lease of this node ends, and the daemon
 * could then say "never seen" for an id of the successor. False: the service
 * stops. */
static bool close_daemon(struct service *v, const struct lease *lease)
{
	v->epoch = v->follows = 0;
	send_role(v, lease);
	while (v->follows != lease->epoch && !v->stops)
		batches_follow(v, NEXT_MS);
	if (v->stops)
		v->epoch = lease->epoch;
	return !v->stops;
}

/* No batch is in work. True: this node is a follower, and may take the lease
 * again if the successor has not got it. */
static bool hand_over(struct service *v)
{
	struct lease lease;

	if (!is_wished(v, &lease))
		return false;
	strcpy(lease.owner, lease.successor);
	strcpy(v->told.owner, lease.successor);
	if (!close_daemon(v, &lease))
		return false;
	if (lease_hand(&v->log.s, lease.epoch) == LEASE_DONE)
		say("has given the lead to '%s'", lease.successor);
	return true;
}

static void turn_leader(struct service *v)
{
	batches_lead(v, TURN_MS);
	tell_lease(v);
	if (v->is_lost || lease_keeper_has_lost(v->keeper) || hand_over(v))
		step_down(v);
	else
		note_applied(v);
}

/* Proves a look at the log, and tells the daemon when it had all rows. Each
 * proof is a commit, so this is done about once a second. LOOK_MS is a time
 * before the log was read to its end. False: the proof failed. */
static bool prove_look(struct service *v, uint64_t look_ms)
{
	bool is_due = look_ms - v->noted_ms >= NOTE_MS &&
	    !daemon_link_is_silent(&v->link);
	bool is_proven = true;

	if (is_due) {
		v->noted_ms = look_ms;
		is_proven = group_log_prove(&v->log, v->told.epoch, v->applied);
	}
	if (is_due && is_proven && v->look_ms == 0) {
		v->look_ms = look_ms;
		v->look_lsn = v->last;
	}
	if (v->look_ms != 0 && v->applied >= v->look_lsn) {
		send_current(v, v->look_ms);
		v->look_ms = 0;
	}
	return is_proven;
}

/* False: failed. */
static bool follow_lease(struct service *v)
{
	uint64_t look_ms = lease_now_ms();
	struct lease lease;

	/* The rows come after the look at the lease. So the log is read to its
	 * end if the leader has given the lease to this node. */
	if (!service_connect(v) || !lease_look(&v->log.s, &lease) ||
	    !send_rows(v))
		return false;
	v->is_next = (lease.is_wished || lease.is_handed) &&
	    !strcmp(lease.successor, v->config->node);
	if (lease.is_over || is_mine(v, &lease)) {
		/* A daemon that waits for a lock cannot lead. */
		return v->applied != v->last || !take_lease(v, &lease) ||
		    begin_role(v, &lease, true);
	}
	if (lease.epoch > v->told.epoch || !v->has_role)
		return begin_role(v, &lease, false);
	return prove_look(v, look_ms);
}

/* Waits for the next look at lease and log. While the daemon is busy with rows,
 * each of its frames is no reason for another look, which needs a commit. */
static void await_turn(struct service *v)
{
	uint64_t end = clock_deadline_ms(v->is_next ? NEXT_MS : TURN_MS), now;

	while (!v->stops && (now = clock_now_ms()) < end) {
		batches_follow(v, (int)(end - now));
		if (v->taken == v->last)
			break;
	}
}

static void turn_follower(struct service *v)
{
	await_turn(v);
	if (!v->stops && !follow_lease(v) && !v->stops)
		service_report(v, "following the log", v->log.s.why.data);
}

/* Ends the lease, so that a follower can take it at once. */
static void leave(struct service *v)
{
	lease_keeper_end(v->keeper);
	v->log.s.tick = NULL; /* asks the keeper */
	if (v->epoch && v->log.s.conn)
		lease_leave(&v->log.s, v->epoch);
}

/* The directory for git is in the state directory of the daemon. */
static struct hold_thread *start_holds(struct service *v, const char *path)
{
	const char *slash = strrchr(path, '/');
	char *dir = slash ?
	    xasprintf("%.*s/group-git", (int)(slash - path), path) :
	    xstrdup("group-git");
	struct hold_thread *holds =
	    hold_thread_start(v->config, v->log.s.machine, &v->link, dir);

	free(dir);
	return holds;
}

/* The name of this machine: its boot, and the state directory, in which PATH
 * is. A copied machine has a new boot and a new directory. The id of the
 * machine and the journal are the same in a copy, so they would not tell two
 * machines apart. */
static char *name_machine(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *dir = slash ? xasprintf("%.*s/", (int)(slash - path), path) :
			    xstrdup(".");
	struct text boot = { 0 };
	struct stat st = { 0 };
	char *name;

	if (stat(dir, &st) < 0 || text_read_file(&boot, BOOT_ID, 64) < 0)
		die("cannot read '%s' and '%s', which tell this machine from "
		    "others",
		    dir, BOOT_ID);
	name = xasprintf("%.36s %llu:%llu", boot.data,
	    (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
	text_done(&boot);
	free(dir);
	return name;
}

int service_run(const struct group_config *config,
    const struct verb_options *opt)
{
	const char *path = opt->socket;
	char *machine = name_machine(path);
	struct service v = { .config = config,
		.log.s = { .config = config,
		    .machine = machine,
		    .tick = tell_lease,
		    .tick_arg = &v } };

	guard_make_all(config);
	daemon_link_open(&v.link, path);
	v.keeper = lease_keeper_start(config, &v.link);
	v.holds = start_holds(&v, path);
	start(&v);
	while (!v.stops)
		if (v.epoch)
			turn_leader(&v);
		else
			turn_follower(&v);
	leave(&v);
	hold_thread_end(v.holds);
	say("stops, as the daemon wishes");
	group_log_done(&v.log);
	daemon_link_close(&v.link);
	free(machine);
	return EXIT_DONE;
}
