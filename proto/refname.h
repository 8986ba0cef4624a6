/*
 * Names that git would accept: check_refname_format() and refname_is_safe() of
 * git's refs.c. libgit2's check differs in both directions, so git's rules are
 * ported one by one. Pure functions; any thread.
 */
#ifndef PROTO_REFNAME_H
#define PROTO_REFNAME_H

#include <stdbool.h>
#include <stddef.h>

/* Below this name, a node keeps the values of other programs. No
 * other node has these refs. */
#define REFD_DIVERGED "refs/refd/diverged/"
bool refd_refname_is_kept(const char *name);

/* git check-ref-format --allow-onelevel: no empty component, no component that
 * begins with "." or ends with ".lock", no "..", "@{", lone "@", control bytes,
 * DEL, space ~ ^ : ? * [ \, no "." or "/" at the end. */
bool refd_refname_format_ok(const char *name);

/* Is NAME longer than REFD_REFNAME_MAX, or a component longer than
 * REFD_COMPONENT_MAX? git may hold such a ref, in reftables, in packed-refs, or
 * in a deep directory, so the clients leave the ref to git
 * (client/request/unserved.h). */
bool refd_refname_is_too_long(const char *name);

/*
 * May refd be asked to write NAME? NAME must be
 * - a name below refs/ with a valid format,
 * - or a root ref: upper case, "-" and "_" only, as in git's
 *   is_root_ref_syntax() (HEAD, ORIG_HEAD, AUTO_MERGE, ...), but not FETCH_HEAD
 *   or MERGE_HEAD,
 * - or a per-worktree name behind "main-worktree/" or "worktrees/<id>/",
 * - or any other name of one component that git accepts and that is not
 *   reserved. (git also writes "a/b" outside refs/; refd does not.)
 * NAME must also not be too long.
 */
bool refd_refname_may_write(const char *name);

/* config, index, objects, packed-refs, ...: git or a tool would take a ref with
 * this name for its own file. The file need not exist yet. */
bool refd_refname_is_reserved(const char *name);

/*
 * May refd be asked to delete NAME? Like git, refd deletes names of invalid
 * format that stay inside the directory (refname_is_safe()): a name below refs/
 * without empty, "." and ".." components, or a root ref without "-". Unlike
 * git, refd refuses a component that ends with ".lock", because the file is a
 * lock. NAME must also not be too long.
 */
bool refd_refname_may_delete(const char *name);

/* As receive-pack's update(): "refs/", and behind it a valid format with at
 * least two components. Otherwise the error is "funny refname". */
bool refd_refname_may_push(const char *name);
/* The same for a deletion, for which one component is enough. */
bool refd_refname_may_push_deletion(const char *name);

/* As git's is_root_ref(): a ref beside refs/ that git lists and migrates: HEAD,
 * ORIG_HEAD, AUTO_MERGE, but neither FETCH_HEAD nor any other name. */
bool refd_refname_is_root(const char *name);

/* Names in a worktree's own git-dir (is_per_worktree_ref): HEAD and similar
 * names, refs/bisect/, refs/worktree/, refs/rewritten/. */
bool refd_refname_is_per_worktree(const char *name);

/* The directory of a ref's file (git's parse_worktree_ref()). */
enum refd_place {
	REFD_PLACE_COMMON, /* of the repository: refs/heads/x */
	REFD_PLACE_OWN,    /* of the client's own worktree: HEAD */
	REFD_PLACE_MAIN,   /* main-worktree/HEAD */
	REFD_PLACE_LINKED  /* worktrees/<id>/HEAD */
};

/* Finds the directory of NAME. *BARE is the name below this directory. For
 * LINKED, the ID_LEN bytes at *ID name the worktree. If the name behind a
 * prefix is not per worktree, the prefix does not count. The place is then
 * COMMON, where git would use the whole name as a path. */
enum refd_place refd_refname_place(const char *name, const char **id,
    size_t *id_len, const char **bare);

#endif
