#include "client/update/stdin.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/git/quote.h"
#include "proto/lib/cli.h"
#include "proto/refname.h"

/* ---- the fields of a line ---- */

/*
 * The fields of one line of stdin.h's language: words, refs, object ids.
 * Private to the parser. Every function returns false with a message in
 * p->error.
 */

enum stdin_oid {
	STDIN_NEW_OID,
	STDIN_NEW_OID_OR_EMPTY, /* empty means zero */
	STDIN_OLD_OID
};

static bool stdin_fail(struct stdin_parser *p, const char *fmt, ...)
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

/* The first field, into p->ref and p->update.name. */
static bool stdin_take_ref(struct stdin_parser *p, const char *command)
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
 * field. A NUL at the end of the input is no separator. *MORE tells whether a
 * field follows. */
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

/* The next field, which is empty if there is none. Replaces the content of
 * FIELD. */
static bool stdin_take_next(struct stdin_parser *p, struct text *field)
{
	bool more;

	text_clear(field);
	if (!take_separator(p, &more))
		return stdin_fail(p, "expected SP but got: %s", p->at);
	return !more || take_field(p, field);
}

/* Fails if another field follows, or if git refuses the name for this command.
 */
static bool stdin_take_end(struct stdin_parser *p, const char *command)
{
	if (*p->at != p->end)
		return stdin_fail(p, "%s %s: extra input: %s", command,
		    p->ref.data, p->at);
	text_clear(&p->error);
	return git_messages_take_name(&p->update, &p->error);
}

/* ---- object ids ---- */

/* "<old-oid>", "<new-oid>", or the names of 2.39. */
static const char *stdin_oid_word(const struct stdin_parser *p,
    enum stdin_oid which)
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

