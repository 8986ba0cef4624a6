#include "tests/lib/talk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/verb.h"
#include "proto/wire.h"

#define WORD_MAX   80
#define TIMEOUT_MS 100000 /* as good as none */
#define TURN_MS    300    /* of a wait for a server that goes */

struct talk talk;

/* musl does not know the names. */
static const struct {
	int err;
	const char *name;
} errors[] = {
	{ EBUSY, "EBUSY" },
	{ ECONNREFUSED, "ECONNREFUSED" },
	{ ECONNRESET, "ECONNRESET" },
	{ EHOSTDOWN, "EHOSTDOWN" },
	{ EINVAL, "EINVAL" },
	{ ENOENT, "ENOENT" },
	{ EPERM, "EPERM" },
	{ EPROTO, "EPROTO" },
	{ ETIMEDOUT, "ETIMEDOUT" },
};

static const char *name_of(int err)
{
	size_t i;

	for (i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (errors[i].err == -err)
			return errors[i].name;
	return err == 0 ? "0" : "another error";
}

static struct refd_request *request(enum refd_verb verb)
{
	return &talk.requests[verb];
}

static void make_transaction(void)
{
	*request(REFD_VERB_TRANSACTION) =
	    (struct refd_request){ .verb = REFD_VERB_TRANSACTION,
		    .git_dir = "/r",
		    .deadline_ms = 60000,
		    .updates = talk.updates,
		    .nr_updates = TALK_NR };
}

/* The thread of the fake server reads the updates from its first step. So
   they are made before it starts. */
static void make_requests(void)
{
	static const char *const names[TALK_NR] = { "refs/heads/a",
		"refs/heads/b", "refs/heads/c" };
	size_t i;

	for (i = 0; i < REFD_VERBS; i++)
		talk.requests[i] =
		    (struct refd_request){ .verb = (enum refd_verb)i };
	for (i = 0; i < TALK_NR; i++)
		talk.updates[i] = (struct refd_update){ .name = names[i] };
	make_transaction();
	*request(REFD_VERB_SESSION) =
	    (struct refd_request){ .verb = REFD_VERB_SESSION,
		    .git_dir = "/r",
		    .atomic = true,
		    .updates = talk.updates,
		    .nr_updates = TALK_NR };
}

static void begin(void)
{
	talk.timeout_ms = TIMEOUT_MS;
	talk.is_stopped = false;
	talk.refd = refd_new(talk.fake.path);
	ck_assert_ptr_nonnull(talk.refd);
}

void talk_begin(const char *steps)
{
	make_requests();
	fake_start(&talk.fake, steps);
	begin();
}

void talk_begin_script(void (*script)(struct fake *f))
{
	make_requests();
	fake_start_script(&talk.fake, script);
	begin();
}

static void stop(void)
{
	fake_stop(&talk.fake);
	talk.is_stopped = true;
}

void talk_end(void)
{
	refd_answer_done(&talk.answer);
	refd_free(talk.refd);
	if (!talk.is_stopped)
		stop();
}

/* ---- results ---- */

static void add_word(char *said, const char *between, const char *word)
{
	size_t len = strlen(said);

	snprintf(said + len, WORD_MAX - len, "%s%s", between, word);
}

static void say_results(const struct refd_request *req, char *said)
{
	const struct refd_answer *ans = &talk.answer;
	size_t nr_ok = 0, nr_unknown = 0, i;
	bool is_same = true;

	ck_assert_uint_eq(ans->nr_results, req->nr_updates);
	for (i = 0; i < ans->nr_results; i++) {
		ck_assert_str_eq(ans->results[i].name, req->updates[i].name);
		nr_ok += ans->results[i].status == REFD_OK;
		nr_unknown += ans->results[i].status == REFD_UNKNOWN;
		is_same =
		    is_same && ans->results[i].status == ans->results[0].status;
	}
	ck_assert_int_eq(ans->outcome,
	    refd_outcome_of(ans->nr_results, nr_ok, nr_unknown));
	if (is_same) {
		add_word(said, "",
		    refd_status_name(i > 0 ? ans->results[0].status : REFD_OK));
		return;
	}
	for (i = 0; i < ans->nr_results; i++)
		add_word(said, i == 0 ? "[" : ",",
		    refd_status_name(ans->results[i].status));
	add_word(said, "", "]");
}

/* A kind of answer has the name that is WANTED. */
static void say_kind(const char *wanted, char *said)
{
	enum refd_answer_kind kind;

	if (refd_slice_answer_kind(
		(struct refd_slice){ wanted, strlen(wanted) }, &kind) &&
	    kind == talk.answer.kind)
		add_word(said, "", wanted);
	else
		add_word(said, "", "another kind of answer");
}

static void expect(const char *call, const struct refd_request *req, int err,
    const char *wanted)
{
	const struct refd_answer *ans = &talk.answer;
	char said[WORD_MAX] = "";

	if (err < 0) {
		add_word(said, "", name_of(err));
	} else if (ans->kind == REFD_ANSWER_RESULTS) {
		say_results(req, said);
	} else if (ans->kind == REFD_ANSWER_REFUSED) {
		add_word(said, "",
		    ans->text != NULL && strstr(ans->text, FAKE_WHY) != NULL ?
			"because" :
			"refused");
		add_word(said, ":", refd_status_name(ans->status));
	} else {
		say_kind(wanted, said);
	}
	ck_assert_msg(strcmp(said, wanted) == 0, "%s: %s, not %s: %s", call,
	    said, wanted, err < 0 ? refd_error(talk.refd) : "");
	if (err == 0 && refd_verbs[req->verb].class < REFD_CLASS_REPO)
		ck_assert(refd_txid_eq(&ans->txid, &req->txid));
	if (req->verb == REFD_VERB_TRANSACTION && strcmp(said, "ok") == 0)
		ck_assert(!req->maybe_sent);
}

/* ---- calls ---- */

static enum refd_verb verb_of(const char *word)
{
	unsigned verb;

	for (verb = 0; verb < REFD_VERBS; verb++)
		if (strcmp(refd_verbs[verb].word, word) == 0)
			return (enum refd_verb)verb;
	ck_abort_msg("there is no call %s", word);
}

/* An end is made of the session. */
static struct refd_request *make(const char *word)
{
	enum refd_verb verb = verb_of(word);

	if (refd_verbs[verb].class == REFD_CLASS_END) {
		*request(verb) = *request(REFD_VERB_SESSION);
		request(verb)->verb = verb;
	}
	return request(verb);
}

static void submit(const char *word)
{
	ck_assert_int_eq(refd_submit(talk.refd, make(word)), 0);
}

static int wait_for(const char *word, int timeout_ms)
{
	refd_answer_done(&talk.answer);
	return refd_wait(talk.refd, request(verb_of(word)), timeout_ms,
	    &talk.answer);
}

static void call(const char *word, const char *result, bool in_vain)
{
	struct refd_request *req;
	int err;

	if (in_vain) {
		submit(word);
		do
			err = wait_for(word, TURN_MS);
		while (err == -ETIMEDOUT);
		req = request(verb_of(word));
	} else {
		refd_answer_done(&talk.answer);
		req = make(word);
		err = refd_call(talk.refd, req, talk.timeout_ms, &talk.answer);
	}
	expect(word, req, err, result);
}

static void connect_to(const char *result)
{
	int err = refd_connect(talk.refd, talk.timeout_ms);

	ck_assert_str_eq(name_of(err), result != NULL ? result : "0");
}

static void restart(void)
{
	refd_free(talk.refd);
	talk.refd = refd_new(talk.fake.path);
	ck_assert_ptr_nonnull(talk.refd);
}

static void remember(void)
{
	struct refd_txid id = request(REFD_VERB_TRANSACTION)->txid;

	make_transaction();
	request(REFD_VERB_TRANSACTION)->txid = id;
	request(REFD_VERB_TRANSACTION)->maybe_sent = true;
}

static void make_call(char *word)
{
	char *result = strpbrk(word, "=!");
	bool in_vain = result != NULL && *result == '!';

	if (result != NULL)
		*result++ = '\0';
	if (word[0] == '@')
		talk.timeout_ms = atoi(word + 1);
	else if (strcmp(word, "connect") == 0)
		connect_to(result);
	else if (strcmp(word, "why") == 0)
		ck_assert_ptr_nonnull(strstr(refd_error(talk.refd), FAKE_WHY));
	else if (strcmp(word, "restart") == 0)
		restart();
	else if (strcmp(word, "remember") == 0)
		remember();
	else if (strcmp(word, "new-id") == 0)
		memset(&request(REFD_VERB_TRANSACTION)->txid, 0,
		    sizeof(struct refd_txid));
	else if (strcmp(word, "no-updates") == 0)
		request(REFD_VERB_SESSION)->nr_updates = 0;
	else if (strcmp(word, "stop") == 0)
		stop();
	else if (strncmp(word, "submit:", 7) == 0)
		submit(word + 7);
	else if (strncmp(word, "wait:", 5) == 0)
		expect(word, request(verb_of(word + 5)),
		    wait_for(word + 5, talk.timeout_ms), result);
	else
		call(word, result, in_vain);
}

void talk_calls(const char *calls)
{
	char word[WORD_MAX];
	int len;

	while (sscanf(calls, "%79s%n", word, &len) == 1) {
		calls += len;
		make_call(word);
	}
}

void talk_through(const char *steps, const char *calls)
{
	talk_begin(steps);
	talk_calls(calls);
	talk_end();
}

void talk_through_script(void (*script)(struct fake *f), const char *calls)
{
	talk_begin_script(script);
	talk_calls(calls);
	talk_end();
}
