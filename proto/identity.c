/* Variables that identify a user: "<NAME>=<value>". */
#include "proto/wire.h"

#include <string.h>

#include "proto/arena.h"

#define BAD(name, text)                                                        \
	static const struct refd_refusal name = { REFD_BADREQUEST, text }

/* A name of an environment variable: A to Z, 0 to 9, "_"; no digit first. */
static bool is_name(struct refd_slice s)
{
	size_t i;
	char c;

	if (s.len == 0 || (s.data[0] >= '0' && s.data[0] <= '9'))
		return false;
	for (i = 0; i < s.len; i++) {
		c = s.data[i];
		if (!(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
		    c != '_')
			return false;
	}
	return true;
}

const struct refd_refusal *refd_identity_decode(struct refd_arena *arena,
    struct refd_identity *list, size_t *nr, struct refd_slice s)
{
	BAD(bad, "malformed identity");
	BAD(order, "identities are out of order");
	static const struct refd_refusal too_large = { REFD_LIMIT,
		"too many identities, or too long ones" };
	struct refd_slice name;

	if (refd_slice_has_nul(s))
		return &bad;
	refd_slice_cut(&s, '=', &name);
	if (!is_name(name) || s.data == NULL || s.len == 0)
		return &bad;
	if (*nr == REFD_IDENTITIES_MAX || name.len > REFD_IDENTITY_NAME_MAX ||
	    s.len > REFD_IDENT_MAX)
		return &too_large;
	list[*nr].name = refd_arena_string(arena, name.data, name.len);
	list[*nr].value = refd_arena_string(arena, s.data, s.len);
	if (list[*nr].name == NULL || list[*nr].value == NULL)
		return &refd_refusal_no_memory;
	if (*nr > 0 && strcmp(list[*nr - 1].name, list[*nr].name) >= 0)
		return &order;
	++*nr;
	return NULL;
}

const char *refd_identity_person(const struct refd_identity *list, size_t nr)
{
	static const char *const names[] = { "GL_USER", "GITEA_PUSHER_NAME",
		"GL_USERNAME", "GOGS_AUTH_USER_NAME", "SOFT_SERVE_USERNAME",
		"REMOTE_USER", "GL_ID", "SSH_USER_AUTH" };
	size_t i, k;

	for (k = 0; k < sizeof(names) / sizeof(names[0]); k++)
		for (i = 0; i < nr; i++)
			if (!strcmp(list[i].name, names[k]))
				return list[i].value;
	return NULL;
}

void refd_identity_encode(const struct refd_identity *list, size_t nr,
    struct pkt_buf *out)
{
	size_t i;

	for (i = 0; i < nr; i++)
		pkt_putf(out, "identity %s=%s", list[i].name, list[i].value);
}
