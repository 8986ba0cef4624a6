#include "client/hooks/forward.h"

#include <stdlib.h>
#include <string.h>

/* Without fsmonitor-watchman, which git runs by the path in core.fsmonitor. */
const char *const forward_names[] = { "applypatch-msg", "commit-msg",
	"p4-changelist", "p4-post-changelist", "p4-pre-submit",
	"p4-prepare-changelist", "post-applypatch", "post-checkout",
	"post-commit", "post-index-change", "post-merge", "post-receive",
	"post-rewrite", "post-update", "pre-applypatch", "pre-auto-gc",
	"pre-commit", "pre-merge-commit", "pre-push", "pre-rebase",
	"pre-receive", "prepare-commit-msg", "push-to-checkout",
	"reference-transaction", "sendemail-validate", "update", NULL };

/*
 * git leaves GIT_DIR unset if it found the work tree itself. .git may then be a
 * file, in a new linked worktree.
 */
#define HEAD                                                                   \
	"#!/bin/sh\n"                                                          \
	"# Made by \"refd enable\": runs the repository's own hook of this "   \
	"name.\n"                                                              \
	"dir=${GIT_DIR:-.git}\n"                                               \
	"if [ -f \"$dir\" ]; then\n"                                           \
	"\tIFS= read -r line <\"$dir\"\n"                                      \
	"\tdir=${line#gitdir: }\n"                                             \
	"fi\n"                                                                 \
	"if [ -n \"$GIT_COMMON_DIR\" ]; then\n"                                \
	"\tdir=$GIT_COMMON_DIR\n"                                              \
	"elif [ -f \"$dir/commondir\" ]; then\n"                               \
	"\tIFS= read -r line <\"$dir/commondir\"\n"                            \
	"\tcase $line in /*) dir=$line ;; *) dir=$dir/$line ;; esac\n"         \
	"fi\n"                                                                 \
	"hook=$dir/hooks/${0##*/}\n"                                           \
	"[ \"$dir\" != . ] || hook=hooks/${0##*/}\n"

#define TAIL                                                                   \
	"[ -x \"$hook\" ] || exit 0\n"                                         \
	"exec \"$hook\" \"$@\"\n"

/* If a hook of this name exists, git expects the hook to do git's default
 * action: see githooks(5). */
#define TAIL_CHECKOUT                                                           \
	"[ ! -x \"$hook\" ] || exec \"$hook\" \"$@\"\n"                         \
	"refuse() {\n"                                                          \
	"\techo \"$1\" >&2\n"                                                   \
	"\texit 1\n"                                                            \
	"}\n"                                                                   \
	"cd \"$GIT_WORK_TREE\" || exit\n"                                       \
	"head=HEAD\n"                                                           \
	"git rev-parse -q --verify HEAD >/dev/null ||\n"                        \
	"\thead=$(git hash-object -t tree /dev/null)\n"                         \
	"git update-index -q --ignore-submodules --refresh ||\n"                \
	"\trefuse 'Up-to-date check failed'\n"                                  \
	"git diff-files --quiet --ignore-submodules -- ||\n"                    \
	"\trefuse 'Working directory has unstaged changes'\n"                   \
	"git diff-index --quiet --cached --ignore-submodules \"$head\" -- ||\n" \
	"\trefuse 'Working directory has staged changes'\n"                     \
	"git read-tree -u -m \"$1\" ||\n"                                       \
	"\trefuse 'Could not update working tree to new HEAD'\n"

void forward_text(const char *name, struct text *t)
{
	text_adds(t, HEAD);
	text_adds(t, strcmp(name, "push-to-checkout") ? TAIL : TAIL_CHECKOUT);
}

/* More than any forwarder. */
#define SCRIPT_BYTES (64 << 10)

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

bool forward_is(const char *path)
{
	struct text t = { 0 };
	bool is = text_read_regular(&t, path, SCRIPT_BYTES) == 0 &&
	    has_prefix(t.data, HEAD);

	text_done(&t);
	return is;
}

char *forward_follow(const char *path, const char *common)
{
	if (!forward_is(path))
		return xstrdup(path);
	return xasprintf("%s/hooks/%s", common, base_name(path));
}
