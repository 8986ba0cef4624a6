#include "client/request/context.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "client/base/child.h"
#include "client/git/identity.h"
#include "client/request/ssh_key.h"

char *context_committer(const struct gitconfig *config, const struct gitdir *gd)
{
	char *dir = xasprintf("--git-dir=%s", gd->path);
	const char *argv[] = { "git", dir, "var", "GIT_COMMITTER_IDENT", NULL };
	char *committer = identity_committer(config);
	struct text t = { 0 };

	if (!committer) {
		if (child_capture(argv, &t) || !t.len)
			die("git does not know the committer");
		t.data[strcspn(t.data, "\n")] = '\0';
		committer = t.data;
	}
	free(dir);
	return committer;
}

/* Returns one of three spellings, or NULL. */
static const char *log_all_ref_updates(const struct gitconfig *config)
{
	const char *value = gitconfig_get(config, "core.logallrefupdates");

	if (!value)
		return NULL;
	if (!strcasecmp(value, "always"))
		return "always";
	return gitconfig_bool(config, "core.logallrefupdates", false) ? "true" :
									"false";
}

void context_config(struct gitconfig *config, const struct gitdir *gd)
{
	gitconfig_load(config, gd);
	/* A bad value ends the program, as in git. */
	log_all_ref_updates(config);
}

/* Parses a number as git_parse_int() of git's config.c. */
static int64_t parse_number_of(const char *key, const char *value)
{
	char *end;
	int64_t factor = 1, n;

	errno = 0;
	n = strtoll(value, &end, 0);
	if (*end && !end[1]) {
		if (!strcasecmp(end, "k"))
			factor = 1 << 10;
		else if (!strcasecmp(end, "m"))
			factor = 1 << 20;
		else if (!strcasecmp(end, "g"))
			factor = 1 << 30;
		end += factor > 1;
	}
	if (end == value || *end)
		die("bad numeric config value '%s' for '%s': invalid unit",
		    value, key);
	if (errno == ERANGE || n > INT_MAX / factor || n < INT_MIN / factor)
		die("bad numeric config value '%s' for '%s': out of range",
		    value, key);
	return n * factor;
}

/* The time to wait for a foreign lock. A negative time means until the
 * deadline. */
static bool lock_timeout(const struct gitconfig *config, const char *key,
    uint32_t *ms)
{
	const char *value = gitconfig_get(config, key);
	int64_t n;

	if (!value)
		return false;
	n = parse_number_of(key, value);
	*ms = n < 0 || n > REFD_DEADLINE_MAX_MS ? REFD_DEADLINE_MAX_MS :
						  (uint32_t)n;
	return true;
}

/* Names of the user, set by the programs around git: web servers, gitolite,
 * GitLab, Gitea and Forgejo, Gogs, Soft Serve, sshd. The protocol requires this
 * order. No program sets more names than a request carries. */
static void add_identities(struct refd_request *req)
{
	static const char *const names[] = { "GITEA_PUSHER_ID",
		"GITEA_PUSHER_NAME", "GIT_TRACE2_PARENT_SID", "GL_ID",
		"GL_USER", "GL_USERNAME", "GOGS_AUTH_USER_NAME", "REMOTE_USER",
		"SOFT_SERVE_USERNAME", "SSH_CONNECTION", "SSH_USER_AUTH" };
	static char key[SSH_KEY_NAME_MAX + 1];
	const char *value;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		value = getenv(names[i]);
		/* The variable of sshd names a file. */
		if (value && !strcmp(names[i], "SSH_USER_AUTH"))
			value = ssh_key_name(value, key) ? key : NULL;
		if (req->nr_identities == REFD_IDENTITIES_MAX || !value ||
		    !*value || strlen(value) > REFD_IDENT_MAX)
			continue;
		req->identities[req->nr_identities].name = names[i];
		req->identities[req->nr_identities++].value = value;
	}
}

/* An unreadable level must not become a weaker level, so a bad value ends the
 * program. */
static enum refd_durability durability(const struct gitconfig *config)
{
	const char *value = gitconfig_get(config, "refd.durability");
	enum refd_durability mode;

	if (!value)
		return REFD_DURABILITY_DEFAULT;
	if (refd_durability_from_name(value, &mode) < 0 ||
	    mode == REFD_DURABILITY_DEFAULT)
		die("refd.durability is '%s': it can be none, periodic, "
		    "journal, batch or fsync",
		    value);
	return mode;
}

static bool has_include(const struct gitconfig *config)
{
	const char *key, *value;
	size_t at = 0;

	while (gitconfig_next(config, &at, &key, &value))
		if (has_prefix(key, "include.") ||
		    has_prefix(key, "includeif."))
			return true;
	return false;
}

/* The daemon does not read all files that git includes. So the client sends the
 * defaults of unset settings, and the daemon does not look for them. */
static void add_defaults(struct refd_request *req, const struct gitdir *gd,
    const struct gitconfig *config)
{
	bool is_linked = strcmp(gd->path, gd->common) != 0, is_bare;
	size_t len = strlen(gd->common);

	if (!has_include(config))
		return;
	if (!req->shared_repository)
		req->shared_repository = "umask";
	is_bare = gitconfig_bool(config, "core.bare",
	    len < 5 || strcmp(gd->common + len - 5, "/.git") != 0);
	if (!req->log_all_ref_updates)
		req->log_all_ref_updates =
		    is_bare && !is_linked ? "false" : "true";
}

void context_request(struct refd_request *req, const struct gitdir *gd,
    const struct gitconfig *config)
{
	mode_t mask = umask(0);

	umask(mask);
	memset(req, 0, sizeof(*req));
	req->verb = REFD_VERB_TRANSACTION;
	req->git_dir = gd->path;
	req->common_dev = gd->dev;
	req->common_ino = gd->ino;
	req->umask = mask;
	req->durability = durability(config);
	req->log_all_ref_updates = log_all_ref_updates(config);
	req->shared_repository = gitconfig_get(config, "core.sharedrepository");
	add_defaults(req, gd, config);
	req->has_ref_lock_timeout = lock_timeout(config,
	    "core.filesreflocktimeout", &req->ref_lock_timeout_ms);
	req->has_packed_refs_timeout = lock_timeout(config,
	    "core.packedrefstimeout", &req->packed_refs_timeout_ms);
	/* A value that is too long is left out, because the variable grows with
	 * each program in the chain, and is only for people. The slow log has
	 * the whole value, and history has the identity with this name. */
	req->trace2_sid = getenv("GIT_TRACE2_PARENT_SID");
	if (req->trace2_sid && strlen(req->trace2_sid) > REFD_IDENT_MAX)
		req->trace2_sid = NULL;
	add_identities(req);
}