/* Without a field, *GIVEN is false and *OID is zero. */
static bool stdin_take_oid(struct stdin_parser *p, const char *command,
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

/* A new value of zero deletes the ref. With an old value of zero the update
 * stays an update, because the ref must not exist, and nothing is written. */
static void set_to_zero(struct refd_update *u)
{
	if (!u->has_old || !refd_oid_is_null(&u->old_oid))
		u->action = REFD_DELETE;
}

static bool parse_update(struct stdin_parser *p)
{
	struct refd_update *u = &p->update;
	bool given;

	if (!stdin_take_ref(p, "update") ||
	    !stdin_take_oid(p, "update", STDIN_NEW_OID_OR_EMPTY, &u->new_oid,
		&given))
		return false;
	if (!given)
		return stdin_fail(p, "update %s: missing %s", u->name,
		    stdin_oid_word(p, STDIN_NEW_OID));
	if (!stdin_take_oid(p, "update", STDIN_OLD_OID, &u->old_oid,
		&u->has_old))
		return false;
	u->action = REFD_UPDATE;
	if (refd_oid_is_null(&u->new_oid))
		set_to_zero(u);
	return stdin_take_end(p, "update");
}

static bool parse_create(struct stdin_parser *p)
{
	struct refd_update *u = &p->update;
	bool given;

	if (!stdin_take_ref(p, "create") ||
	    !stdin_take_oid(p, "create", STDIN_NEW_OID, &u->new_oid, &given))
		return false;
	if (!given)
		return stdin_fail(p, "create %s: missing %s", u->name,
		    stdin_oid_word(p, STDIN_NEW_OID));
	if (refd_oid_is_null(&u->new_oid))
		return stdin_fail(p, "create %s: zero %s", u->name,
		    stdin_oid_word(p, STDIN_NEW_OID));
	u->action = REFD_CREATE;
	return stdin_take_end(p, "create");
}

static bool parse_delete(struct stdin_parser *p)
{
	struct refd_update *u = &p->update;

	if (!stdin_take_ref(p, "delete") ||
	    !stdin_take_oid(p, "delete", STDIN_OLD_OID, &u->old_oid,
		&u->has_old))
		return false;
	if (u->has_old && refd_oid_is_null(&u->old_oid))
		return stdin_fail(p, "delete %s: zero %s", u->name,
		    stdin_oid_word(p, STDIN_OLD_OID));
	u->action = REFD_DELETE;
	return stdin_take_end(p, "delete");
}

static bool parse_verify(struct stdin_parser *p)
{
	struct refd_update *u = &p->update;
	bool given;

	/* Without a value, the ref must not exist. */
	u->action = REFD_VERIFY;
	u->has_old = true;
	return stdin_take_ref(p, "verify") &&
	    stdin_take_oid(p, "verify", STDIN_OLD_OID, &u->old_oid, &given) &&
	    stdin_take_end(p, "verify");
}

/* The optional field is empty if absent. */
static bool take_target(struct stdin_parser *p, struct text *target)
{
	if (!stdin_take_next(p, target))
		return false;
	if (target->len && !refd_refname_format_ok(target->data))
		return stdin_fail(p, "invalid ref format: %s", target->data);
	return true;
}

static bool take_new_target(struct stdin_parser *p, const char *command)
{
	if (!stdin_take_ref(p, command) || !take_target(p, &p->target))
		return false;
	if (!p->target.len)
		return stdin_fail(p, "%s %s: missing <new-target>", command,
		    p->ref.data);
	p->update.target = p->target.data;
	return true;
}

/* "oid <oid>", "ref <target>", or nothing. */
static bool take_either_old(struct stdin_parser *p)
{
	struct refd_update *u = &p->update;

	if (!stdin_take_next(p, &p->arg))
		return false;
	if (!p->arg.len)
		return true;
	if (!stdin_take_next(p, &p->old))
		return false;
	if (!p->old.len)
		return stdin_fail(p, "symref-update %s: expected old value",
		    u->name);
	u->has_old = true;
	if (!strcmp(p->arg.data, "oid"))
		return p->resolve(p->ctx, p->old.data, &u->old_oid) ||
		    stdin_fail(p, "symref-update %s: invalid oid: %s", u->name,
			p->old.data);
	if (strcmp(p->arg.data, "ref"))
		return stdin_fail(p,
		    "symref-update %s: invalid arg '%s' for old "
		    "value",
		    u->name, p->arg.data);
	u->old_target = p->old.data;
	return refd_refname_format_ok(u->old_target) ||
	    stdin_fail(p, "symref-update %s: invalid ref: %s", u->name,
		u->old_target);
}

static bool parse_symref_update(struct stdin_parser *p)
{
	p->update.action = REFD_SYMREF_UPDATE;
	return take_new_target(p, "symref-update") && take_either_old(p) &&
	    stdin_take_end(p, "symref-update");
}

static bool parse_symref_create(struct stdin_parser *p)
{
	p->update.action = REFD_SYMREF_CREATE;
	return take_new_target(p, "symref-create") &&
	    stdin_take_end(p, "symref-create");
}

static bool take_old_target(struct stdin_parser *p, const char *command)
{
	if (!p->update.no_deref)
		return stdin_fail(p, "%s: cannot operate with deref mode",
		    command);
	if (!stdin_take_ref(p, command) || !take_target(p, &p->old))
		return false;
	if (p->old.len) {
		p->update.has_old = true;
		p->update.old_target = p->old.data;
	}
	return stdin_take_end(p, command);
}

static bool parse_symref_delete(struct stdin_parser *p)
{
	p->update.action = REFD_SYMREF_DELETE;
	return take_old_target(p, "symref-delete");
}

static bool parse_symref_verify(struct stdin_parser *p)
{
	p->update.action = REFD_SYMREF_VERIFY;
	return take_old_target(p, "symref-verify");
}

static bool parse_option(struct stdin_parser *p)
{
	if (!has_prefix(p->at, "no-deref") || p->at[8] != p->end)
		return stdin_fail(p, "option unknown: %s", p->at);
	p->next_no_deref = true;
	return true;
}

/* FIELDS is the maximum number of NUL-terminated fields with -z, or 0 for no
 * field. PARSE is NULL for commands that control the transaction. */
static const struct stdin_command {
	const char *name;
	int fields;
	bool (*parse)(struct stdin_parser *p);
	enum stdin_event event;
	enum stdin_state state;
} commands[] = {
	{ "update", 3, parse_update, STDIN_CHANGE, STDIN_OPEN },
	{ "create", 2, parse_create, STDIN_CHANGE, STDIN_OPEN },
	{ "delete", 2, parse_delete, STDIN_CHANGE, STDIN_OPEN },
	{ "verify", 2, parse_verify, STDIN_CHANGE, STDIN_OPEN },
	{ "symref-update", 4, parse_symref_update, STDIN_CHANGE, STDIN_OPEN },
	{ "symref-create", 2, parse_symref_create, STDIN_CHANGE, STDIN_OPEN },
	{ "symref-delete", 2, parse_symref_delete, STDIN_CHANGE, STDIN_OPEN },
	{ "symref-verify", 2, parse_symref_verify, STDIN_CHANGE, STDIN_OPEN },
	{ "option", 1, parse_option, STDIN_CHANGE, STDIN_OPEN },
	{ "start", 0, NULL, STDIN_START, STDIN_STARTED },
	{ "prepare", 0, NULL, STDIN_PREPARE, STDIN_PREPARED },
	{ "commit", 0, NULL, STDIN_COMMIT, STDIN_CLOSED },
	{ "abort", 0, NULL, STDIN_ABORT, STDIN_CLOSED },
};

static const struct stdin_command *find_command(const struct stdin_parser *p)
{
	size_t i, len;

	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		len = strlen(commands[i].name);
		if (has_prefix(p->line.data, commands[i].name) &&
		    p->line.data[len] == (commands[i].fields ? ' ' : p->end))
			return &commands[i];
	}
	return NULL;
}

