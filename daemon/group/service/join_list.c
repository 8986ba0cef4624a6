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
	    "uploadpack.hideRefs, and set them again when the join has "
	    "ended" },
	{ "importing",
	    "the group may not have its refs yet: run refd enable for it on "
	    "the leader" },
	{ "shallow",
	    "it is a shallow clone on the leader, and git would leave refs out "
	    "of the copy: run git fetch --unshallow there" },
	{ "open",
	    "others may write its refd/id on the leader, so it could have the "
	    "id of a different repository: run refd enable for it there, after "
	    "two minutes without updates" },
	{ "unreadable",
	    "git cannot read its configuration on the leader: the log of "
	    "refd-group there has the reason" },
	{ "long",
	    "its path on the leader is too long, so this is the uuid in its "
	    "refd/id: move it to a shorter path there" },
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

static void sort(struct join_list *list)
{
	if (list->nr)
		qsort(list->repos, list->nr, sizeof(*list->repos), by_uuid);
}

/* A notice can be lost, so the number must be that of the named
 * repositories. */
static enum join_list_said end(struct join_list *list, const char *number)
{
	char wanted[24];

	snprintf(wanted, sizeof(wanted), "%zu", list->nr);
	if (strcmp(number, wanted) != 0)
		return JOIN_LIST_PARTIAL;
	sort(list);
	return JOIN_LIST_END;
}

static enum join_list_said note_unnamed(struct join_list *list,
    const char *number)
{
	uint64_t nr;

	if (!cli_number(number, INT32_MAX, &nr))
		return JOIN_LIST_WRONG;
	list->nr_unnamed = (size_t)nr;
	return JOIN_LIST_MORE;
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
	if (has_prefix(line, "unnamed "))
		return note_unnamed(list, line + strlen("unnamed "));
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

/* Three changes make a copy doubtful. If the path has changed, another
 * repository may have been at the path while git copied. If refs are hidden
 * now, or if the repository is shallow now, this may have been so during the
 * copy, too, which would then lack refs. */
bool join_list_keeps_copy(const struct join_repo *repo,
    const struct join_repo *was)
{
	return was->is_copied && !strcmp(was->path, repo->path) && !repo->fault;
}

static void take_over(struct join_repo *repo, struct join_repo *was)
{
	repo->is_late = was->is_late;
	repo->is_copied = join_list_keeps_copy(repo, was);
	if (repo->is_copied) {
		repo->values = was->values;
		was->values = (struct text){ 0 };
	}
}

/* The search of the leader misses a repository that is renamed meanwhile, so
 * nobody knows whether WAS is removed. WAS stays in the list, because otherwise
 * it would count as late if the leader named it again. The entry is added
 * behind the NR sorted entries. */
static void add_gone(struct join_list *list, size_t *nr, struct join_repo *was)
{
	struct join_repo gone = { .path = was->path,
		.format = was->format,
		.fault = "the leader does not name it any more: if it is not "
			 "removed there, run refd group join again",
		.is_gone = true };

	strcpy(gone.hex, was->hex);
	was->path = NULL;
	list->repos =
	    xroom(list->repos, *nr, &list->size, sizeof(*list->repos));
	list->repos[(*nr)++] = gone;
}

size_t join_list_follow(struct join_list *list, struct join_list *old,
    bool are_late, void (*left)(void *arg, const struct join_repo *was),
    void *arg)
{
	struct join_repo *repo, *was = old->repos;
	size_t i, nr_all = list->nr, nr = 0;

	for (i = 0; i < list->nr; i++)
		list->repos[i].is_late = are_late;
	for (i = 0; i < old->nr; i++, was++) {
		repo = join_list_find(list, was->hex);
		if (repo)
			take_over(repo, was);
		if (was->is_copied && !(repo && repo->is_copied))
			left(arg, was);
		if (!repo && !was->is_late)
			add_gone(list, &nr_all, was);
	}
	list->nr = nr_all;
	sort(list);
	for (i = 0; i < list->nr; i++)
		nr += !list->repos[i].is_copied && !list->repos[i].fault;
	return nr;
}

bool join_list_is_missed(const struct join_repo *repo)
{
	return !repo->is_copied && !repo->is_late;
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
