/* Shared by the files of the doctor. One thread. */
#ifndef CLIENT_DOCTOR_DOCTOR_INTERNAL_H
#define CLIENT_DOCTOR_DOCTOR_INTERNAL_H

#include <sys/stat.h>
#include <sys/types.h>

#include "client/enable/site.h"
#include "client/git/gitconfig.h"
#include "client/git/gitdir.h"
#include "client/request/connect.h"
#include "proto/lib/cli.h"
#include "proto/lib/finding.h"
#include "proto/message.h"

/* A checked repository: no path and no id may occur twice. */
struct known_repo {
	char *path;
	struct stat st;
	char *uuid; /* from refd/id; NULL: refd never served the repository */
};

/* One run of all checks. */
struct doctor {
	const char *socket_option; /* --socket, or NULL */
	bool mends;                /* --fix */
	struct findings f;         /* which tell, with the rights of an owner */

	/* From the daemon's answers, or NULL, 0 and DEFAULT without an
	 * answer. */
	char *socket, *state_dir;
	pid_t daemon;
	enum refd_durability durability;
	/* Daemons that are nodes, and daemons that are alone. */
	unsigned nr_nodes, nr_single;

	bool has_git;
	char **roots; /* of --system, each with a slash at its end */
	size_t nr_roots;
	struct known_repo *known;
	size_t nr_known, nr_checked; /* CHECKED: to the end */
	uint64_t *mounts;            /* ids of the checked mounts */
	size_t nr_mounts;
};

/* One repository, while it is checked. */
struct doctor_repo {
	struct doctor *d;
	const struct gitdir *gd;
	const char *name; /* gd->common */
	bool as_owner;    /* the checks have the rights of the owner */
	struct site site;
	struct gitconfig all; /* as git resolves it in the repository */
	char *hooks;          /* the directory where git finds hooks */
	bool hooks_are_set;   /* by core.hooksPath */
	bool is_enabled;      /* by a record, or by a root of --system */
};

/* REPO "": about the machine. FILE: relative to REPO, an absolute path without
 * REPO, or "". */
void doctor_found(struct doctor *d, enum finding_id id, const char *repo,
    const char *file, const char *fmt, ...) PRINTF_LIKE(5, 6);
/* About the repository as a whole. */
void doctor_found_in(struct doctor_repo *p, enum finding_id id, const char *fmt,
    ...) PRINTF_LIKE(3, 4);
/* Adds a line to the list of checked objects. */
void doctor_checked(struct doctor *d, bool is_repository, const char *fmt, ...)
    PRINTF_LIKE(3, 4);

/*
 * From the work in a repository to the process of this command, where all
 * results are kept, and where root can see all processes. The findings tell
 * with other first bytes.
 */
enum doctor_told {
	TOLD_FOUND = 'f', /* the common directory; true: go on */
	TOLD_UUID = 'u',  /* of the repository */
	TOLD_SERVED = 's' /* by a daemon */
};
/* The answer, or a negative number. */
int doctor_tell(enum doctor_told what, const char *text);

/* ---- the machine ---- */

/* Every daemon that connect_running_sockets() finds: state, configuration (by
 * refd check-config), and whether USERS may use the daemon. */
void doctor_check_daemons(struct doctor *d, const struct command_list *users);
void doctor_check_gits(struct doctor *d);
void doctor_check_system(struct doctor *d);
void doctor_check_list(struct doctor *d);
/* The file system of PATH, once for each mount. WHAT begins the sentences of
 * its findings: "the journal is". */
void doctor_check_disk(struct doctor *d, const char *path, const char *what);
/* The same by a LINE of /proc/self/mountinfo, which is modified. */
void doctor_check_mount(struct doctor *d, char *line, const char *what);
/* The flushes of the journal since the start of the daemon: their number, and
 * the times that half and 99 of 100 of them did not exceed. */
void doctor_check_flushes(struct doctor *d, uint64_t nr, uint64_t p50_us,
    uint64_t p99_us);
/* Settings of the kernel, below PROC, which is "/proc". */
void doctor_check_kernel(struct doctor *d, const char *proc);

/* ---- a repository ---- */

/* Who named a repository: the user, or refd's list, or a root of --system. */
enum doctor_source { FROM_USER, FROM_LIST, FROM_ROOT };

/* If PATH is no repository, that is the finding, unless PATH is from a root. */
void doctor_check_repository(struct doctor *d, const char *path,
    enum doctor_source from);

/* With the rights of the owner. */
void doctor_check_hooks(struct doctor_repo *p);
void doctor_check_patterns(struct doctor_repo *p);
void doctor_check_settings(struct doctor_repo *p);
void doctor_check_owners(struct doctor_repo *p);
void doctor_check_links(struct doctor_repo *p);
void doctor_check_worktrees(struct doctor_repo *p);
void doctor_check_alternates(struct doctor_repo *p);
void doctor_check_id(struct doctor_repo *p);
/* SOCKET: of the daemon that serves the repository. */
void doctor_check_foreign(struct doctor_repo *p,
    const struct daemon_socket *socket);

/* ---- repairs ---- */

/* True if at least one repair was tried, so all checks must run again. */
bool doctor_mend(const struct doctor *d);

#endif
