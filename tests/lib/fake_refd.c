#include "tests/lib/fake_refd.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "proto/lib/clock.h"
#include "proto/verb.h"
#include "proto/wire.h"
#include "tests/lib/tmp.h"

#define IN_MAX (4 * REFD_PACKET_MAX)

void fake_expect(struct fake *f, int condition, const char *what)
{
	if (!condition && !f->wrong[0])
		snprintf(f->wrong, sizeof(f->wrong), "%s", what);
}

static void hang_up(struct fake *f)
{
	if (f->conn >= 0)
		close(f->conn);
	f->conn = -1;
	refd_request_decoder_free(f->dec);
	f->dec = NULL;
}

static void stop_listening(struct fake *f)
{
	if (f->listener >= 0)
		close(f->listener);
	f->listener = -1;
	unlink(f->path);
}

static void *run(void *arg)
{
	struct fake *f = arg;

	f->script(f);
	hang_up(f);
	return NULL;
}

static void play_steps(struct fake *f)
{
	fake_play(f, f->steps);
}

static void start(struct fake *f, void (*script)(struct fake *f),
    const char *steps)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	memset(f, 0, sizeof(*f));
	f->script = script;
	f->steps = steps;
	f->conn = -1;
	f->in = malloc(IN_MAX);
	ck_assert_ptr_nonnull(f->in);
	snprintf(f->path, sizeof(f->path), "%s/sock", tmp_root);
	ck_assert_uint_lt(strlen(f->path), sizeof(addr.sun_path));
	strcpy(addr.sun_path, f->path);
	f->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_ge(f->listener, 0);
	ck_assert_int_eq(
	    bind(f->listener, (struct sockaddr *)&addr, sizeof(addr)), 0);
	ck_assert_int_eq(listen(f->listener, 8), 0);
	ck_assert_int_eq(pthread_create(&f->thread, NULL, run, f), 0);
}

void fake_start(struct fake *f, const char *steps)
{
	start(f, play_steps, steps);
}

void fake_start_script(struct fake *f, void (*script)(struct fake *f))
{
	start(f, script, NULL);
}

/* Connects in the place of a client that never came, so the script's accept()
 * returns. */
static void come(struct fake *f)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	ck_assert_int_ge(fd, 0);
	strcpy(addr.sun_path, f->path);
	/* Nobody listens any more, or enough clients wait. */
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		ck_assert(errno == ENOENT || errno == ECONNREFUSED ||
		    errno == EAGAIN);
	close(fd);
}

void fake_stop(struct fake *f)
{
	struct timespec until;
	int r;

	do {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += 20;
		r = pthread_timedjoin_np(f->thread, NULL, &until);
		if (r == ETIMEDOUT)
			come(f);
	} while (r == ETIMEDOUT);
	ck_assert_int_eq(r, 0);
	stop_listening(f);
	free(f->in);
	refd_request_done(&f->first);
	ck_assert_msg(!f->wrong[0], "the server: %s", f->wrong);
}

void fake_accept(struct fake *f)
{
	hang_up(f);
	f->conn = accept4(f->listener, NULL, NULL, SOCK_CLOEXEC);
	fake_expect(f, f->conn >= 0, "accept");
	f->dec = refd_request_decoder_new();
	f->in_len = 0;
}

void fake_send(struct fake *f, const void *data, size_t len)
{
	const char *at = data;
	ssize_t n;

	while (len) {
		n = send(f->conn, at, len, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			fake_expect(f, 0, "send");
			return;
		}
		at += n;
		len -= (size_t)n;
	}
}

static void add_hello(struct pkt_buf *buf, enum refd_server_state state,
    uint32_t max_updates)
{
	struct refd_hello hello = { .version = REFD_PROTOCOL_VERSION,
		.state = state,
		.pid = 1,
		.max_updates = max_updates,
		.max_bytes = REFD_TXN_BYTES_MAX,
		.software = "fake" };

	refd_hello_encode(&hello, buf);
}

static void greet(struct fake *f, enum refd_server_state state,
    uint32_t max_updates)
{
	struct pkt_buf buf = { 0 };

	fake_accept(f);
	add_hello(&buf, state, max_updates);
	fake_send(f, buf.data, buf.len);
	pkt_buf_done(&buf);
}

void fake_serve(struct fake *f)
{
	greet(f, REFD_SERVING, REFD_UPDATES_MAX);
}

