#include "tests/lib/txn_help.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "proto/pktline.h"
#include "tests/lib/world.h"

#define UPDATES_MAX 8192

struct txn *txn_help_own(const struct refd_request *req)
{
	struct refd_request_decoder *dec = refd_request_decoder_new();
	struct pkt_buf buf = { 0 };
	enum refd_status status;
	struct refd_request own;
	struct txn *txn = NULL;
	const char *why;
	struct pkt pkt;
	size_t at = 0;

	refd_request_encode(req, &buf);
	while (at < buf.len) {
		at += (size_t)pkt_parse(buf.data + at, buf.len - at, &pkt);
		if (refd_request_decode(dec, &pkt, &own, &status, &why) ==
		    REFD_DECODE_DONE)
			txn = txn_new(&own);
	}
	refd_request_decoder_free(dec);
	pkt_buf_done(&buf);
	assert(txn != NULL);
	return txn;
}

/* Fills in one update from "a=2:1" or "-a:1"; its names are malloc'd. */
static void parse_update(char *spec, struct refd_update *u)
{
	char *old, *value, *target;

	memset(u, 0, sizeof(*u));
	u->no_deref = spec[0] == '!';
	spec += u->no_deref;
	old = strchr(spec, ':');
	if (old != NULL) {
		*old++ = '\0';
		u->has_old = true;
		if (*old == '>')
			u->old_target = world_full_name(old + 1);
		else
			u->old_oid = world_oid(*old);
	}
	u->action = REFD_UPDATE;
	if (spec[0] == '-')
		u->action = u->old_target ? REFD_SYMREF_DELETE : REFD_DELETE;
	target = strchr(spec, '>');
	if (spec[0] == '-') {
		spec++;
	} else if (target != NULL) {
		*target++ = '\0';
		u->action = REFD_SYMREF_UPDATE;
		u->target = world_full_name(target);
	} else {
		value = strchr(spec, '=');
		assert(value != NULL);
		*value++ = '\0';
		u->new_oid = world_oid(*value);
	}
	u->name = world_full_name(spec);
}

struct txn *txn_help_of(const struct refd_request *req, const char *spec)
{
	struct refd_update updates[UPDATES_MAX];
	struct refd_request whole = *req;
	char *copy, *rest, *word;
	struct txn *txn;

	whole.updates = updates;
	rest = copy = strdup(spec);
	while ((word = strsep(&rest, ";")) != NULL) {
		assert(whole.nr_updates < UPDATES_MAX);
		parse_update(word, &updates[whole.nr_updates++]);
	}
	free(copy);
	txn = txn_help_own(&whole);
	while (whole.nr_updates-- > 0) {
		free((void *)(uintptr_t)updates[whole.nr_updates].name);
		free((void *)(uintptr_t)updates[whole.nr_updates].target);
		free((void *)(uintptr_t)updates[whole.nr_updates].old_target);
	}
	txn_lay_out(txn);
	return txn;
}
