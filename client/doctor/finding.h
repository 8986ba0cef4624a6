/*
 * What the doctor can find: one table of ids, and the list of what was found.
 * An id is a word for programs and never changes its meaning. One thread.
 */
#ifndef CLIENT_DOCTOR_FINDING_H
#define CLIENT_DOCTOR_FINDING_H

#include "client/base/cli.h"

#define SEVERITY_TABLE(X)                                                      \
	X(NOTE, "note")                                                        \
	X(WARNING, "warning")                                                  \
	X(ERROR, "error")

enum severity {
#define X(symbol, word) symbol,
	SEVERITY_TABLE(X)
#undef X
};
enum {
#define X(symbol, word) +1
	SEVERITIES = SEVERITY_TABLE(X)
#undef X
};

/* What --fix does about it. */
enum mend {
	MEND_NOT,
	MEND_ENABLE, /* refd enable of the repository again */
	MEND_SYSTEM, /* refd enable --system again */
	MEND_LIST,   /* the list of what is enabled without it */
	MEND_PACKED  /* packed-refs.new removed, under git's lock */
};

/* X(symbol, id, severity, mend, remedy): {} in a remedy is where it is. */
#define FINDING_TABLE(X)                                                       \
	X(DAEMON_AWAY, "daemon-away", ERROR, MEND_NOT,                         \
	    "start it (systemctl start refd, or refd daemon)")                 \
	X(DAEMON_FAILED, "daemon-cannot-start", ERROR, MEND_NOT,               \
	    "correct what the daemon's error names; a service starts again "   \
	    "by itself")                                                       \
	X(DAEMON_CONFIG, "daemon-config", ERROR, MEND_NOT,                     \
	    "correct it, until refd check-config {} says that it is in order") \
	X(DAEMON_PROTOCOL, "daemon-protocol", ERROR, MEND_NOT,                 \
	    "install refd and its daemon of one version, and restart it")      \
	X(DAEMON_VERSION, "daemon-version", WARNING, MEND_NOT,                 \
	    "restart the daemon, so that it is the one that is installed")     \
	X(DAEMON_STATE, "daemon-not-serving", WARNING, MEND_NOT,               \
	    "wait; refd ping --wait says when it serves")                      \
	X(DAEMON_FATAL, "daemon-fatal", ERROR, MEND_NOT,                       \
	    "see its log, then restart it")                                    \
	X(FLUSH_HANGS, "flush-hangs", ERROR, MEND_NOT,                         \
	    "dmesg: the disk; refd status names it as root")                   \
	X(DAEMON_USERS, "daemon-user-namespace", ERROR, MEND_NOT,              \
	    "PrivateUsers=no in the unit: it takes everybody for nobody")      \
	X(DAEMON_UNCONFINED, "daemon-unconfined", WARNING, MEND_NOT,           \
	    "Linux 5.19 or later with Landlock (lsm=) and seccomp; in a "      \
	    "container, a profile that permits both; then restart it")         \
	X(DAEMON_SEES, "daemon-sees-other", ERROR, MEND_NOT,                   \
	    "let the daemon see the same directory (ProtectHome=, "            \
	    "containers)")                                                     \
	X(RECOVERY_AWAITS, "recovery-awaits", ERROR, MEND_NOT,                 \
	    "refd recover --json names them; bring them back, or recover "     \
	    "--forget")                                                        \
	X(FS_FAILED, "fs-failed", WARNING, MEND_NOT,                           \
	    "see the daemon's log for which; check it, and mount it anew")     \
	X(SOCKET_CLOSED, "socket-closed", ERROR, MEND_NOT,                     \
	    "daemon.allowUser or daemon.allowGroup, and a directory of the "   \
	    "socket that all may enter")                                       \
	X(USER_DENIED, "user-denied", ERROR, MEND_NOT,                         \
	    "git config -f /etc/refd/config --add daemon.allowUser <user>, "   \
	    "and reload")                                                      \
	X(DURABILITY_WEAK, "durability-weak", WARNING, MEND_NOT,               \
	    "durability.mode = journal, or refd.durability there")             \
	X(DURABILITY_INVALID, "durability-invalid", ERROR, MEND_NOT,           \
	    "git -C {} config refd.durability journal")                        \
	X(STATE_INSIDE, "state-in-repository", ERROR, MEND_NOT,                \
	    "stop the daemon, move the directory, name it in daemon.state")    \
	X(STATE_OPEN, "state-open", WARNING, MEND_NOT, "chmod 0700 {}")        \
	X(STATE_ELSEWHERE, "state-elsewhere", NOTE, MEND_NOT,                  \
	    "snapshot both together, or refd checkpoint first")                \
	X(FS_NETWORK, "fs-network", ERROR, MEND_NOT,                           \
	    "move what is there to a local disk")                              \
	X(FS_MEMORY, "fs-memory", ERROR, MEND_NOT,                             \
	    "move what is there to a disk: a reboot takes it away")            \
	X(FS_OVERLAY, "fs-overlay", WARNING, MEND_NOT,                         \
	    "put it on a volume of its own: this goes with the container")     \
	X(FS_FUSE, "fs-fuse", WARNING, MEND_NOT,                               \
	    "make sure that an fsync there reaches a disk")                    \
	X(FS_NO_LINKS, "fs-no-links", ERROR, MEND_NOT,                         \
	    "move what is there to ext4, XFS or btrfs")                        \
	X(FS_NO_JOURNAL, "fs-no-journal", WARNING, MEND_NOT,                   \
	    "tune2fs -O has_journal on its device, unmounted")                 \
	X(FS_NO_BARRIER, "fs-no-barrier", ERROR, MEND_NOT,                     \
	    "mount it without nobarrier, unless the disk's cache is "          \
	    "battery-backed")                                                  \
	X(FS_WRITEBACK, "fs-writeback", WARNING, MEND_NOT,                     \
	    "mount it with data=ordered")                                      \
	X(FS_READ_ONLY, "fs-read-only", ERROR, MEND_NOT,                       \
	    "see the kernel's log for why; mount -o remount,rw")               \
	X(FS_UNTRIED, "fs-untried", NOTE, MEND_NOT,                            \
	    "refd is tried on ext4, XFS and btrfs")                            \
	X(NO_SPACE, "space-low", WARNING, MEND_NOT, "make room")               \
	X(NO_INODES, "inodes-low", WARNING, MEND_NOT,                          \
	    "remove files, or refd's loose refs by git pack-refs --all")       \
	X(HARDLINKS, "hardlinks-unprotected", WARNING, MEND_NOT,               \
	    "sysctl fs.protected_hardlinks=1, and a line of /etc/sysctl.d/ "   \
	    "that keeps it")                                                   \
	X(GIT_MISSING, "git-missing", ERROR, MEND_NOT, "install git")          \
	X(GIT_OLD, "git-old", ERROR, MEND_NOT,                                 \
	    "a git of 2.29 or later: older ones know no proc-receive hook")    \
	X(GIT_NO_FSYNC, "git-no-fsync", WARNING, MEND_NOT,                     \
	    "a git of 2.36 or later: older ones flush no refs by core.fsync")  \
	X(GIT_VERSIONS, "git-versions", WARNING, MEND_NOT,                     \
	    "have one git in PATH: hooks run the first one")                   \
	X(SYSTEM_INCOMPLETE, "system-incomplete", ERROR, MEND_SYSTEM,          \
	    "refd enable --system")                                            \
	X(SYSTEM_CLOSED, "system-unreadable", ERROR, MEND_NOT,                 \
	    "chmod a+r {}, and a+x the directories on the way")                \
	X(LISTED_GONE, "listed-gone", NOTE, MEND_LIST,                         \
	    "refd disable --all clears the list; or mount what is missing")    \
	X(NO_REPOSITORY, "not-a-repository", ERROR, MEND_NOT,                  \
	    "name a repository, or restore its HEAD, objects and refs")        \
	X(NOT_ENABLED, "not-enabled", NOTE, MEND_NOT, "refd enable {}")        \
	X(REPO_REFUSED, "repository-refused", ERROR, MEND_NOT,                 \
	    "do as the daemon says")                                           \
	X(ENABLE_INCOMPLETE, "enable-incomplete", ERROR, MEND_ENABLE,          \
	    "refd enable {}")                                                  \
	X(HOOK_MISSING, "hook-missing", ERROR, MEND_ENABLE, "refd enable {}")  \
	X(HOOK_MODE, "hook-not-executable", ERROR, MEND_NOT,                   \
	    "chmod a+x its proc-receive hook, or link it to refd")             \
	X(HOOK_OTHER, "hook-not-refd", ERROR, MEND_NOT,                        \
	    "refd enable --chain PREFIX {} leaves it the refs below PREFIX")   \
	X(HOOK_VERSION, "hook-version", WARNING, MEND_NOT,                     \
	    "refd enable {} links it to this refd; remove the other")          \
	X(HOOKS_PATH, "hooks-path", ERROR, MEND_NOT,                           \
	    "link proc-receive there to refd, or unset core.hooksPath")        \
	X(FORWARDERS, "forwarders-missing", ERROR, MEND_ENABLE,                \
	    "refd enable {}")                                                  \
	X(INCLUDE_MISSED, "include-not-reached", ERROR, MEND_NOT,              \
	    "its real path has to be below the --root, and no configuration "  \
	    "of its own set otherwise")                                        \
	X(PATTERNS_MISSING, "patterns-missing", ERROR, MEND_ENABLE,            \
	    "refd enable {}")                                                  \
	X(PATTERNS_PARTIAL, "patterns-partial", ERROR, MEND_ENABLE,            \
	    "refd enable {}: refs and adm!:refs, each a value of its own")     \
	X(PATTERN_USELESS, "pattern-useless", WARNING, MEND_NOT,               \
	    "take the value out of receive.procReceiveRefs")                   \
	X(CHAIN_MISSING, "chain-missing", ERROR, MEND_NOT,                     \
	    "put the other hook back, or unset refd.chain")                    \
	X(CONFIG_BROKEN, "config-broken", ERROR, MEND_NOT,                     \
	    "git -C {} config --list says which line")                         \
	X(SHALLOW_UPDATE, "shallow-update", ERROR, MEND_NOT,                   \
	    "git -C {} config --unset receive.shallowUpdate")                  \
	X(UPDATE_INSTEAD, "update-instead", NOTE, MEND_NOT,                    \
	    "nothing, if that is meant")                                       \
	X(FALLBACK_INVALID, "fallback-invalid", ERROR, MEND_NOT,               \
	    "git -C {} config refd.fallback git, or refuse")                   \
	X(FSYNC_UNSET, "fsync-unset", WARNING, MEND_ENABLE, "refd enable {}")  \
	X(FSYNC_WEAK, "fsync-weak", WARNING, MEND_NOT,                         \
	    "git -C {} config core.fsync committed,loose-object")              \
	X(FSYNC_OBJECTS, "fsync-objects", ERROR, MEND_NOT,                     \
	    "git -C {} config core.fsync committed,loose-object")              \
	X(FSYNC_METHOD, "fsync-method", WARNING, MEND_NOT,                     \
	    "git -C {} config core.fsyncMethod batch")                         \
	X(TRANSACTION_HOOK, "transaction-hook", NOTE, MEND_NOT,                \
	    "remove the hook if nobody needs it")                              \
	X(SAFE_DIRECTORY, "safe-directory", WARNING, MEND_NOT,                 \
	    "git config --system --add safe.directory {}")                     \
	X(FORMAT, "format-not-served", NOTE, MEND_NOT,                         \
	    "nothing: git does it, with git's durability")                     \
	X(OWNER_MIXED, "owner-mixed", WARNING, MEND_NOT,                       \
	    "chown -hR to the owner of its refs/")                             \
	X(SHARED_MODES, "shared-modes", WARNING, MEND_NOT,                     \
	    "chmod -R g+w {}; find {} -type d | xargs chmod g+s")              \
	X(SHARED_UNSET, "shared-unset", NOTE, MEND_NOT,                        \
	    "git -C {} config core.sharedRepository group")                    \
	X(HEAD_LINK, "head-link", NOTE, MEND_NOT,                              \
	    "git -C {} symbolic-ref HEAD \"$(git -C {} symbolic-ref HEAD)\"")  \
	X(PACKED_LINK, "packed-refs-link", NOTE, MEND_NOT,                     \
	    "put the file in the place of the link")                           \
	X(REFS_LINK, "refs-link", WARNING, MEND_NOT,                           \
	    "put the directory in the place of the link")                      \
	X(WORKTREE_LINK, "worktree-link", WARNING, MEND_NOT,                   \
	    "git worktree add it anew")                                        \
	X(WORKTREE_GONE, "worktree-gone", NOTE, MEND_NOT,                      \
	    "git -C {} worktree prune")                                        \
	X(ALTERNATE_MISSING, "alternate-missing", ERROR, MEND_NOT,             \
	    "bring it back: objects are missing without it")                   \
	X(ALTERNATE_ELSEWHERE, "alternate-elsewhere", NOTE, MEND_NOT,          \
	    "nothing; in mode periodic its objects are not synced")            \
	X(LOCK_STALE, "lock-stale", WARNING, MEND_NOT,                         \
	    "rm {}, once no git is at work there")                             \
	X(LOCK_HELD, "lock-held", NOTE, MEND_NOT, "wait, or end its holder")   \
	X(LOCK_OF_REFD, "lock-of-refd", WARNING, MEND_NOT,                     \
	    "start the daemon, or refd recover: they know which are theirs")   \
	X(PACKED_NEW, "packed-refs-new", WARNING, MEND_PACKED,                 \
	    "rm {}/packed-refs.new, while no packed-refs.lock stands")         \
	X(ID_BROKEN, "id-broken", ERROR, MEND_NOT, "refd disown {}")           \
	X(ID_CLASH, "id-clash", WARNING, MEND_NOT,                             \
	    "nothing, if one is a copy: it gets an id of its own when it is "  \
	    "first served")

enum finding_id {
#define X(symbol, id, severity, mend, remedy) FOUND_##symbol,
	FINDING_TABLE(X)
#undef X
	    NR_FINDINGS
};

struct finding {
	enum finding_id id;
	char *where, *what; /* owned */
};

/* Zero-initialised is empty. */
struct findings {
	struct finding *list;
	size_t nr;
};

/* A sentence without its end; WHERE is copied. */
void found(struct findings *f, enum finding_id id, const char *where,
    const char *fmt, ...) PRINTF_LIKE(4, 5);
void findings_done(struct findings *f);
bool findings_have(const struct findings *f, enum finding_id id,
    const char *where);

enum mend finding_mend(enum finding_id id);
enum severity finding_severity(enum finding_id id);
/* One for people, a line or two; or an object for programs. */
void finding_print(const struct finding *f, bool is_mended);
void finding_print_json(const struct finding *f, bool is_mended);

#endif
