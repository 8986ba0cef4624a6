/* Configuration, of git and of refd, that weakens a promise. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/base/child.h"
#include "client/doctor/doctor_internal.h"
#include "client/enable/enable.h"
#include "client/hooks/gate_link.h"
#include "client/hooks/githook.h"
#include "proto/lib/fsync.h"

static void check_fsync(struct doctor_repo *p)
{
	const char *value = gitconfig_get(&p->all, "core.fsync");
	const char *method = gitconfig_get(&p->all, "core.fsyncmethod");

	if (!value)
		doctor_found_in(p, FOUND_FSYNC_UNSET,
		    "core.fsync is not set: git flushes neither refs nor loose "
		    "objects, so a power loss after git pack-refs or git gc "
		    "can take back durable refs");
	else if (!fsync_covers_refs(value))
		doctor_found_in(p, FOUND_FSYNC_WEAK,
		    "core.fsync is %s, without \"reference\": a power loss "
		    "after git pack-refs or git gc can take back durable refs",
		    value);
	if (!fsync_covers_objects(value) &&
	    !enable_is_true(&p->all, "core.fsyncobjectfiles"))
		doctor_found_in(p, FOUND_FSYNC_OBJECTS,
		    "core.fsync is %s, without \"loose-object\": a power loss "
		    "can leave an object of a push empty; a repeated push is "
		    "then answered ok without the object",
		    value ? value : "not set");
	if (method && !strcasecmp(method, "writeout-only"))
		doctor_found_in(p, FOUND_FSYNC_METHOD,
		    "core.fsyncMethod is writeout-only: data stays in the "
		    "cache of the disk");
}

/* The next git may have --auto, so a git without --auto gets the warning,
 * too. */
static void check_packing(struct doctor_repo *p)
{
	const char *key;
	size_t i;

	for (i = 0; i < 2; i++) {
		key = enable_no_packing[i];
		if (!gitconfig_get(&p->all, key) ||
		    enable_is_true(&p->all, key))
			doctor_found_in(p, FOUND_GIT_PACKS,
			    "%s is not false: git runs git pack-refs --auto by "
			    "itself, which can bring deleted refs and older "
			    "values back; the daemon packs refs",
			    key);
	}
}

static void check_durability(struct doctor_repo *p)
{
	const char *value = gitconfig_get(&p->all, "refd.durability");
	enum refd_durability mode = REFD_DURABILITY_DEFAULT;

	if (value &&
	    (refd_durability_from_name(value, &mode) < 0 ||
		mode == REFD_DURABILITY_DEFAULT)) {
		doctor_found_in(p, FOUND_DURABILITY_INVALID,
		    "refd.durability is '%s', so refd refuses its pushes",
		    value);
		return;
	}
	if (mode < p->d->durability)
		mode = p->d->durability;
	doctor_checked(p->d, true, "%s (durability %s)", p->name,
	    mode == REFD_DURABILITY_DEFAULT ? "as the daemon has it" :
					      refd_durability_name(mode));
	if (mode != REFD_DURABILITY_DEFAULT && mode < REFD_DURABILITY_JOURNAL)
		doctor_found_in(p, FOUND_DURABILITY_WEAK,
		    "in mode %s a power loss can take back updates that were "
		    "answered ok",
		    refd_durability_name(mode));
}

static void check_transaction_hook(struct doctor_repo *p)
{
	if (gate_link_runs_other(p->hooks, p->name) ||
	    githook_is_configured(&p->all, GATE_LINK_NAME))
		doctor_found_in(p, FOUND_TRANSACTION_HOOK,
		    "it has a reference-transaction hook: its transactions "
		    "share no batch, and hold locks while the hook runs");
}

/* Git serves users other than the owner only if safe.directory permits. Git
 * does not read this setting from the repository, so the system's configuration
 * is asked. */
static bool is_safe_for_others(const struct doctor_repo *p)
{
	const char *get[] = { "git", "config", "--system", "-z", "--get-all",
		"safe.directory", NULL };
	struct text t = { 0 };
	bool is = false;
	size_t at = 0, len;

	child_capture_within(get, &t, 30, 1 << 20);
	for (; at < t.len; at += strlen(t.data + at) + 1) {
		const char *value = t.data + at;

		len = strlen(value);
		is |= !strcmp(value, "*") || !strcmp(value, p->name) ||
		    !strcmp(value, p->gd->path);
		is |= len > 2 && !strcmp(value + len - 2, "/*") &&
		    !strncmp(value, p->name, len - 1);
	}
	text_done(&t);
	return is;
}

static void check_sharing(struct doctor_repo *p)
{
	char *refs = xasprintf("%s/refs", p->name);
	const char *value = gitconfig_get(&p->all, "core.sharedrepository");
	bool is_shared = value && strcasecmp(value, "umask") &&
	    enable_is_true(&p->all, "core.sharedrepository");
	struct stat st;

	if (lstat(refs, &st) == 0 && S_ISDIR(st.st_mode)) {
		bool is_open = st.st_mode & 0020;

		if (is_shared && (!is_open || !(st.st_mode & 02000)))
			doctor_found_in(p, FOUND_SHARED_MODES,
			    "core.sharedRepository is %s, and refs/ has mode "
			    "%04o: the group cannot share it",
			    value, st.st_mode & 07777);
		if (!is_shared && is_open)
			doctor_found_in(p, FOUND_SHARED_UNSET,
			    "its group may write refs/, and "
			    "core.sharedRepository is not set: members of the "
			    "group cannot change each other's files");
		if ((is_shared || is_open) && !is_safe_for_others(p))
			doctor_found_in(p, FOUND_SAFE_DIRECTORY,
			    "users other than the owner may write it, and git "
			    "refuses it to them: safe.directory of the "
			    "system's configuration does not name it");
	}
	free(refs);
}

void doctor_check_settings(struct doctor_repo *p)
{
	const char *fallback = gitconfig_get(&p->all, "refd.fallback");
	const char *current =
	    gitconfig_get(&p->all, "receive.denycurrentbranch");

	check_sharing(p);
	if (!p->is_enabled)
		return;
	check_fsync(p);
	check_packing(p);
	check_durability(p);
	check_transaction_hook(p);
	if (enable_is_true(&p->all, "receive.shallowupdate"))
		doctor_found_in(p, FOUND_SHALLOW_UPDATE,
		    "receive.shallowUpdate is true, and git does not check "
		    "shallow pushes that a proc-receive hook takes");
	if (current && !strcasecmp(current, "updateInstead"))
		doctor_found_in(p, FOUND_UPDATE_INSTEAD,
		    "receive.denyCurrentBranch is updateInstead: such pushes "
		    "are left to git, and have its durability");
	if (fallback && strcmp(fallback, "git") && strcmp(fallback, "refuse"))
		doctor_found_in(p, FOUND_FALLBACK_INVALID,
		    "refd.fallback is '%s', so refd refuses its pushes",
		    fallback);
}