static void turn_away(struct fake *f, enum refd_status status)
{
	struct refd_answer no = { .kind = REFD_ANSWER_REFUSED,
		.status = status,
		.text = FAKE_WHY };
	struct pkt_buf buf = { 0 };

	fake_accept(f);
	add_hello(&buf, REFD_SERVING, 1);
	refd_answer_encode(&no, &buf);
	fake_send(f, buf.data, buf.len);
	pkt_buf_done(&buf);
	hang_up(f);
}

static int read_more(struct fake *f)
{
	ssize_t n = recv(f->conn, f->in + f->in_len, IN_MAX - f->in_len, 0);

	if (n > 0)
		f->in_len += (size_t)n;
	return n > 0;
}

void fake_read(struct fake *f, struct refd_request *req)
{
	enum refd_decoded state = REFD_DECODE_MORE;
	enum refd_status status;
	const char *why;
	struct pkt pkt;
	long taken;

	memset(req, 0, sizeof(*req));
	while (state == REFD_DECODE_MORE) {
		taken = f->in_len ? pkt_parse(f->in, f->in_len, &pkt) : 0;
		if (taken > 0) {
			state = refd_request_decode(f->dec, &pkt, req, &status,
			    &why);
			f->in_len -= (size_t)taken;
			memmove(f->in, f->in + taken, f->in_len);
		} else if (taken < 0 || !read_more(f)) {
			break;
		}
	}
	fake_expect(f, state == REFD_DECODE_DONE, "no whole request");
}

void fake_answer(struct fake *f, const struct refd_answer *ans)
{
	struct pkt_buf buf = { 0 };

	refd_answer_encode(ans, &buf);
	fake_send(f, buf.data, buf.len);
	pkt_buf_done(&buf);
}

void fake_answer_kind(struct fake *f, const struct refd_request *req,
    enum refd_answer_kind kind)
{
	struct refd_answer ans = { .kind = kind,
		.request_id = req->request_id,
		.txid = req->txid };

	fake_answer(f, &ans);
}

void fake_refuse(struct fake *f, const struct refd_request *req,
    enum refd_status status, const char *text)
{
	struct refd_answer no = { .kind = REFD_ANSWER_REFUSED,
		.request_id = req->request_id,
		.txid = req->txid,
		.status = status,
		.text = text };

	fake_answer(f, &no);
}

/* AS is the answer without the members of REQ. Each result is STATUS. */
static void answer_each(struct fake *f, const struct refd_request *req,
    const struct refd_answer *as, enum refd_status status)
{
	struct refd_result *results;
	struct refd_answer ans = *as;
	size_t i;

	ans.request_id = req->request_id;
	ans.txid = req->txid;
	ans.nr_results = ans.nr_updates = req->nr_updates;
	ans.lsn = 7;
	results = calloc(req->nr_updates + 1, sizeof(*results));
	fake_expect(f, results != NULL, "out of memory");
	for (i = 0; results && i < req->nr_updates; i++) {
		results[i].name = req->updates[i].name;
		results[i].status = status;
		if (ans.kind == REFD_ANSWER_PREPARED &&
		    strcmp(results[i].name, "HEAD") == 0)
			results[i].text = "refs/heads/main";
	}
	ans.results = results;
	fake_answer(f, &ans);
	free(results);
}

void fake_answer_ok(struct fake *f, const struct refd_request *req)
{
	const struct refd_answer ok = { .kind = REFD_ANSWER_RESULTS,
		.outcome = REFD_COMMITTED };

	answer_each(f, req, &ok, REFD_OK);
}

static void answer_aborted(struct fake *f, const struct refd_request *req)
{
	const struct refd_answer no = { .kind = REFD_ANSWER_RESULTS,
		.outcome = REFD_REJECTED };

	answer_each(f, req, &no, REFD_ABORTED);
}

static void answer_prepared(struct fake *f, const struct refd_request *req,
    bool rewrites_packed)
{
	const struct refd_answer held = { .kind = REFD_ANSWER_PREPARED,
		.rewrites_packed = rewrites_packed };

	answer_each(f, req, &held, REFD_OK);
}

void fake_answer_prepared(struct fake *f, const struct refd_request *req)
{
	answer_prepared(f, req, false);
}

/* ---- steps ---- */

#define STEP_MAX     80
#define STATUSES_MAX 4

static void await_end(struct fake *f)
{
	char c;

	fake_expect(f, read(f->conn, &c, 1) == 0, "more was said");
}

/* The updates of REQ, or those of the first request if REQ is about them, or
 * one, if there was no such request. */
static struct refd_request with_updates(struct fake *f,
    const struct refd_request *req)
{
	static struct refd_update one = { .name = "refs/heads/a" };
	struct refd_request whole = *req;

	if (whole.nr_updates == 0) {
		whole.updates = f->first.updates;
		whole.nr_updates = f->first.nr_updates;
	}
	if (whole.nr_updates == 0) {
		whole.updates = &one;
		whole.nr_updates = 1;
	}
	return whole;
}

