#include "daemon/group/service/join_list.h"

#include <stdlib.h>
#include <string.h>

#include "proto/group_frame.h"

/* Decodes HEX in place. False: it is no path below a root. */
static bool read_path(char *hex)
{
	struct group_bytes path = { (const uint8_t *)hex, strlen(hex) / 2 };
	size_t i;
	unsigned byte;

	if (strlen(hex) % 2 || hex[strspn(hex, "0123456789abcdef")])
		return false;
	for (i = 0; i < path.len; i++) {
		sscanf(hex + 2 * i, "%2x", &byte);
		hex[i] = (char)byte;
	}
	hex[i] = '\0';
	return group_frame_is_path(path);
}

static const struct {
	const char *state, *fault;
} states[] = {
	{ "shown", NULL },
	{ "hidden",
	    "the leader hides refs from fetches, so they would be missing "
	    "here: run git config --unset-all there for transfer.hideRefs and "
	    "uploadpack.hideRefs, and set them again later" },
	{ "importing",
	    "the group does not have its refs yet: run refd enable for it on "
	    "the leader" },
	{ "shallow",
	    "it is a shallow clone on the leader, and git would leave refs out "
	    "of the copy: run git fetch --unshallow there" },
	{ "unreadable",
	    "git cannot read its configuration on the leader: the log of "
	    "refd-group there has the reason" },
};

static bool read_state(struct join_repo *repo, const char *state)
{
	size_t i;

	for (i = 0; i < sizeof(states) / sizeof(*states); i++)
		if (!strcmp(state, states[i].state)) {
			repo->fault = states[i].fault;
			return true;
		}
	return false;
}

static bool read_format(struct join_repo *repo, const char *format)
{
	repo->format =
	    strcmp(format, "sha256") ? REFD_FORMAT_SHA1 : REFD_FORMAT_SHA256;
	return !strcmp(format, refd_object_format_name(repo->format));
}

/* Owns repo.path after true. */
static bool add(struct join_list *list, struct join_repo repo, const char *line)
{
	char format[8], state[16];

	if (list->nr >= JOIN_LIST_MAX ||
	    sscanf(line, "%32[0-9a-f] %7s %15s %s", repo.hex, format, state,
		repo.path) != 4 ||
	    strlen(repo.hex) != FETCH_ID_HEX || !read_path(repo.path) ||
	    !read_format(&repo, format) || !read_state(&repo, state))
		return false;
	list->repos =
	    xroom(list->repos, list->nr, &list->size, sizeof(*list->repos));
	list->repos[list->nr++] = repo;
	return true;
}

static int by_uuid(const void *va, const void *vb)
{
	const struct join_repo *a = va, *b = vb;

	return strcmp(a->hex, b->hex);
}

/* A notice can be lost, so the number must be that of the named
 * repositories. */
static enum join_list_said end(struct join_list *list, const char *number)
{
	char wanted[24];

	snprintf(wanted, sizeof(wanted), "%zu", list->nr);
	if (strcmp(number, wanted) != 0)
		return JOIN_LIST_PARTIAL;
	if (list->nr)
		qsort(list->repos, list->nr, sizeof(*list->repos), by_uuid);
	return JOIN_LIST_END;
}

enum join_list_said join_list_take(struct join_list *list, const char *line)
{
	char *path;

	if (!strcmp(line, "busy"))
		return JOIN_LIST_MORE;
	if (!strcmp(line, "failed"))
		return JOIN_LIST_FAILED;
	if (has_prefix(line, "end "))
		return end(list, line + strlen("end "));
	path = xstrdup(line);
	if (add(list, (struct join_repo){ .path = path }, line))
		return JOIN_LIST_MORE;
	free(path);
	return JOIN_LIST_WRONG;
}

struct join_repo *join_list_find(const struct join_list *list, const char *hex)
{
	struct join_repo key;

	strcpy(key.hex, hex);
	return list->nr ? bsearch(&key, list->repos, list->nr,
			      sizeof(*list->repos), by_uuid) :
			  NULL;
}

void join_list_done(struct join_list *list)
{
	size_t i;

	for (i = 0; i < list->nr; i++) {
		free(list->repos[i].path);
		text_done(&list->repos[i].values);
	}
	free(list->repos);
	*list = (struct join_list){ .nr = 0 };
}
