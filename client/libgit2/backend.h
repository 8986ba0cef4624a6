/*
 * The ref database of an attached repository.
 *
 * The functions of write.c and lock.c are those of git_refdb_backend
 * (git2/sys/refdb_backend.h) that write. They return 0 or a code of
 * refd_git2.h, with the message set. Any thread; they block.
 */
#ifndef CLIENT_LIBGIT2_BACKEND_H
#define CLIENT_LIBGIT2_BACKEND_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <git2.h>
#include <git2/sys/refdb_backend.h>
#if __has_include(<git2/sys/errors.h>)
#include <git2/sys/errors.h>
#endif

struct lock;

struct backend {
	git_refdb_backend parent; /* first */
	git_repository *repo;     /* borrowed; lives longer */
	/* libgit2's own backend, for everything that only reads, and the
	 * database FILES_DB, which owns this backend. */
	git_refdb *files_db;
	git_refdb_backend *files;
	char *socket, *git_dir;
	bool is_guarded; /* the repository named SOCKET: only of OWNER */
	uid_t owner;     /* of the repository */
	uint64_t common_dev, common_ino; /* when the repository was attached */
	pthread_mutex_t mutex;           /* protects locks */
	struct lock *locks;              /* of git_transactions */
};

/* Sets git_error_last() and returns CODE. */
int backend_fail(int code, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* SOCKET is copied. */
int backend_new(struct backend **out, git_repository *repo, const char *socket);
void backend_free(struct backend *be);

/* ---- write.c ---- */

int write_ref(git_refdb_backend *parent, const git_reference *ref, int force,
    const git_signature *who, const char *message, const git_oid *old,
    const char *old_target);
int write_delete(git_refdb_backend *parent, const char *name,
    const git_oid *old, const char *old_target);
int write_rename(git_reference **out, git_refdb_backend *parent,
    const char *old_name, const char *new_name, int force,
    const git_signature *who, const char *message);

/* ---- lock.c ---- */

int lock_ref(void **payload, git_refdb_backend *parent, const char *name);
int lock_end(git_refdb_backend *parent, void *payload, int success,
    int update_reflog, const git_reference *ref, const git_signature *who,
    const char *message);
int lock_reflog_write(git_refdb_backend *parent, git_reflog *reflog);
int lock_reflog_rename(git_refdb_backend *parent, const char *old_name,
    const char *new_name);
int lock_reflog_delete(git_refdb_backend *parent, const char *name);

#endif