static enum refd_status status_of(struct fake *f, const char *word)
{
	enum refd_status status = REFD_IO;

	fake_expect(f, refd_status_from_name(word, &status) == 0, word);
	return status;
}

static enum refd_verb verb_of(struct fake *f, const char *word)
{
	unsigned verb;

	for (verb = 0; verb < REFD_VERBS; verb++)
		if (strcmp(refd_verbs[verb].word, word) == 0)
			return (enum refd_verb)verb;
	fake_expect(f, 0, word);
	return REFD_VERB_PING;
}

static size_t nr_words(const char *words)
{
	size_t nr = 1;

	while ((words = strchr(words, ',')) != NULL) {
		words++;
		nr++;
	}
	return nr;
}

/* WORDS is "[STATUS,...]", or "[STATUS,...]LSN". */
static void answer_statuses(struct fake *f, const struct refd_request *req,
    const char *words)
{
	const struct refd_request whole = with_updates(f, req);
	struct refd_result results[STATUSES_MAX] = { 0 };
	struct refd_answer ans = { .kind = REFD_ANSWER_RESULTS,
		.request_id = whole.request_id,
		.txid = whole.txid,
		.results = results };
	size_t nr = nr_words(words), nr_ok = 0, nr_unknown = 0, len, i;
	char word[STEP_MAX];

	fake_expect(f, nr == whole.nr_updates && nr <= STATUSES_MAX,
	    "another number of updates");
	/* An answer, even a wrong one, lets the client end. */
	for (i = 0; i < STATUSES_MAX && i < nr && i < whole.nr_updates; i++) {
		words++;
		len = strcspn(words, ",]");
		snprintf(word, sizeof(word), "%.*s", (int)len, words);
		results[i].status = status_of(f, word);
		results[i].name = whole.updates[i].name;
		nr_ok += results[i].status == REFD_OK;
		nr_unknown += results[i].status == REFD_UNKNOWN;
		words += len;
	}
	ans.lsn = strtoull(words + 1, NULL, 10);
	ans.nr_results = ans.nr_updates = i;
	if (nr_unknown > 0)
		ans.outcome = REFD_OUTCOME_UNKNOWN;
	else if (nr_ok < i)
		ans.outcome = nr_ok > 0 ? REFD_PARTIAL : REFD_REJECTED;
	fake_answer(f, &ans);
}

/* WORDS is "KEY:VALUE". */
static void answer_pair(struct fake *f, const struct refd_request *req,
    const char *words)
{
	char key[STEP_MAX];
	struct refd_pair pair = { key, strchr(words, ':') + 1 };
	const struct refd_answer ans = { .kind = REFD_ANSWER_PAIRS,
		.request_id = req->request_id,
		.pairs = &pair,
		.nr_pairs = 1 };

	snprintf(key, sizeof(key), "%.*s", (int)strcspn(words, ":"), words);
	fake_answer(f, &ans);
}

/* WORD is "STATUS", or "STATUS/MS". */
static void answer_refused(struct fake *f, const struct refd_request *req,
    const char *word)
{
	struct refd_answer no = { .kind = REFD_ANSWER_REFUSED,
		.request_id = req->request_id,
		.txid = req->txid,
		.text = FAKE_WHY };
	char name[STEP_MAX];
	size_t len = strcspn(word, "/");

	snprintf(name, sizeof(name), "%.*s", (int)len, word);
	no.status = status_of(f, name);
	if (word[len] == '/')
		no.retry_after_ms = (uint32_t)strtoul(word + len + 1, NULL, 10);
	f->put_off_ms = no.retry_after_ms;
	f->not_before_ms = clock_now_ms() + no.retry_after_ms;
	fake_answer(f, &no);
}

void fake_answer_as(struct fake *f, const struct refd_request *req,
    const char *word)
{
	const struct refd_request whole = with_updates(f, req);
	enum refd_answer_kind kind;

	if (word[0] == '[')
		answer_statuses(f, req, word);
	else if (strchr(word, ':') != NULL)
		answer_pair(f, req, word);
	else if (strcmp(word, "ok") == 0)
		fake_answer_ok(f, req);
	else if (strcmp(word, "done") == 0)
		fake_answer_ok(f, &whole);
	else if (strcmp(word, "undone") == 0)
		answer_aborted(f, &whole);
	else if (strcmp(word, "prepared") == 0)
		answer_prepared(f, &whole, false);
	else if (strcmp(word, "prepared-packed") == 0)
		answer_prepared(f, &whole, true);
	else if (refd_slice_answer_kind(
		     (struct refd_slice){ word, strlen(word) }, &kind))
		fake_answer_kind(f, req, kind);
	else
		answer_refused(f, req, word);
}

