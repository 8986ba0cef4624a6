#include "client/push/chain_talk.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/base/child.h"
#include "proto/lib/clock.h"
#include "proto/message.h"

#define DEADLINE_MS REFD_HOOK_DEADLINE_MS
/* The interval of checks for the end of the hook. The hook's children may keep
 * the pipe open, so standard error does not show the end. */
#define TICK_MS 20

enum stage { TALK_VERSION, TALK_REPORT, TALK_OVER };

struct talk {
	const struct push *push;
	struct partner hook;
	enum stage stage;
	bool is_gone; /* the hook has ended */
	bool is_late;
	bool wants_options;
	int version; /* of the hook */
	size_t reported;
	struct text out, in;
	size_t sent;
	size_t heard; /* bytes */
	void (*take)(void *data, const struct pkt *pkt);
	void *data;
};

/* ---- output ---- */

static void add_packet(struct text *out, const void *data, size_t len)
{
	text_addf(out, "%04zx", len + 4);
	text_add(out, data, len);
}

/* Byte for byte as git, because hooks compare the line with "version=1\n". */
static void say_version(struct talk *t)
{
	struct text line = { 0 };

	text_adds(&line, "version=1");
	if (t->push->atomic || t->push->has_options)
		text_addc(&line, '\0');
	if (t->push->atomic)
		text_adds(&line, "atomic");
	if (t->push->atomic && t->push->has_options)
		text_addc(&line, ' ');
	if (t->push->has_options)
		text_adds(&line, "push-options");
	text_addc(&line, '\n');
	add_packet(&t->out, line.data, line.len);
	text_adds(&t->out, "0000");
	text_done(&line);
}

static void say_commands(struct talk *t)
{
	char old[REFD_OID_MAX_HEX + 1], new[REFD_OID_MAX_HEX + 1];
	size_t i;

	for (i = 0; i < t->push->nr; i++) {
		const struct push_command *c = &t->push->commands[i];
		char *line;

		if (!c->is_chained)
			continue;
		line = xasprintf("%s %s %s",
		    refd_oid_hex(&c->old_oid, c->object_format, old),
		    refd_oid_hex(&c->new_oid, c->object_format, new), c->name);
		add_packet(&t->out, line, strlen(line));
		free(line);
	}
	text_adds(&t->out, "0000");
	if (t->wants_options) {
		text_add(&t->out, t->push->options.data, t->push->options.len);
		text_adds(&t->out, "0000");
	}
}

/* ---- input ---- */

static bool hears_options(const struct pkt *pkt)
{
	static const char word[] = "push-options";
	const char *nul = memchr(pkt->data, '\0', pkt->len);

	return nul &&
	    memmem(nul, (size_t)(pkt->data + pkt->len - nul), word,
		strlen(word)) != NULL;
}

/* As git, which also takes a hook that names no version. */
static void hear_version(struct talk *t, const struct pkt *pkt)
{
	char *line = xasprintf("%.*s", (int)pkt->len, pkt->data);

	if (has_prefix(line, "version=")) {
		t->version = atoi(line + strlen("version="));
		t->wants_options = t->push->has_options && hears_options(pkt);
	}
	free(line);
}

static bool is_supported(const struct talk *t)
{
	return t->version == 0 || t->version == 1;
}

static void hear(struct talk *t, const struct pkt *pkt)
{
	switch (t->stage) {
	case TALK_VERSION:
		if (pkt->kind == PKT_DATA) {
			hear_version(t, pkt);
			return;
		}
		t->stage = is_supported(t) ? TALK_REPORT : TALK_OVER;
		if (is_supported(t))
			say_commands(t);
		return;
	case TALK_REPORT:
		t->reported++;
		if (pkt->kind == PKT_DATA)
			t->take(t->data, pkt);
		else
			t->stage = TALK_OVER;
		return;
	case TALK_OVER:
		return;
	}
}

/* A hook may write without end, so bytes beyond the longest answer of the
 * daemon about the same refs are thrown away. */
static void hear_all(struct talk *t)
{
	const size_t most = refd_answer_bytes_max(t->push->nr);
	size_t taken = 0;
	struct pkt pkt;
	long n = 1;

	while (t->stage != TALK_OVER && n != 0) {
		n = pkt_parse(t->in.data + taken, t->in.len - taken, &pkt);
		if (n < 0 || t->heard + (size_t)n > most) {
			t->stage = TALK_OVER;
		} else if (n > 0) {
			taken += (size_t)n;
			t->heard += (size_t)n;
			hear(t, &pkt);
		}
	}
	t->in.len = t->stage == TALK_OVER ? 0 : t->in.len - taken;
	memmove(t->in.data, t->in.data + taken, t->in.len);
}

