#include "tests/lib/hostile_repo.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/hostile_entries.h"

#define PERSON "A <a@example.com> 1700000000 +0000"
#define TREE   "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
#define BASE   "4b0ecf3212a84258d742b187be6e3724ea069194" /* of the delta */

#define MADE(type) " | git hash-object -w --stdin -t " type "; "
#define TAG(of, name)                                                          \
	"object " of "\\ntype commit\\ntag " name "\\ntagger " PERSON "\\n\\n"
#define COMMIT(parent, text)                                                   \
	"printf 'tree " TREE "\\n" parent "author " PERSON                     \
	"\\ncommitter " PERSON "\\n\\n" text "\\n'" MADE("commit")

static char root[PATH_MAX];

static void run(const char *script)
{
	char command[8192];

	snprintf(command, sizeof(command), "set -e; cd '%s'; %s", root, script);
	if (system(command) != 0) {
		fprintf(stderr, "failed: %s\n", command);
		abort();
	}
}

static void remove_all(void)
{
	run("cd /; rm -rf \"$OLDPWD\"");
}

/* Makes loose objects, objects in a pack, and a delta in a pack. */
static void make_objects(void)
{
	run("git init -q --bare srv/r.git; cd srv/r.git; "
	    "rm -rf hooks description info branches; "
	    "printf ''" MADE("tree") COMMIT("", "one")
		COMMIT("parent " HOSTILE_COMMIT "\\n", "two") "printf '" TAG(HOSTILE_COMMIT, "t") "loose\\n'" MADE(
		    "tag") "numbers=$(seq -s ' ' 1 200); "
			   "printf '" TAG(HOSTILE_PACKED, "p") "%s\\n' \"$numbers\"" MADE(
			       "tag") "printf '" TAG(HOSTILE_COMMIT,
			       "q") "%s and more\\n' \"$numbers\"" MADE("tag"));
	run("cd srv/r.git; "
	    "printf '%s\\n' " HOSTILE_PACKED " " HOSTILE_DELTA " " BASE
	    " | git pack-objects -q p; "
	    "mv p-*.pack " HOSTILE_PACK ".pack; "
	    "mv p-*.idx " HOSTILE_PACK ".idx; "
	    "rm -r objects/da objects/55 objects/4b/0*; "
	    "for o in " HOSTILE_COMMIT " " HOSTILE_TAG " " HOSTILE_DELTA
	    "; do git cat-file -e $o; done");
}

static void make_refs(void)
{
	run("cd srv/r.git; "
	    "git update-ref refs/heads/packed " HOSTILE_COMMIT "; "
	    "git update-ref refs/tags/p " HOSTILE_DELTA "; "
	    "git pack-refs --all; "
	    "cp -a ../r.git ../" HOSTILE_OTHER "; "
	    "git symbolic-ref HEAD refs/heads/a; "
	    "git config core.logAllRefUpdates always; "
	    "git update-ref refs/heads/a " HOSTILE_PACKED "; "
	    "git update-ref refs/heads/a " HOSTILE_COMMIT "; "
	    "git update-ref refs/heads/a2 " HOSTILE_COMMIT "; "
	    "mkdir -p worktrees/w; cd worktrees/w; "
	    "echo ../.. >commondir; echo /nowhere/.git >gitdir; "
	    "echo " HOSTILE_COMMIT " >HEAD");
}

static void make_surroundings(void)
{
	run("mkdir -p state out/tree/refs srv/canary/tree/refs; "
	    "echo " HOSTILE_SECRET
	    ":x:0:0 | tee out/secret >srv/canary/secret; "
	    "echo 'ref: refs/heads/" HOSTILE_SECRET
	    "' >out/ref; mkfifo out/fifo; "
	    "echo " HOSTILE_COMMIT " >srv/canary/file; "
	    "touch out/tree/a srv/canary/tree/a");
}

const char *hostile_repo_make(void)
{
	const char *base = getenv("TMPDIR");
	char made[4096];

	/* A run syncs, so a file system in memory is faster. */
	if (base == NULL)
		base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
	snprintf(made, sizeof(made), "%s/refd-fuzz-XXXXXX", base);
	if (mkdtemp(made) == NULL || realpath(made, root) == NULL)
		abort();
	atexit(remove_all);
	umask(0);
	setenv("HOME", root, 1);
	setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
	setenv("GIT_COMMITTER_NAME", "A", 1);
	setenv("GIT_COMMITTER_EMAIL", "a@example.com", 1);
	unsetenv("GIT_DIR");
	make_objects();
	make_refs();
	make_surroundings();
	return root;
}