/* Appends a line with its terminator. False at the end of input. */
static bool read_line(struct stdin_parser *p)
{
	ssize_t len = getdelim(&p->read, &p->read_size, p->end, p->in);

	/* After a read error the earlier commands must not be committed alone,
	 * so the error is not the end of input. */
	if (len <= 0 && !feof(p->in))
		die("cannot read the commands: %s", strerror(errno));
	if (len <= 0)
		return false;
	text_add(&p->line, p->read, (size_t)len);
	return true;
}

/* May CMD follow the commands before it? */
static bool move(struct stdin_parser *p, const struct stdin_command *cmd)
{
	switch (p->state) {
	case STDIN_OPEN:
	case STDIN_STARTED:
		if (p->state == STDIN_STARTED && cmd->state == STDIN_STARTED)
			return stdin_fail(p,
			    "cannot restart ongoing transaction");
		if (cmd->state > p->state)
			p->state = cmd->state;
		return true;
	case STDIN_PREPARED:
		if (cmd->state != STDIN_CLOSED)
			return stdin_fail(p,
			    "prepared transactions can only be closed");
		p->state = STDIN_CLOSED;
		return true;
	case STDIN_CLOSED:
		if (cmd->state != STDIN_STARTED)
			return stdin_fail(p, "transaction is closed");
		p->state = STDIN_STARTED;
		return true;
	}
	return true;
}

/* NULL, with a message in p->error, if there is no such command. */
static const struct stdin_command *take_command(struct stdin_parser *p)
{
	const struct stdin_command *cmd = NULL;

	if (p->line.data[0] == p->end)
		stdin_fail(p, "empty command in input");
	else if (isspace((unsigned char)p->line.data[0]))
		stdin_fail(p, "whitespace before command: %s", p->line.data);
	else if (!(cmd = find_command(p)))
		stdin_fail(p, "unknown command: %s", p->line.data);
	return cmd;
}

static bool parse_rest(struct stdin_parser *p, const struct stdin_command *cmd)
{
	int i;

	for (i = 1; !p->end && i < cmd->fields; i++)
		if (!read_line(p))
			break;
	if (!move(p, cmd))
		return false;
	p->at = p->line.data + strlen(cmd->name) + 1;
	return !cmd->parse || cmd->parse(p);
}

enum stdin_event stdin_next(struct stdin_parser *p)
{
	const struct stdin_command *cmd;

	for (;;) {
		text_clear(&p->line);
		if (!read_line(p)) {
			if (!ferror(p->in))
				return p->state == STDIN_OPEN ?
				    STDIN_EOF_COMMIT :
				    STDIN_EOF;
			stdin_fail(p, "could not read from stdin");
			return STDIN_ERROR;
		}
		memset(&p->update, 0, sizeof(p->update));
		p->update.no_deref = p->no_deref || p->next_no_deref;
		cmd = take_command(p);
		if (!cmd || !parse_rest(p, cmd))
			return STDIN_ERROR;
		if (cmd->parse == parse_option)
			continue;
		if (cmd->parse)
			p->next_no_deref = false;
		return cmd->event;
	}
}

void stdin_done(struct stdin_parser *p)
{
	text_done(&p->line);
	text_done(&p->ref);
	text_done(&p->target);
	text_done(&p->old);
	text_done(&p->arg);
	text_done(&p->error);
	free(p->read);
	p->read = NULL;
}
