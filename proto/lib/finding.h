/*
 * The findings of "refd doctor" and "refd verify": one table, one list, one
 * output for people and for programs.
 *
 *	add	each finding is counted, and held in memory
 *	print	equal findings become one, with the number of
 *		repositories and a few of their names
 *	end	a list of the checked objects, and the counts
 *
 * Findings are equal if id, text and repair are equal. A text may name its
 * repository by path, so the path does not count. With -v, and as JSON, each
 * finding is printed by itself.
 *
 * The output of a server with 10,000 repositories is therefore short if one
 * cause made all findings. After an interrupt (proto/lib/interrupt.h), nothing
 * is added except repairs, because ended children look like errors. The end
 * then says that the findings are not all.
 *
 * One thread. Everything goes to standard output, in colour if
 * proto/lib/colour.h says so; the progress goes to standard error, if standard
 * error is a terminal.
 */
#ifndef PROTO_LIB_FINDING_H
#define PROTO_LIB_FINDING_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/lib/json.h"

#define FINDING_SEVERITY_TABLE(X)                                              \
	X(NOTE, "note")       /* information, perhaps intended */              \
	X(WARNING, "warning") /* something will fail later */                  \
	X(ERROR, "error")     /* something fails or is lost now */

enum finding_severity {
#define X(symbol, word) FINDING_##symbol,
	FINDING_SEVERITY_TABLE(X)
#undef X
};
enum {
#define X(symbol, word) +1
	FINDING_SEVERITIES = FINDING_SEVERITY_TABLE(X)
#undef X
};

/*
 * X(symbol, remedy after a repair that failed). A failed repair cannot be the
 * remedy again. NULL: the remedy of the finding names no repair.
 */
#define FINDING_REPAIR_TABLE(X)                                                \
	X(NONE, NULL)                                                          \
	/* By "refd doctor --fix". */                                          \
	X(ENABLE, NULL) /* refd enable of the repository again */              \
	X(SYSTEM, NULL) /* refd enable --system again */                       \
	X(LIST, NULL) /* the entry leaves the list of enabled repositories */  \
	/* By "refd verify --repair". */                                       \
	/* packed-refs.new goes, under git's lock */                           \
	X(PACKED_NEW,                                                          \
	    "rm <repository>/packed-refs.new, once no git is at "              \
	    "work there")                                                      \
	/* the last value comes back from journal or reflog */                 \
	X(REF,                                                                 \
	    "refd update <ref> <a value from a clone or a backup>, or git "    \
	    "-C <repository> update-ref -d <ref>")                             \
	/* torn lines are cut out of the reflog */                             \
	X(LOG,                                                                 \
	    "remove the line from the file below logs/, while nobody "         \
	    "pushes")                                                          \
	/* the empty reflog is removed */                                      \
	X(EMPTY, "rm the empty file below <repository>/logs")                  \
	X(LOCKS, NULL) /* locks of refd are removed */                         \
	/* the lost footer of a reftable is written again */                   \
	X(TABLE,                                                               \
	    "restore the refs from a backup or a clone; the other tables "     \
	    "of reftable/ may still be read")

enum finding_repair {
#define X(symbol, remedy) REPAIR_##symbol,
	FINDING_REPAIR_TABLE(X)
#undef X
};

/*
 * X(symbol, id, severity, repair, remedy). An id is a word for programs and
 * never changes its meaning. In a remedy, <repository> is the path of the
 * repository.
 */
