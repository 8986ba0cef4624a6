/*
 * Any bytes as the input of `refd update --stdin`; the first byte selects the
 * format. Reading ends, an error has a message, and the protocol can carry
 * every accepted change, unless a name is too long.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/update/stdin.h"
#include "proto/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool ok)
{
	if (!ok)
		abort();
}

static bool resolve(void *ctx, const char *name, struct refd_oid *oid)
{
	(void)ctx;
	return refd_oid_parse(name, REFD_FORMAT_SHA1, oid) == 0;
}

static void check_change(const struct refd_update *u)
{
	struct refd_update copy = *u;
	struct refd_request req = { .verb = REFD_VERB_TRANSACTION,
		.request_id = 1,
		.txid = { { 1 } },
		.git_dir = "/r",
		.common_dev = 1,
		.common_ino = 1,
		.updates = &copy,
		.nr_updates = 1 };
	struct pkt_buf out = { 0 };

	expect(u->name != NULL);
	refd_request_encode(&req, &out);
	expect(!pkt_buf_failed(&out) || strlen(u->name) > REFD_REFNAME_MAX ||
	    (u->target != NULL && strlen(u->target) > REFD_REFNAME_MAX) ||
	    (u->old_target != NULL &&
		strlen(u->old_target) > REFD_REFNAME_MAX));
	pkt_buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct stdin_parser p = { 0 };
	enum stdin_event event;

	if (size < 2)
		return 0;
	p.end = data[0] & 1 ? '\0' : '\n';
	p.no_deref = data[0] & 2;
	p.messages = data[0] & 4 ? GIT_2_39 : GIT_2_55;
	p.resolve = resolve;
	p.in = fmemopen((void *)(uintptr_t)(data + 1), size - 1, "r");
	expect(p.in != NULL);
	do {
		event = stdin_next(&p);
		if (event == STDIN_CHANGE)
			check_change(&p.update);
		if (event == STDIN_ERROR)
			expect(p.error.len > 0);
	} while (event != STDIN_ERROR && event != STDIN_EOF &&
	    event != STDIN_EOF_COMMIT);
	stdin_done(&p);
	fclose(p.in);
	return 0;
}
