#include "client/context.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "client/child.h"
#include "client/identity.h"

void context_config(struct gitconfig *config, const struct gitdir *gd)
{
	static const char *const words[] = { "logallrefupdates", "[refd",
		NULL };

	if (identity_needs_config() || gitconfig_might_say(gd, words))
		gitconfig_load(config, gd);
}

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

/* The three values it can have, in one spelling. */
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
	req->log_all_ref_updates = log_all_ref_updates(config);
	/* It grows with each program in the chain, and is only for people. */
	req->trace2_sid = getenv("GIT_TRACE2_PARENT_SID");
	if (req->trace2_sid && strlen(req->trace2_sid) > REFD_IDENT_MAX)
		req->trace2_sid = NULL;
}
