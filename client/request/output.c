#include "client/request/output.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/request/git_messages.h"
#include "proto/lib/print.h"

/* A text of one line: it ends where the next line would begin. */
static void print_line(const char *s)
{
	for (; *s; s++)
		putchar((unsigned char)*s < ' ' ? ' ' : *s);
	putchar('\n');
}

/* One that could not be may have line feeds in it, and worse. Any other byte a
 * ref may have. */
static void print_name(const char *s)
{
	for (; *s; s++)
		putchar((unsigned char)*s < ' ' || *s == 0x7f ? '?' : *s);
}

void output_porcelain(const struct refd_answer *ans)
{
	struct text text = { 0 };
	char id[REFD_TXID_HEX + 1];
	size_t i;

	for (i = 0; i < ans->nr_results; i++) {
		const struct refd_result *res = &ans->results[i];

		if (res->status == REFD_OK) {
			printf("ok %s\n", res->name);
			continue;
		}
		fputs("ng ", stdout);
		print_name(res->name);
		printf(" %s ", refd_status_name(res->status));
		text_clear(&text);
		git_messages_text(res->status, res->text, &text);
		print_line(text.data);
	}
	text_done(&text);
	printf("txn %s %s\n", refd_txid_hex(&ans->txid, id),
	    refd_outcome_name(ans->outcome));
}

static void json_result(const struct refd_result *res,
    enum refd_object_format format)
{
	struct text text = { 0 };
	char hex[REFD_OID_MAX_HEX + 1];

	fputs("{\"ref\":", stdout);
	print_json_string(stdout, res->name);
	printf(",\"status\":\"%s\"", refd_status_name(res->status));
	if (res->has_found)
		printf(",\"found\":\"%s\"",
		    refd_oid_hex_as(&res->found, format, hex));
	if (res->status != REFD_OK) {
		fputs(",\"text\":", stdout);
		git_messages_text(res->status, res->text, &text);
		print_json_string(stdout, text.data);
	}
	text_done(&text);
	putchar('}');
}

void output_json(const struct refd_answer *ans)
{
	char id[REFD_TXID_HEX + 1], token[REFD_TOKEN_MAX + 1];
	size_t i;

	printf("{\"txn\":\"%s\",\"outcome\":\"%s\"",
	    refd_txid_hex(&ans->txid, id), refd_outcome_name(ans->outcome));
	if (ans->lsn)
		printf(",\"token\":\"%s\"",
		    refd_token_text(ans->journal, ans->lsn, token));
	fputs(",\"refs\":[", stdout);
	for (i = 0; i < ans->nr_results; i++) {
		if (i)
			putchar(',');
		json_result(&ans->results[i], ans->object_format);
	}
	puts("]}");
}

/* As JSON spells them: no sign, no leading zero. */
static bool is_number(const char *s)
{
	return *s && strlen(s) < 16 && strspn(s, "0123456789") == strlen(s) &&
	    (s[0] != '0' || !s[1]);
}

static void json_pair(const char *key, const char *value)
{
	print_json_string(stdout, key);
	putchar(':');
	if (is_number(value))
		fputs(value, stdout);
	else
		print_json_string(stdout, value);
}

/* Of "kind.name" the length of the first word; 0: it is of no row. */
static size_t kind_len(const struct refd_pair *pair)
{
	const char *period = strchr(pair->key, '.');

	return period ? (size_t)(period - pair->key) : 0;
}

/* Those of the first one's kind, as an array of objects; returns how many. */
static size_t json_rows(const struct refd_pair *pairs, size_t nr)
{
	size_t len = kind_len(&pairs[0]), i;
	bool begins;

	printf("\"%.*s\":[", (int)len, pairs[0].key);
	for (i = 0; i < nr && kind_len(&pairs[i]) == len &&
	    !strncmp(pairs[i].key, pairs[0].key, len);
	    i++) {
		begins = !strcmp(pairs[i].key, pairs[0].key);
		if (i)
			fputs(begins ? "},{" : ",", stdout);
		else
			putchar('{');
		json_pair(pairs[i].key + len + 1, pairs[i].value);
	}
	fputs("}]", stdout);
	return i;
}

void output_json_pairs(const struct refd_pair *pairs, size_t nr)
{
	size_t i = 0;

	putchar('{');
	while (i < nr) {
		if (i)
			putchar(',');
		if (kind_len(&pairs[i])) {
			i += json_rows(&pairs[i], nr - i);
			continue;
		}
		json_pair(pairs[i].key, pairs[i].value);
		i++;
	}
	puts("}");
}

static const char *or_null(bool given, const struct refd_oid *oid,
    char hex[REFD_OID_HEX + 1])
{
	return given ? refd_oid_hex(oid, hex) : "(null)";
}

/* What must not exist has the null oid for its old value. */
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
    const struct refd_result *res)
{
	char new_hex[REFD_OID_HEX + 1], old_hex[REFD_OID_HEX + 1];
	bool has_new =
	    u->action != REFD_VERIFY && u->action != REFD_SYMREF_VERIFY;
	bool has_old = says_old(u);

	/* git refuses objects before it thinks of what "create" means. */
	if (u->action == REFD_CREATE && git_messages_is_bad_value(res->status))
		has_old = false;
	printf("rejected %s %s %s ", name,
	    or_null(has_new, &u->new_oid, new_hex),
	    or_null(has_old, &u->old_oid, old_hex));
	print_line(git_messages_reason(res->status));
}
