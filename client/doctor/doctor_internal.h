/* What the parts of the doctor share. One thread. */
#ifndef CLIENT_DOCTOR_DOCTOR_INTERNAL_H
#define CLIENT_DOCTOR_DOCTOR_INTERNAL_H

#include <sys/stat.h>
#include <sys/types.h>

#include "client/doctor/finding.h"
#include "client/enable/site.h"
#include "client/git/gitconfig.h"
#include "client/git/gitdir.h"
#include "proto/message.h"

/* A repository that was looked at, by what must not be there twice. */
struct known_repo {
	char *path;
	char *uuid; /* of refd/id; NULL: not served yet */
};

/* One look at everything. */
struct doctor {
	const char *socket_option; /* --socket, or NULL */
	struct findings f;
	struct text looked; /* a line for each thing that was looked at */

	/* What the daemon said; NULL, 0 and DEFAULT where it said nothing. */
	char *socket, *state_dir;
	pid_t daemon;
	enum refd_durability durability;

	bool has_git;
	char **roots; /* of --system, with a slash at the end */
	size_t nr_roots;
	struct known_repo *known;
	size_t nr_known;
	uint64_t *mounts; /* that were looked at */
	size_t nr_mounts;
};

/* One repository, while it is looked at. */
struct patient {
	struct doctor *d;
	const struct gitdir *gd;
	const char *name;  /* gd->common */
	struct stat owner; /* whose it is */
	bool as_owner;     /* looked at with its owner's rights */
	struct site site;
	struct block record;
	struct gitconfig all; /* as git resolves it there */
	char *hooks;          /* where git finds hooks */
	bool hooks_are_set;   /* by core.hooksPath */
	bool is_enabled;      /* meant to be: by a record, or a root's */
};

/* ---- the machine ---- */

void look_at_daemon(struct doctor *d);
/* What refd check-config says of the daemon's file. After look_at_daemon(). */
void look_at_config(struct doctor *d);
/* What that user gets of it, besides the owners of repositories. */
void look_at_user(struct doctor *d, const char *name);
void look_at_gits(struct doctor *d);
void look_at_system(struct doctor *d);
void look_at_list(struct doctor *d);
/* The file system of PATH, where WHAT is kept; each once. */
void look_at_disk(struct doctor *d, const char *path, const char *what);
/* The same by its LINE of /proc/self/mountinfo, which is written to. */
void look_at_mount(struct doctor *d, char *line, const char *what);
/* Settings of the kernel, from files below PROC, which is "/proc". */
void look_at_kernel(struct doctor *d, const char *proc);

/* ---- a repository ---- */

/* PATH is one, or that is what is found. */
void look_at_repository(struct doctor *d, const char *path);
/* These as its owner. */
void look_at_hooks(struct patient *p);
void look_at_patterns(struct patient *p);
void look_at_settings(struct patient *p);
void look_at_owners(struct patient *p);
void look_at_links(struct patient *p);
void look_at_worktrees(struct patient *p);
void look_at_alternates(struct patient *p);
void look_at_id(struct patient *p);
/* And this as this program. */
void look_at_locks(struct patient *p);

/* ---- mending ---- */

/* What can be; true: it was tried, and is to be looked at again. */
bool mend(const struct findings *f);

#endif