static void check_id(struct fake *f, const struct refd_request *req)
{
	if (!refd_txid_is_null(&req->txid)) {
		if (refd_txid_is_null(&f->id))
			f->id = req->txid;
		fake_expect(f, refd_txid_eq(&req->txid, &f->id),
		    "another transaction");
	} else {
		fake_expect(f,
		    req->verb != REFD_VERB_QUERY &&
			req->verb != REFD_VERB_COMMIT &&
			req->verb != REFD_VERB_ABORT,
		    "no id");
	}
}

/* REQ is the first request once more. The clocks are read in milliseconds. */
static void check_again(struct fake *f, const struct refd_request *req)
{
	fake_expect(f, req->nr_updates == f->first.nr_updates, "not all of it");
	fake_expect(f, (req->deadline_ms == 0) == (f->first.deadline_ms == 0),
	    "another kind of deadline");
	fake_expect(f,
	    req->deadline_ms == 0 ||
		req->deadline_ms + f->put_off_ms <= f->first.deadline_ms + 1,
	    "more time than it had");
	fake_expect(f, clock_now_ms() + 1 >= f->not_before_ms, "too early");
}

static void take(struct fake *f, const char *verb, const char *answer)
{
	struct refd_request req;
	bool is_first;

	fake_read(f, &req);
	if (f->wrong[0] != '\0')
		return;
	is_first = refd_verb_has_updates(req.verb) && f->first.nr_updates == 0;
	fake_expect(f, req.verb == verb_of(f, verb),
	    "another request than expected");
	check_id(f, &req);
	if (is_first)
		f->first = req;
	else if (refd_verb_has_updates(req.verb))
		check_again(f, &req);
	if (answer != NULL)
		fake_answer_as(f, &req, answer);
	else
		f->open[req.verb] = req.request_id;
	if (!is_first)
		refd_request_done(&req);
}

static void answer_later(struct fake *f, const char *verb, const char *answer)
{
	struct refd_request req = { .verb = verb_of(f, verb), .txid = f->id };

	req.request_id = f->open[req.verb];
	fake_answer_as(f, &req, answer);
}

static void turn_away_late(struct fake *f, enum refd_status status)
{
	const struct refd_answer no = { .kind = REFD_ANSWER_REFUSED,
		.status = status,
		.text = FAKE_WHY };
	char c;

	fake_serve(f);
	fake_expect(f, recv(f->conn, &c, 1, MSG_PEEK) == 1, "nothing was sent");
	fake_answer(f, &no);
	hang_up(f);
}

static void forget(struct fake *f)
{
	refd_request_done(&f->first);
	memset(&f->first, 0, sizeof(f->first));
	memset(&f->id, 0, sizeof(f->id));
}

static void step(struct fake *f, const char *word, const char *answer)
{
	if (strcmp(word, "serve") == 0) {
		fake_serve(f);
	} else if (strcmp(word, "late") == 0) {
		turn_away_late(f, status_of(f, answer));
	} else if (strcmp(word, "recover") == 0) {
		greet(f, REFD_RECOVERING, REFD_UPDATES_MAX);
	} else if (strcmp(word, "serve-one") == 0) {
		greet(f, REFD_SERVING, 1);
	} else if (strcmp(word, "accept") == 0) {
		fake_accept(f);
	} else if (strcmp(word, "away") == 0) {
		turn_away(f, status_of(f, answer));
	} else if (strcmp(word, "hang-up") == 0) {
		hang_up(f);
	} else if (strcmp(word, "gone") == 0) {
		stop_listening(f);
	} else if (strcmp(word, "end") == 0) {
		await_end(f);
	} else if (strcmp(word, "garbage") == 0) {
		fake_send(f, "000bgarbage", 11);
	} else if (strcmp(word, "anew") == 0) {
		forget(f);
	} else if (strncmp(word, "later:", 6) == 0) {
		answer_later(f, word + 6, answer);
	} else {
		take(f, word, answer);
	}
}

void fake_play(struct fake *f, const char *steps)
{
	char word[STEP_MAX], *answer;
	int len;

	while (sscanf(steps, "%79s%n", word, &len) == 1) {
		steps += len;
		answer = strchr(word, '=');
		if (answer != NULL)
			*answer++ = '\0';
		step(f, word, answer);
	}
}
