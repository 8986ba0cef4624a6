/*
 * Which names git would accept: check_refname_format() and refname_is_safe()
 * of git's refs.c, ported by rule (libgit2's check differs in both
 * directions). Pure functions; any thread.
 */
#ifndef PROTO_REFNAME_H
#define PROTO_REFNAME_H

#include <stdbool.h>
#include <stddef.h>

/* git check-ref-format --allow-onelevel: no empty component, none beginning
 * with "." or ending with ".lock", no "..", "@{", lone "@", control bytes,
 * DEL, space ~ ^ : ? * [ \, no "." or "/" at the end. */
bool refd_refname_format_ok(const char *name);

/*
 * May refd be asked to write NAME? Below refs/ with a valid format; or a
 * root ref (upper case, "-" and "_" only, as git's is_root_ref_syntax() has
 * it: HEAD, ORIG_HEAD, AUTO_MERGE, ...), but not FETCH_HEAD or MERGE_HEAD;
 * a per-worktree name also behind "main-worktree/" or "worktrees/<id>/";
 * or any other name of one component, which git takes too, unless it is
 * reserved. (git also writes "a/b" outside of refs/; refd does not.) And
 * within REFD_REFNAME_MAX and REFD_COMPONENT_MAX (*TOO_LONG is then set; may
 * be NULL).
 */
bool refd_refname_may_write(const char *name, bool *too_long);

/* config, index, objects, packed-refs, ...: a ref of that name would be taken
 * for something else, even where there is no such file yet. */
bool refd_refname_is_reserved(const char *name);

/*
 * May refd be asked to delete NAME? git deletes names of a broken format too,
 * as long as they stay inside (refname_is_safe()): below refs/ without empty,
 * "." and ".." components, or a root ref without "-". Unlike git, never one
 * with a component that ends with ".lock": that file is somebody's lock.
 */
bool refd_refname_may_delete(const char *name, bool *too_long);

/* receive-pack's update(): "refs/" and a valid format with at least two
 * components below it ("funny refname" otherwise). */
bool refd_refname_may_push(const char *name);
/* The same of a deletion: one component will do. */
bool refd_refname_may_push_deletion(const char *name);

/* HEAD-like names, refs/bisect/, refs/worktree/, refs/rewritten/: the ones
 * that belong to a worktree's own git-dir (is_per_worktree_ref). */
bool refd_refname_is_per_worktree(const char *name);

/* Whose directory a name's file is in (git's parse_worktree_ref()). */
enum refd_place {
	REFD_PLACE_COMMON, /* the repository's: refs/heads/x */
	REFD_PLACE_OWN,    /* the client's own worktree's: HEAD */
	REFD_PLACE_MAIN,   /* main-worktree/HEAD */
	REFD_PLACE_LINKED  /* worktrees/<id>/HEAD */
};

/* *BARE is the name below that directory; of LINKED, ID_LEN bytes at *ID
 * name the worktree. A prefix before a name that is not per worktree is
 * none: such a name is COMMON, and git would take it for a path. */
enum refd_place refd_refname_place(const char *name, const char **id,
    size_t *id_len, const char **bare);

#endif
