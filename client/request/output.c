#include "client/request/output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/request/git_messages.h"
#include "proto/lib/json.h"
#include "proto/refname.h"

/* A refused name may have control bytes, so a program gets the bytes of a name
 * only if the name is valid. */
static void print_name(const char *name, bool for_people)
{
	if (for_people || !refd_refname_format_ok(name))
		print_part(stdout, "%s", name);
	else
		print_bytes(stdout, name, strlen(name));
}

void output_results(const struct refd_answer *ans, bool for_people)
{
	struct text text = { 0 };
	char id[REFD_TXID_HEX + 1];
	size_t i;

	for (i = 0; i < ans->nr_results; i++) {
		const struct refd_result *res = &ans->results[i];

		print_part(stdout, res->status == REFD_OK ? "ok " : "ng ");
		print_name(res->name, for_people);
		if (res->status == REFD_OK) {
			print_lines(stdout, "\n");
			continue;
		}
		text_clear(&text);
		git_messages_text(res->status, res->text, &text);
		print_line(stdout, " %s %s", refd_status_name(res->status),
		    text.data);
	}
	text_done(&text);
	print_line(stdout, "txn %s %s", refd_txid_hex(&ans->txid, id),
	    refd_outcome_name(ans->outcome));
}

static void add_result(struct json *j, const struct refd_result *res,
    enum refd_object_format format)
{
	struct text text = { 0 };
	char hex[REFD_OID_MAX_HEX + 1];

	json_begin(j, NULL, '{');
	json_text(j, "ref", res->name);
	json_text(j, "status", refd_status_name(res->status));
	if (res->has_found)
		json_text(j, "found", refd_oid_hex(&res->found, format, hex));
	if (res->status != REFD_OK) {
		git_messages_text(res->status, res->text, &text);
		json_text(j, "text", text.data);
	}
	text_done(&text);
	json_end(j, '}');
}

void output_json(const struct refd_answer *ans)
{
	char id[REFD_TXID_HEX + 1], token[REFD_TOKEN_MAX + 1];
	struct json j = { .to = stdout };
	size_t i;

	json_begin(&j, NULL, '{');
	json_text(&j, "txn", refd_txid_hex(&ans->txid, id));
	json_text(&j, "outcome", refd_outcome_name(ans->outcome));
	if (ans->lsn)
		json_text(&j, "token",
		    refd_token_text(ans->journal, ans->lsn, token));
	json_begin(&j, "refs", '[');
	for (i = 0; i < ans->nr_results; i++)
		add_result(&j, &ans->results[i], ans->object_format);
	json_end(&j, ']');
	json_finish(&j, '}');
}

/* Is S a number of JSON? One with a sign or a leading zero is not. */
static bool is_number(const char *s)
{
	return *s && strlen(s) < 16 && strspn(s, "0123456789") == strlen(s) &&
	    (s[0] != '0' || !s[1]);
}

/* A name that a client chose may consist of digits, so the key decides. */
static bool is_text(const char *key)
{
	return !strcmp(key, "name") || !strcmp(key, "sid");
}

static void add_pair(struct json *j, const char *key, const char *value)
{
	if (is_number(value) && !is_text(key))
		json_value(j, key, value);
	else
		json_text(j, key, value);
}

/* The length of the kind of "kind.name"; 0: the pair is not in a row. */
static size_t kind_len(const struct refd_pair *pair)
{
	const char *period = strchr(pair->key, '.');

	return period ? (size_t)(period - pair->key) : 0;
}

/* Adds the pairs of the first one's kind as an array of objects. Returns the
 * number of pairs. */
static size_t add_rows(struct json *j, const struct refd_pair *pairs, size_t nr)
{
	size_t len = kind_len(&pairs[0]), i;
	char *kind = xasprintf("%.*s", (int)len, pairs[0].key);

	json_begin(j, kind, '[');
	for (i = 0; i < nr && kind_len(&pairs[i]) == len &&
	    has_prefix(pairs[i].key, kind);
	    i++) {
		if (i && !strcmp(pairs[i].key, pairs[0].key))
			json_end(j, '}');
		if (!strcmp(pairs[i].key, pairs[0].key))
			json_begin(j, NULL, '{');
		add_pair(j, pairs[i].key + len + 1, pairs[i].value);
	}
	json_end(j, '}');
	json_end(j, ']');
	free(kind);
	return i;
}

void output_json_pairs(const struct refd_pair *pairs, size_t nr)
{
	struct json j = { .to = stdout };
	size_t i = 0;

	json_begin(&j, NULL, '{');
	while (i < nr)
		if (kind_len(&pairs[i])) {
			i += add_rows(&j, pairs + i, nr - i);
		} else {
			add_pair(&j, pairs[i].key, pairs[i].value);
			i++;
		}
	json_finish(&j, '}');
}

static const char *or_null(bool given, const struct refd_oid *oid,
    enum refd_object_format format, char hex[REFD_OID_MAX_HEX + 1])
{
	return given ? refd_oid_hex(oid, format, hex) : "(null)";
}

/* The old value of a ref that must not exist is the null oid. */
static bool says_old(const struct refd_update *u)
{
	switch (u->action) {
	case REFD_UPDATE:
	case REFD_DELETE:
	case REFD_SYMREF_UPDATE:
	case REFD_SYMREF_DELETE:
		return u->has_old;
	case REFD_CREATE:
	case REFD_VERIFY:
	case REFD_SYMREF_CREATE:
	case REFD_SYMREF_VERIFY:
		break;
	}
	return true;
}

void output_rejected(const struct refd_update *u, const char *name,
    const struct refd_result *res, enum refd_object_format format)
{
	char new_hex[REFD_OID_MAX_HEX + 1], old_hex[REFD_OID_MAX_HEX + 1];
	bool has_new =
	    u->action != REFD_VERIFY && u->action != REFD_SYMREF_VERIFY;
	bool has_old = says_old(u);

	/* git refuses the object before it looks at "create", so there is no
	 * old value. */
	if (u->action == REFD_CREATE && git_messages_is_bad_value(res->status))
		has_old = false;
	print_part(stdout, "rejected ");
	print_name(name, false);
	print_line(stdout, " %s %s %s",
	    or_null(has_new, &u->new_oid, format, new_hex),
	    or_null(has_old, &u->old_oid, format, old_hex),
	    git_messages_reason(res->status));
}