#define FINDING_TABLE(X)                                                       \
	/* the daemon */                                                       \
	X(DAEMON_AWAY, "daemon-away", ERROR, NONE,                             \
	    "systemctl start refd, or refd@ACCOUNT for the socket of an "      \
	    "account; without systemd: refd daemon")                           \
	X(DAEMON_FAILED, "daemon-cannot-start", ERROR, NONE,                   \
	    "correct the error, which refd check-config names if it is in "    \
	    "the configuration; a service starts again by itself")             \
	X(DAEMON_CONFIG, "daemon-config", ERROR, NONE,                         \
	    "correct the file until refd check-config accepts it")             \
	X(DAEMON_PROTOCOL, "daemon-protocol", ERROR, NONE,                     \
	    "install refd and its daemon in one version, and restart the "     \
	    "daemon")                                                          \
	X(DAEMON_VERSION, "daemon-version", WARNING, NONE,                     \
	    "systemctl restart refd, or refd@ACCOUNT, so that the "            \
	    "installed version runs")                                          \
	X(DAEMON_STATE, "daemon-not-serving", WARNING, NONE,                   \
	    "wait; refd ping --wait returns when the daemon serves")           \
	X(DAEMON_FATAL, "daemon-fatal", ERROR, NONE,                           \
	    "read the daemon's log (journalctl -u refd), then systemctl "      \
	    "restart refd")                                                    \
	X(FLUSH_HANGS, "flush-hangs", ERROR, NONE,                             \
	    "refd status, as root, names the disk; read the kernel's log")     \
	X(FLUSH_SLOW, "flush-slow", WARNING, NONE,                             \
	    "look for other writers on the disk of daemon.state (iostat), or " \
	    "move daemon.state to a faster disk")                              \
	X(DAEMON_USERS, "daemon-user-namespace", ERROR, NONE,                  \
	    "systemctl edit refd: PrivateUsers=no below [Service], "           \
	    "because in the namespace all users look like nobody; "            \
	    "systemctl restart refd")                                          \
	X(DAEMON_UNCONFINED, "daemon-unconfined", WARNING, NONE,               \
	    "use Linux 5.19 or later with Landlock (lsm=) and seccomp; in a "  \
	    "container, permit both in its profile; then restart the daemon")  \
	X(DAEMON_SEES, "daemon-sees-other", ERROR, NONE,                       \
	    "systemctl edit refd: ProtectHome=read-only below [Service], "     \
	    "or mount the directory at the same path in the container; "       \
	    "systemctl restart refd")                                          \
	X(RECOVERY_AWAITS, "recovery-awaits", ERROR, NONE,                     \
	    "the daemon's log names the repositories; bring them back, or "    \
	    "stop the daemon and drop their records with refd recover "        \
	    "--forget")                                                        \
	X(FS_FAILED, "fs-failed", WARNING, NONE,                               \
	    "the daemon's log names the file system; check it, and mount it "  \
	    "again")                                                           \
	X(JOURNAL_DAMAGED, "journal-damaged", ERROR, NONE,                     \
	    "the daemon's log names the place; stop the daemon, run refd "     \
	    "recover --discard, refd disown for each repository, and start "   \
	    "the daemon (operations.md, A journal that is damaged)")           \
	X(NODE_WAITS, "node-waits", ERROR, NONE,                               \
	    "start refd-group (systemctl status refd-group); refd group "      \
	    "status shows PostgreSQL and its standbys")                        \
	X(NODE_BEHIND, "node-behind", WARNING, NONE,                           \
	    "the daemon's log names a row that waits (group-row-waits); refd " \
	    "group status shows PostgreSQL and its standbys")                  \
	X(GROUP_UNMARKED, "group-unmarked", WARNING, NONE,                     \
	    "run refd enable <repository> while this node leads (refd group "  \
	    "promote)")                                                        \
	X(GROUP_UNGUARDED, "group-unguarded", ERROR, ENABLE,                   \
	    "refd enable <repository>")                                        \
	X(GROUP_LEFT, "group-left", WARNING, NONE,                             \
	    "if this machine is no node of a group, remove the file, or "      \
	    "restart the daemon and run refd enable <repository>")             \
	X(SOCKET_CLOSED, "socket-closed", ERROR, NONE,                         \
	    "git config -f /etc/refd/config --add daemon.allowUser "           \
	    "<user>, systemctl reload refd, and chmod a+x the directory "      \
	    "of the socket (an account: /etc/refd/ACCOUNT/config, "            \
	    "refd@ACCOUNT)")                                                   \
	X(USER_DENIED, "user-denied", ERROR, NONE,                             \
	    "git config -f /etc/refd/config --add daemon.allowUser "           \
	    "<user>, and systemctl reload refd (an account: "                  \
	    "/etc/refd/ACCOUNT/config, refd@ACCOUNT)")                         \
	/* durability and the journal's directory */                           \
	X(DURABILITY_WEAK, "durability-weak", WARNING, NONE,                   \
	    "set durability.mode, or refd.durability of the repository, to "   \
	    "journal")                                                         \
	X(DURABILITY_INVALID, "durability-invalid", ERROR, NONE,               \
	    "git -C <repository> config refd.durability journal")              \
	X(STATE_INSIDE, "state-in-repository", ERROR, NONE,                    \
	    "stop the daemon, move the directory, set daemon.state")           \
	X(STATE_OPEN, "state-open", WARNING, NONE, "chmod 0700 the directory") \
	X(STATE_ELSEWHERE, "state-elsewhere", NOTE, NONE,                      \
	    "take both snapshots at once, or run refd checkpoint before")      \
	/* file systems, the kernel */                                         \
	X(FS_NETWORK, "fs-network", ERROR, NONE,                               \
	    "move the data to a local "                                        \
	    "disk")                                                            \
	X(FS_MEMORY, "fs-memory", ERROR, NONE,                                 \
	    "move the data to a disk: a reboot deletes data in memory")        \
	X(FS_OVERLAY, "fs-overlay", WARNING, NONE,                             \
	    "move the data to a volume: the container's removal deletes the "  \
	    "layer")                                                           \
	X(FS_FUSE, "fs-fuse", WARNING, NONE,                                   \
	    "make sure that an fsync there reaches a disk")                    \
	X(FS_NO_LINKS, "fs-no-links", ERROR, NONE,                             \
	    "move the data to ext4, XFS or btrfs")                             \
	X(FS_NO_JOURNAL, "fs-no-journal", WARNING, NONE,                       \
	    "unmount the file system, and run tune2fs -O has_journal on the "  \
	    "device")                                                          \
	X(FS_NO_BARRIER, "fs-no-barrier", ERROR, NONE,                         \
	    "mount without nobarrier, unless a battery backs the disk's "      \
	    "cache")                                                           \
	X(FS_WRITEBACK, "fs-writeback", WARNING, NONE,                         \
	    "mount with data=ordered")                                         \
	X(FS_READ_ONLY, "fs-read-only", ERROR, NONE,                           \
	    "read the kernel's log for the reason; mount -o remount,rw")       \
	X(FS_UNTRIED, "fs-untried", NOTE, NONE,                                \
	    "refd is tested on ext4, XFS and btrfs")                           \
	X(NO_SPACE, "space-low", WARNING, NONE, "free space")                  \
	X(NO_INODES, "inodes-low", WARNING, NONE,                              \
	    "remove files, or loose refs by git pack-refs --all")              \
	X(HARDLINKS, "hardlinks-unprotected", WARNING, NONE,                   \
	    "run sysctl fs.protected_hardlinks=1, and add the setting to "     \
	    "/etc/sysctl.d/")                                                  \
	/* git, and refd enable --system */                                    \
	X(GIT_MISSING, "git-missing", ERROR, NONE, "install git")              \
	X(GIT_OLD, "git-old", ERROR, NONE,                                     \
	    "use git 2.29 or later: older versions run no proc-receive hook")  \
	X(GIT_NO_FSYNC, "git-no-fsync", WARNING, NONE,                         \
	    "use git 2.36 or later: older versions do not flush refs")         \
	X(GIT_VERSIONS, "git-versions", WARNING, NONE,                         \
	    "keep one git in PATH: hooks run the first one")                   \
	X(SYSTEM_INCOMPLETE, "system-incomplete", ERROR, SYSTEM,               \
	    "refd enable --system")                                            \
	X(SYSTEM_CLOSED, "system-unreadable", ERROR, NONE,                     \
	    "chmod a+r the file, and a+x the directories above it")            \
	X(SYSTEM_UNSEARCHED, "system-unsearched", WARNING, NONE,               \
	    "mount the missing disk, or move the repositories up, or refd "    \
	    "disable --system --root <the directory>")                         \
	X(LISTED_GONE, "listed-gone", NOTE, LIST,                              \
	    "mount the missing disk, or clear the list with refd disable "     \
	    "--all")                                                           \
	X(LIST_UNREADABLE, "list-unreadable", ERROR, NONE,                     \
	    "refd enable --list says why")                                     \
	/* is a repository enabled? */                                         \
	X(NO_REPOSITORY, "not-a-repository", ERROR, NONE,                      \
	    "name a repository, or restore its HEAD, objects and refs")        \
	X(NOT_CHECKED, "not-checked", ERROR, NONE,                             \
	    "run refd doctor as the owner of the repository")                  \
	X(NOT_ENABLED, "not-enabled", NOTE, NONE, "refd enable <repository>")  \
	X(FOREIGN_WRITES, "foreign-writes", NOTE, NONE,                        \
	    "refd log --foreign --repo <repository> lists them; refd enable "  \
	    "--gate <repository> records git's writes at once")                \
	X(REPO_REFUSED, "repository-refused", ERROR, NONE,                     \
	    "for a repository below no root: git config -f "                   \
	    "/etc/refd/config --add daemon.root <directory>, systemctl "       \
	    "edit refd: ReadWritePaths=<directory> below [Service], "          \
	    "systemctl restart refd; of another owner: a daemon of the owner " \
	    "(refd-daemon(8)); of another daemon: refd enable --socket <its "  \
	    "socket> <repository>, or, once its journal is gone for good, "    \
	    "refd disown <repository>")                                        \
	X(ENABLE_INCOMPLETE, "enable-incomplete", ERROR, ENABLE,               \
	    "refd enable <repository>")                                        \
	X(HOOK_MISSING, "hook-missing", ERROR, ENABLE,                         \
	    "refd enable <repository>")                                        \
	X(HOOK_MODE, "hook-not-executable", ERROR, NONE,                       \
	    "chmod a+x its proc-receive hook, or link the hook to refd")       \
	X(HOOK_OTHER, "hook-not-refd", ERROR, NONE,                            \
	    "refd enable --chain PREFIX <repository> leaves the refs below "   \
	    "PREFIX to that hook")                                             \
	X(HOOK_VERSION, "hook-version", WARNING, NONE,                         \
	    "refd enable <repository> links the hook to this refd; remove "    \
	    "the other refd")                                                  \
	X(HOOKS_PATH, "hooks-path", ERROR, NONE,                               \
	    "ln -s \"$(command -v refd)\" <that directory>/proc-receive, "     \
	    "or git -C <repository> config --unset core.hooksPath")            \
	X(INCLUDE_MISSED, "include-not-reached", ERROR, NONE,                  \
	    "its real path must be below the --root, and its own "             \
	    "configuration must not override the include")                     \
	X(PATTERNS_MISSING, "patterns-missing", ERROR, ENABLE,                 \
	    "refd enable <repository>")                                        \
	X(PATTERNS_PARTIAL, "patterns-partial", ERROR, ENABLE,                 \
	    "refd enable <repository> sets refs and adm!:refs, each as a "     \
	    "value of its own")                                                \
	X(PATTERN_USELESS, "pattern-useless", WARNING, NONE,                   \
	    "git -C <repository> config --unset-all "                          \
	    "receive.procReceiveRefs <the value>")                             \
	X(CHAIN_MISSING, "chain-missing", ERROR, NONE,                         \
	    "put the other hook back, or git -C <repository> config "          \
	    "--unset-all refd.chain")                                          \
	/* its configuration */                                                \
	X(CONFIG_BROKEN, "config-broken", ERROR, NONE,                         \
	    "git -C <repository> config --list names the line")                \
	X(SHALLOW_UPDATE, "shallow-update", ERROR, NONE,                       \
	    "git -C <repository> config --unset receive.shallowUpdate")        \
	X(UPDATE_INSTEAD, "update-instead", NOTE, NONE,                        \
	    "nothing, if that is intended")                                    \
	X(FALLBACK_INVALID, "fallback-invalid", ERROR, NONE,                   \
	    "git -C <repository> config refd.fallback git, or refuse")         \
	X(FSYNC_UNSET, "fsync-unset", WARNING, ENABLE,                         \
	    "refd enable <repository>, or refd enable --system for all below " \
	    "the roots")                                                       \
	X(FSYNC_WEAK, "fsync-weak", WARNING, NONE,                             \
	    "git -C <repository> config core.fsync committed,loose-object")    \
	X(FSYNC_OBJECTS, "fsync-objects", ERROR, NONE,                         \
	    "git -C <repository> config core.fsync committed,loose-object")    \
	X(FSYNC_METHOD, "fsync-method", WARNING, NONE,                         \
	    "git -C <repository> config core.fsyncMethod batch")               \
	X(GIT_PACKS, "git-packs", WARNING, ENABLE,                             \
	    "refd enable <repository>, or git -C <repository> config <key> "   \
	    "false")                                                           \
	X(TRANSACTION_HOOK, "transaction-hook", NOTE, NONE,                    \
	    "remove the hook if nobody needs it")                              \
	X(SAFE_DIRECTORY, "safe-directory", WARNING, NONE,                     \
	    "git config --system --add safe.directory <repository>")           \
	X(FORMAT, "format-not-served", NOTE, NONE,                             \
	    "nothing: git writes the refs, with git's durability")             \
	/* its files */                                                        \
	X(OWNER_MIXED, "owner-mixed", WARNING, NONE,                           \
	    "chown -hR to the owner of its refs/")                             \
	X(SHARED_MODES, "shared-modes", WARNING, NONE,                         \
	    "chmod -R g+w <repository>; find <repository> -type d | xargs "    \
	    "chmod g+s")                                                       \
	X(SHARED_UNSET, "shared-unset", NOTE, NONE,                            \
	    "git -C <repository> config core.sharedRepository group")          \
	X(HEAD_LINK, "head-link", NOTE, NONE,                                  \
	    "git -C <repository> symbolic-ref HEAD \"$(git -C <repository> "   \
	    "symbolic-ref HEAD)\"")                                            \
	X(PACKED_LINK, "packed-refs-link", NOTE, NONE,                         \
	    "replace the link by the file")                                    \
	X(REFS_LINK, "refs-link", WARNING, NONE,                               \
	    "replace the link by the directory")                               \
	X(WORKTREE_LINK, "worktree-link", WARNING, NONE,                       \
	    "remove the worktree, and add it again by git worktree add")       \
	X(WORKTREE_GONE, "worktree-gone", NOTE, NONE,                          \
	    "git -C <repository> worktree prune")                              \
	X(ALTERNATE_MISSING, "alternate-missing", ERROR, NONE,                 \
	    "restore the alternate: the repository needs its objects")         \
	X(ALTERNATE_ELSEWHERE, "alternate-elsewhere", NOTE, NONE,              \
	    "nothing; in mode periodic its objects are not synced")            \
	X(LOCK_STALE, "lock-stale", WARNING, NONE,                             \
	    "remove the file once no writer is at work there")                 \
	X(LOCK_HELD, "lock-held", NOTE, NONE, "wait, or end that process")     \
	X(LOCK_OF_REFD, "lock-of-refd", ERROR, LOCKS,                          \
	    "start the daemon, or run refd recover")                           \
	X(PACKED_NEW, "packed-refs-new", ERROR, PACKED_NEW,                    \
	    "git cannot pack refs, nor delete packed refs: refd verify "       \
	    "--repair <repository> moves the file aside")                      \
	X(ID_BROKEN, "id-broken", ERROR, NONE,                                 \
	    "restore the file, or run refd disown <repository>")               \
	X(ID_CLASH, "id-clash", WARNING, NONE,                                 \
	    "nothing, if one is a copy: the copy gets its own id when refd "   \
	    "serves it")                                                       \
	/* its refs */                                                         \
	X(REF_BROKEN, "ref-broken", ERROR, REF,                                \
	    "refd verify --repair <repository> restores a value that the "     \
	    "journal or the reflog has")                                       \
	X(REF_MIGRATION, "ref-migration", ERROR, NONE,                         \
	    "wait until git refs migrate has ended; if it was killed: mv "     \
	    "<repository>/ref_migration.*/* <repository>, then, if reftable "  \
	    "is among them: git -C <repository> config "                       \
	    "extensions.refStorage reftable, otherwise --unset it")            \
	X(REF_UNREADABLE, "ref-unreadable", ERROR, NONE,                       \
	    "look at its owner, its mode and the disk")                        \
	X(REF_NAME, "ref-name", ERROR, NONE,                                   \
	    "git ignores it: rename or remove the file")                       \
	X(REF_CONFLICT, "ref-conflict", ERROR, NONE, "delete one of the two")  \
	X(REF_LOST, "ref-lost", ERROR, NONE,                                   \
	    "refd update <ref> <that value> restores it")                      \
	X(REF_GONE, "ref-gone", NOTE, NONE,                                    \
	    "if nobody deleted it: refd update <ref> <that value>")            \
	X(OBJECT_MISSING, "object-missing", ERROR, NONE,                       \
	    "fetch the object, or move the ref to an existing object")         \
	X(OBJECT_UNREADABLE, "object-unreadable", ERROR, NONE, "run git fsck") \
	X(OBJECT_NOT_COMMIT, "object-not-commit", ERROR, NONE,                 \
	    "move the branch to a commit")                                     \
	X(PACKED_MALFORMED, "packed-malformed", ERROR, NONE,                   \
	    "correct the line: git ends with an error there")                  \
	X(PACKED_UNSORTED, "packed-unsorted", ERROR, NONE,                     \
	    "remove the first line of packed-refs and the lines that begin "   \
	    "with '^', then run git pack-refs --all")                          \
	X(PACKED_DUPLICATE, "packed-duplicate", ERROR, NONE,                   \
	    "remove one of the two lines")                                     \
	X(PACKED_PEELED, "packed-peeled", ERROR, NONE,                         \
	    "remove the first line of packed-refs and the lines that begin "   \
	    "with '^', then run git pack-refs --all")                          \
	X(REFTABLE_DAMAGED, "reftable-damaged", ERROR, NONE,                   \
	    "restore the refs from a backup or a clone; the other tables of "  \
	    "reftable/ may still be read")                                     \
	X(REFTABLE_LIST, "reftable-list", ERROR, NONE,                         \
	    "while no writer is at work, edit tables.list: each line is the "  \
	    "name of a table beside it, in the order of the numbers in the "   \
	    "names, and ends with a line feed")                                \
	X(REFTABLE_FOOTER, "reftable-footer", ERROR, TABLE,                    \
	    "refd verify --repair <repository> writes the table again, with "  \
	    "its footer")                                                      \
	X(REFTABLE_UNREADABLE, "reftable-unreadable", ERROR, NONE,             \
	    "look at its owner, its mode and the disk")                        \
	/* its reflogs */                                                      \
	X(LOG_TORN, "log-torn", ERROR, LOG,                                    \
	    "refd verify --repair <repository> cuts off the torn part")        \
	X(LOG_MALFORMED, "log-malformed", WARNING, NONE, "remove the line")    \
	X(LOG_UNREADABLE, "log-unreadable", ERROR, NONE,                       \
	    "look at its owner, its mode and the disk")                        \
	X(LOG_DISAGREES, "log-disagrees", WARNING, NONE,                       \
	    "find out which of the two values is right")                       \
	X(LOG_ORPHAN, "log-orphan", WARNING, NONE,                             \
	    "restore the ref, or remove its log")                              \
	X(LOG_EMPTY, "log-empty", WARNING, EMPTY,                              \
	    "refd verify --repair <repository> removes the log")               \
	X(LOG_BLOCKED, "log-blocked", ERROR, NONE,                             \
	    "move the files below that directory elsewhere")                   \
	X(LOG_LINKED, "log-linked", WARNING, NONE,                             \
	    "while no writer is at work, copy each such log to a new file, "   \
	    "and rename the copy to the log")                                  \
	/* its journal */                                                      \
	X(JOURNAL_DISAGREES, "journal-disagrees", ERROR, NONE,                 \
	    "refd update <ref> <that value> restores the recorded value")      \
	X(REF_RETURNED, "ref-returned", WARNING, NONE,                         \
	    "run the command if nobody wrote the value on purpose; otherwise " \
	    "refd update <ref> <value> <value> records it")                    \
	X(REPO_GONE, "repository-gone", NOTE, NONE,                            \
	    "nothing, if it was deleted; otherwise restore it")                \
	X(JOURNAL_OTHER, "journal-other", WARNING, NONE,                       \
	    "name the directory of the repository's journal by --state")       \
	X(JOURNAL_UNKNOWN, "journal-unknown", WARNING, NONE,                   \
	    "nothing: the next request makes the repository known")            \
	X(JOURNAL_OLDER, "journal-older", ERROR, NONE,                         \
	    "put the newer journal back; if there is none, see "               \
	    "refd-daemon(8)")                                                  \
	X(JOURNAL_GROUP, "journal-group", ERROR, NONE,                         \
	    "make this node anew from a copy of another node")                 \
	X(JOURNAL_UNREADABLE, "journal-unreadable", NOTE, NONE,                \
	    "name the daemon's state directory by --state")                    \
	X(AWAITS_RECOVERY, "awaits-recovery", ERROR, NONE,                     \
	    "start the daemon, or run refd recover")                           \
	X(DEFERRED, "deferred", WARNING, NONE,                                 \
	    "wait: the daemon tries the record again")                         \
	X(CONFIG_LOST, "config-lost", ERROR, NONE,                             \
	    "restore the file; git config extensions.objectFormat names the "  \
	    "format, in a core.repositoryFormatVersion of 1")                  \
	X(NOT_OPENED, "not-opened", ERROR, NONE, "git cannot open it either")