/* ---- back and forth ---- */

static void shut(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* A command that cannot be sent has no answer later. */
static void push_out(struct talk *t)
{
	ssize_t n =
	    write(t->hook.to, t->out.data + t->sent, t->out.len - t->sent);

	if (n > 0)
		t->sent += (size_t)n;
	else if (n < 0 && errno != EINTR && errno != EAGAIN)
		t->sent = t->out.len;
}

/* False: end of input. */
static bool pull(int fd, struct text *in)
{
	char buf[16384];
	ssize_t n = read(fd, buf, sizeof(buf));

	if (n > 0)
		text_add(in, buf, (size_t)n);
	return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
}

static void pull_answer(struct talk *t)
{
	if (!pull(t->hook.from, &t->in))
		shut(&t->hook.from);
	if (t->in.len)
		hear_all(t);
}

static void relay_errors(struct talk *t)
{
	struct text words = { 0 };
	size_t at = 0;
	ssize_t n = 1;

	if (!pull(t->hook.err, &words))
		shut(&t->hook.err);
	while (at < words.len && n > 0) {
		n = write(2, words.data + at, words.len - at);
		at += n > 0 ? (size_t)n : 0;
	}
	text_done(&words);
}

static void look_for_end(struct talk *t)
{
	t->is_gone = t->is_gone || launch_has_ended(&t->hook.child);
}

/* poll(2) ignores a descriptor of -1. */
static bool step(struct talk *t, int timeout_ms)
{
	bool sends = t->sent < t->out.len;
	struct pollfd fds[] = {
		{ .fd = sends ? t->hook.to : -1, .events = POLLOUT },
		{ .fd = t->hook.from, .events = POLLIN },
		{ .fd = t->hook.err, .events = POLLIN },
	};
	int n = poll(fds, 3, timeout_ms);

	if (n <= 0)
		return false;
	if (fds[0].revents)
		push_out(t);
	if (fds[1].revents)
		pull_answer(t);
	if (fds[2].revents)
		relay_errors(t);
	return true;
}

static bool is_over(const struct talk *t)
{
	return t->stage == TALK_OVER || t->hook.from < 0;
}

static void talk(struct talk *t, uint64_t deadline)
{
	bool goes_on = true;

	say_version(t);
	while (!is_over(t) && goes_on && clock_now_ms() < deadline) {
		goes_on = step(t, TICK_MS) || !t->is_gone;
		look_for_end(t);
	}
	t->is_late = !is_over(t) && goes_on;
	/* As in receive-pack, the hook may go on writing, but gets no more
	 * input. */
	shut(&t->hook.to);
	t->sent = t->out.len;
	while (!t->is_gone && clock_now_ms() < deadline) {
		step(t, TICK_MS);
		look_for_end(t);
	}
	while (t->hook.err >= 0 && step(t, 0))
		;
}

static void end(struct talk *t)
{
	if (!t->is_gone)
		launch_kill(&t->hook.child);
	shut(&t->hook.to);
	shut(&t->hook.from);
	shut(&t->hook.err);
	text_done(&t->in);
	text_done(&t->out);
}

/* receive-pack has the same messages, except the message about the deadline. */
static const char *judge(const struct talk *t)
{
	if (t->is_late) {
		say_error("the chained proc-receive hook was ended: no answer "
			  "within %d seconds",
		    DEADLINE_MS / 1000);
		return "outcome unknown: the chained proc-receive hook did "
		       "not answer";
	}
	if (t->stage == TALK_VERSION) {
		say_error("fail to negotiate version with proc-receive hook");
		return "fail to run proc-receive hook";
	}
	if (!is_supported(t)) {
		say_error("proc-receive version '%d' is not supported",
		    t->version);
		return "fail to run proc-receive hook";
	}
	if (t->reported)
		return "proc-receive failed to report status";
	say_error("proc-receive exited abnormally");
	return "fail to run proc-receive hook";
}

const char *chain_talk(const char *path, const struct push *push,
    void (*take)(void *data, const struct pkt *pkt), void *data)
{
	struct talk t = { .push = push, .take = take, .data = data };
	const char *why;

	if (!partner_start(&t.hook, path))
		return "fail to run proc-receive hook";
	talk(&t, clock_deadline_ms(DEADLINE_MS));
	why = judge(&t);
	end(&t);
	return why;
}
