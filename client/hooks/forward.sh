#!/bin/sh
# Installed with refd: runs the repository's own hook of this name.
#
# Git runs this file as one of the links beside it, because core.hooksPath names
# this directory. Git leaves GIT_DIR unset if git found the work tree by itself.
# .git may then be a file, in a new linked worktree.
dir=${GIT_DIR:-.git}
if [ -f "$dir" ]; then
	IFS= read -r line <"$dir"
	dir=${line#gitdir: }
fi
if [ -n "$GIT_COMMON_DIR" ]; then
	dir=$GIT_COMMON_DIR
elif [ -f "$dir/commondir" ]; then
	IFS= read -r line <"$dir/commondir"
	case $line in /*) dir=$line ;; *) dir=$dir/$line ;; esac
fi
hook=$dir/hooks/${0##*/}
[ "$dir" != . ] || hook=hooks/${0##*/}
[ ! -x "$hook" ] || exec "$hook" "$@"
[ "${0##*/}" = push-to-checkout ] || exit 0

# If a push-to-checkout hook exists, git expects the hook to do git's default
# action: see githooks(5).
refuse() {
	echo "$1" >&2
	exit 1
}
cd "$GIT_WORK_TREE" || exit
head=HEAD
git rev-parse -q --verify HEAD >/dev/null ||
	head=$(git hash-object -t tree /dev/null)
git update-index -q --ignore-submodules --refresh ||
	refuse 'Up-to-date check failed'
git diff-files --quiet --ignore-submodules -- ||
	refuse 'Working directory has unstaged changes'
git diff-index --quiet --cached --ignore-submodules "$head" -- ||
	refuse 'Working directory has staged changes'
git read-tree -u -m "$1" ||
	refuse 'Could not update working tree to new HEAD'