enum finding_id {
#define X(symbol, id, severity, repair, remedy) FOUND_##symbol,
	FINDING_TABLE(X)
#undef X
	    FINDING_IDS
};

/* NULL for a string is "". The object of a finding is the repository, a ref or
 * file of it, or a file of the machine. */
struct finding {
	enum finding_id id;
	bool is_repaired;
	const char *repo; /* a path; "": the finding is about the machine */
	const char *ref;
	const char *file; /* a path, relative to REPO if there is one */
	const char *text; /* one sentence, without its full stop */
	/* The repair and the place of the evidence, or why there was no
	 * repair; "": no repair was tried. */
	const char *repair;
};

/* A finding in memory, whose text has "<repository>" instead of the path. */
struct finding_held {
	struct finding finding;
	size_t number; /* in order of findings_add() */
	char strings[];
};

/* Zero-initialised is empty. */
struct findings {
	/* The caller sets these. */
	bool as_json, verbose;
	size_t max;         /* findings in memory, then they are printed; 0: any
			       number */
	const char *title;  /* of the progress */
	size_t done, total; /* repositories: the present one; 0: not known */
	/* Not NULL: nothing is held or printed here. TELL gives DATA to
	 * findings_hear() of the process that prints. */
	int (*tell)(const void *data, size_t len);

