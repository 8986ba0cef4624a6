/* What configuration of git's, and of refd's in git's, makes promises weaker.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/base/child.h"
#include "client/doctor/doctor_internal.h"
#include "client/enable/enable.h"
#include "client/enable/fsync.h"
#include "client/hooks/forward.h"

/* A boolean of git's; what is none counts as true. */
static bool is_true(const struct gitconfig *config, const char *key)
{
	static const char *const no[] = { "", "false", "no", "off", "0" };
	const char *value = gitconfig_get(config, key);
	size_t i;

	for (i = 0; value && i < sizeof(no) / sizeof(no[0]); i++)
		if (!strcasecmp(value, no[i]))
			return false;
	return value != NULL;
}

static void look_at_fsync(struct patient *p)
{
	const char *value = gitconfig_get(&p->all, "core.fsync");
	const char *method = gitconfig_get(&p->all, "core.fsyncmethod");

	if (!value)
		found(&p->d->f, FOUND_FSYNC_UNSET, p->name,
		    "core.fsync is not set: git flushes neither refs nor loose "
		    "objects, so that its pack-refs and gc can lose in a power "
		    "cut what refd had made durable");
	else if (!fsync_covers_refs(value))
		found(&p->d->f, FOUND_FSYNC_WEAK, p->name,
		    "core.fsync is %s, without \"reference\": git pack-refs "
		    "and git gc can lose in a power cut what refd had made "
		    "durable",
		    value);
	if (!fsync_covers_objects(value) &&
	    !is_true(&p->all, "core.fsyncobjectfiles"))
		found(&p->d->f, FOUND_FSYNC_OBJECTS, p->name,
		    "core.fsync is %s, without \"loose-object\": a power cut "
		    "can leave an object of a push empty, git then takes it "
		    "for there when it is pushed again, and that push is "
		    "answered ok",
		    value ? value : "not set");
	if (method && !strcasecmp(method, "writeout-only"))
		found(&p->d->f, FOUND_FSYNC_METHOD, p->name,
		    "core.fsyncMethod is writeout-only, which leaves what git "
		    "writes in the disk's cache");
}

static void look_at_durability(struct patient *p)
{
	const char *value = gitconfig_get(&p->all, "refd.durability");
	enum refd_durability mode = REFD_DURABILITY_DEFAULT;

	if (value &&
	    (refd_durability_from_name(value, &mode) < 0 ||
		mode == REFD_DURABILITY_DEFAULT)) {
		found(&p->d->f, FOUND_DURABILITY_INVALID, p->name,
		    "refd.durability is '%s', so refd refuses its pushes",
		    value);
		return;
	}
	if (mode < p->d->durability)
		mode = p->d->durability;
	text_addf(&p->d->looked, "%s (durability %s)\n", p->name,
	    mode == REFD_DURABILITY_DEFAULT ? "as the daemon has it" :
					      refd_durability_name(mode));
	if (mode != REFD_DURABILITY_DEFAULT && mode < REFD_DURABILITY_JOURNAL)
		found(&p->d->f, FOUND_DURABILITY_WEAK, p->name,
		    "in mode %s a power cut can take what was answered ok",
		    refd_durability_name(mode));
}

static bool has_configured_hook(const struct gitconfig *all)
{
	const char *key, *value;
	size_t at = 0;

	while (gitconfig_next(all, &at, &key, &value)) {
		size_t len = strlen(key);

		if (has_prefix(key, "hook.") && len > 10 &&
		    !strcmp(key + len - 6, ".event") &&
		    !strcmp(value, "reference-transaction"))
			return true;
	}
	return false;
}

static void look_at_transaction_hook(struct patient *p)
{
	char *path = xasprintf("%s/reference-transaction", p->hooks);
	char *hook = forward_follow(path, p->name);

	if (access(hook, X_OK) == 0 || has_configured_hook(&p->all))
		found(&p->d->f, FOUND_TRANSACTION_HOOK, p->name,
		    "it has a reference-transaction hook: its transactions are "
		    "not gathered with others', and hold locks while it runs");
	free(path);
	free(hook);
}

/* git serves others than the owner only where it was told so, and not by the
 * repository. */
static bool is_safe_for_others(const struct patient *p)
{
	const char *get[] = { "git", "config", "--system", "-z", "--get-all",
		"safe.directory", NULL };
	struct text t = { 0 };
	bool is = false;
	size_t at = 0, len;

	child_capture(get, &t);
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

static void look_at_sharing(struct patient *p)
{
	char *refs = xasprintf("%s/refs", p->name);
	const char *value = gitconfig_get(&p->all, "core.sharedrepository");
	bool is_shared = value && strcasecmp(value, "umask") &&
	    is_true(&p->all, "core.sharedrepository");
	struct stat st;

	if (lstat(refs, &st) == 0 && S_ISDIR(st.st_mode)) {
		bool is_open = st.st_mode & 0020;

		if (is_shared && (!is_open || !(st.st_mode & 02000)))
			found(&p->d->f, FOUND_SHARED_MODES, p->name,
			    "core.sharedRepository is %s, and refs/ has mode "
			    "%04o: the group cannot share it",
			    value, st.st_mode & 07777);
		if (!is_shared && is_open)
			found(&p->d->f, FOUND_SHARED_UNSET, p->name,
			    "its group may write refs/, and "
			    "core.sharedRepository is not set: what one member "
			    "makes another cannot change");
		if ((is_shared || is_open) && !is_safe_for_others(p))
			found(&p->d->f, FOUND_SAFE_DIRECTORY, p->name,
			    "others than its owner may write it, and git "
			    "refuses it to them: safe.directory does not name "
			    "it in the system's configuration");
	}
	free(refs);
}

void look_at_settings(struct patient *p)
{
	const char *fallback = gitconfig_get(&p->all, "refd.fallback");
	const char *current =
	    gitconfig_get(&p->all, "receive.denycurrentbranch");

	look_at_sharing(p);
	if (!p->is_enabled)
		return;
	look_at_fsync(p);
	look_at_durability(p);
	look_at_transaction_hook(p);
	if (is_true(&p->all, "receive.shallowupdate"))
		found(&p->d->f, FOUND_SHALLOW_UPDATE, p->name,
		    "receive.shallowUpdate is true, and git does not check "
		    "shallow pushes that a proc-receive hook takes");
	if (current && !strcasecmp(current, "updateInstead"))
		found(&p->d->f, FOUND_UPDATE_INSTEAD, p->name,
		    "receive.denyCurrentBranch is updateInstead: such pushes "
		    "are left to git, and have its durability");
	if (fallback && strcmp(fallback, "git") && strcmp(fallback, "refuse"))
		found(&p->d->f, FOUND_FALLBACK_INVALID, p->name,
		    "refd.fallback is '%s', so refd refuses its pushes",
		    fallback);
}
