#include "client/update/stdin_fields.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "client/git/quote.h"
#include "proto/refname.h"

bool stdin_fail(struct stdin_parser *p, const char *fmt, ...)
{
	va_list ap;
	char *s;

	va_start(ap, fmt);
	if (vasprintf(&s, fmt, ap) < 0)
		die("out of memory");
	va_end(ap);
	text_clear(&p->error);
	text_adds(&p->error, s);
	free(s);
	return false;
}

/* ---- words ---- */

static bool is_at_end(const struct stdin_parser *p)
{
	return p->at == p->line.data + p->line.len;
}

/* A field ends at white space, or is a quoted C string. Not for -z. */
static bool take_word(struct stdin_parser *p, struct text *word)
{
	const char *begin = p->at;

	if (*p->at != '"') {
		while (*p->at && !isspace((unsigned char)*p->at))
			p->at++;
		text_add(word, begin, (size_t)(p->at - begin));
		return true;
	}
	p->at = quote_read(p->at, word);
	if (!p->at)
		return stdin_fail(p, "badly quoted argument: %s", begin);
	if (*p->at && !isspace((unsigned char)*p->at))
		return stdin_fail(p,
		    "unexpected character after quoted argument: %s", begin);
	return true;
}

static bool take_field(struct stdin_parser *p, struct text *field)
{
	text_clear(field);
	if (p->end)
		return take_word(p, field);
	text_adds(field, p->at);
	p->at += field->len;
	return true;
}

bool stdin_take_ref(struct stdin_parser *p, const char *command)
{
	if (!take_field(p, &p->ref))
		return false;
	if (!p->ref.len)
		return stdin_fail(p, "%s: missing <ref>", command);
	if (!refd_refname_format_ok(p->ref.data))
		return stdin_fail(p, "invalid ref format: %s", p->ref.data);
	p->update.name = p->ref.data;
	return true;
}

/* Skips the separator of two fields: a blank, or with -z the NUL of the first
 * field. A NUL at the end of the input is no separator. *MORE: a field follows.
 */
static bool take_separator(struct stdin_parser *p, bool *more)
{
	*more = false;
	if (is_at_end(p) || (p->end && (!*p->at || *p->at == p->end)))
		return true;
	if (p->end && *p->at != ' ')
		return false;
	p->at++;
	*more = p->end || !is_at_end(p);
	return true;
}

bool stdin_take_next(struct stdin_parser *p, struct text *field)
{
	bool more;

	text_clear(field);
	if (!take_separator(p, &more))
		return stdin_fail(p, "expected SP but got: %s", p->at);
	return !more || take_field(p, field);
}

bool stdin_take_end(struct stdin_parser *p, const char *command)
{
	if (*p->at != p->end)
		return stdin_fail(p, "%s %s: extra input: %s", command,
		    p->ref.data, p->at);
	text_clear(&p->error);
	return git_messages_take_name(&p->update, &p->error);
}

/* ---- object ids ---- */

const char *stdin_oid_word(const struct stdin_parser *p, enum stdin_oid which)
{
	bool is_old = which == STDIN_OLD_OID;

	switch (p->messages) {
	case GIT_2_55:
		break;
	case GIT_2_39:
		return is_old ? "<oldvalue>" : "<newvalue>";
	}
	return is_old ? "<old-oid>" : "<new-oid>";
}

/* The meaning of an empty field depends on -z and on the field. */
static void take_empty_oid(struct stdin_parser *p, const char *command,
    enum stdin_oid which, bool *given)
{
	if (!p->end && which != STDIN_NEW_OID_OR_EMPTY) {
		*given = false;
		return;
	}
	if (!p->end)
		say_warning("%s %s: missing %s, treating as zero", command,
		    p->ref.data, stdin_oid_word(p, which));
	*given = true;
}

static bool ended_early(struct stdin_parser *p, const char *command,
    enum stdin_oid which)
{
	return stdin_fail(p, "%s %s: unexpected end of input when reading %s",
	    command, p->ref.data, stdin_oid_word(p, which));
}

bool stdin_take_oid(struct stdin_parser *p, const char *command,
    enum stdin_oid which, struct refd_oid *oid, bool *given)
{
	bool more;

	memset(oid, 0, sizeof(*oid));
	*given = false;
	if (is_at_end(p))
		return ended_early(p, command, which);
	if (!take_separator(p, &more))
		return stdin_fail(p, "%s %s: expected SP but got: %s", command,
		    p->ref.data, p->at);
	if (!more)
		return p->end || ended_early(p, command, which);
	if (!take_field(p, &p->arg))
		return false;
	if (!p->arg.len) {
		take_empty_oid(p, command, which, given);
		return true;
	}
	*given = true;
	return p->resolve(p->ctx, p->arg.data, oid) ||
	    stdin_fail(p, "%s %s: invalid %s: %s", command, p->ref.data,
		stdin_oid_word(p, which), p->arg.data);
}