	struct finding_held **list;
	size_t nr, size;
	size_t count[FINDING_SEVERITIES]; /* that are not repaired */
	size_t repaired;
	struct json json; /* begun if TO is set */
	char **checked;   /* lines */
	size_t nr_checked, hidden_repos;
};

enum finding_repair finding_repair(enum finding_id id);

/* Copies FINDING, or prints it at once if there is no memory. */
void findings_add(struct findings *f, const struct finding *finding);
/* Is this finding of this object in memory? FILE or REPO may be "". */
bool findings_have(const struct findings *f, enum finding_id id,
    const char *repo, const char *file);
/* Adds the findings of BEFORE whose id and object F does not have, as repaired.
 * Changes the order of F. */
void findings_add_repaired(struct findings *f, const struct findings *before);
/* Adds a line to the list of checked objects. Without -v, only a few lines with
 * IS_REPOSITORY are printed. */
void findings_checked(struct findings *f, bool is_repository, const char *line);
/* Adds the findings that a teller (TELL) has sent as DATA. The files that the
 * teller read may have tricked the teller. So its findings about a repository
 * are taken as findings about REPO, unless REPO is NULL. False: DATA is
 * something else, or malformed. */
bool findings_hear(struct findings *f, const char *repo, const char *data,
    size_t len);
/* Shows that NAME of REPO, which may be "", is being checked. */
void findings_progress(const struct findings *f, const char *repo,
    const char *name);
/* Prints the findings in memory, and the end, with the number of checked
 * repositories. True: an error or a warning is left. */
bool findings_end(struct findings *f, size_t nr_repos);
void findings_done(struct findings *f);

#endif
