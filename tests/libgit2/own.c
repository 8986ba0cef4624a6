/*
 * Proves what a program of libgit2 notices of refd: errors, renames, locks,
 * threads, forks. Prints `ok` and `not ok` lines.
 *
 *	own all REPO SOCKET	REPO has the commits HEAD and HEAD~1
 *	own away REPO SOCKET	nothing is written while no daemon listens
 *	own refused REPO	repositories that cannot be attached
 *	own steps REPO SOCKET N	makes N refs while the daemon is killed again
 *				and again
 */
#include <err.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <git2.h>

#include "client/libgit2/refd_git2.h"

#define THREADS 6
#define WRITES  20

static git_oid one, two; /* HEAD~1, HEAD */
static int bad;

static const char *why(void)
{
	const git_error *e = git_error_last();

	return e ? e->message : "";
}

/* CODE is WANTED, and the message of a failure contains WORDS. */
static void is(const char *name, int wanted, int code, const char *words)
{
	if (code == wanted && (code >= 0 || strstr(why(), words))) {
		printf("ok %s\n", name);
		return;
	}
	bad = 1;
	printf("not ok %s: wanted %d, got %d %s\n", name, wanted, code,
	    code < 0 ? why() : "");
}

static git_repository *open_plain(const char *path)
{
	git_repository *repo;
	git_object *id;

	if (git_repository_open(&repo, path) < 0 ||
	    git_revparse_single(&id, repo, "HEAD~1") < 0 ||
	    git_reference_name_to_id(&two, repo, "HEAD") < 0)
		errx(1, "%s: %s", path, why());
	one = *git_object_id(id);
	git_object_free(id);
	return repo;
}

static git_repository *open_attached(const char *path, const char *socket)
{
	git_repository *repo = open_plain(path);

	if (refd_git2_attach(repo, socket) < 0)
		errx(1, "%s: %s", path, why());
	return repo;
}

static int set(git_repository *repo, const char *name, const git_oid *id)
{
	return git_reference_create(NULL, repo, name, id, 1, "set");
}

static int new_ref(git_repository *repo, const char *name)
{
	return git_reference_create(NULL, repo, name, &one, 0, "made");
}

static int is_at(git_repository *repo, const char *name, const git_oid *id)
{
	git_oid found;

	return git_reference_name_to_id(&found, repo, name) == 0 &&
	    git_oid_equal(&found, id);
}

static int lines(git_repository *repo, const char *name)
{
	git_reflog *log;
	int nr;

	if (!git_reference_has_log(repo, name))
		return -1;
	if (git_reflog_read(&log, repo, name) < 0)
		return -2;
	nr = (int)git_reflog_entrycount(log);
	git_reflog_free(log);
	return nr;
}

static int rename_ref(git_repository *repo, const char *from, const char *to,
    int force)
{
	git_reference *ref, *renamed = NULL;
	int code = git_reference_lookup(&ref, repo, from);

	if (code < 0)
		return code;
	code = git_reference_rename(&renamed, ref, to, force, "renamed");
	if (code == 0 && strcmp(git_reference_name(renamed), to) != 0)
		code = 1;
	git_reference_free(renamed);
	git_reference_free(ref);
	return code;
}

/* ---- errors ---- */

static char *file(git_repository *repo, const char *name, const char *suffix)
{
	static char path[4096];

	snprintf(path, sizeof(path), "%s%s%s", git_repository_path(repo), name,
	    suffix);
	return path;
}

static char *lock_path(git_repository *repo, const char *name)
{
	return file(repo, name, ".lock");
}

static void errors(git_repository *repo)
{
	char name[300] = "refs/heads/";
	int fd;

	is("a ref", 0, new_ref(repo, "refs/heads/e"), "");
	is("a ref below a ref", GIT_EDIRECTORY,
	    new_ref(repo, "refs/heads/e/below"), "conflict");
	is("a ref in a directory", 0, new_ref(repo, "refs/heads/d/x"), "");
	is("a ref above a ref", GIT_EDIRECTORY, new_ref(repo, "refs/heads/d"),
	    "conflict");
	fd = open(lock_path(repo, "refs/heads/e"), O_CREAT | O_WRONLY, 0644);
	close(fd);
	is("a locked ref", GIT_ELOCKED, set(repo, "refs/heads/e", &two),
	    "locked");
	is("the lock is not removed", 0,
	    unlink(lock_path(repo, "refs/heads/e")), "");
	is("the ref is as before", 1, is_at(repo, "refs/heads/e", &one), "");
	memset(name + strlen(name), 'x', 252);
	is("a name that is too long for a lock", GIT_EINVALIDSPEC,
	    new_ref(repo, name), "refname");
	is("HEAD is not deleted", GIT_ERROR, git_reference_remove(repo, "HEAD"),
	    "HEAD");
	/* The deletion of a stale reference keeps the log. */
	is("a wrong old value", GIT_EMODIFIED,
	    git_reference_create_matching(NULL, repo, "refs/heads/e", &two, 1,
		&two, "x"),
	    "does not match");
	is("the log has one line", 1, lines(repo, "refs/heads/e"), "");
}

/* ---- renames ---- */

static void renames(git_repository *repo)
{
	set(repo, "refs/heads/r", &two);
	set(repo, "refs/heads/r", &one);
	is("a rename", 0,
	    rename_ref(repo, "refs/heads/r", "refs/heads/dir/r2", 0), "");
	is("the new name", 1, is_at(repo, "refs/heads/dir/r2", &one), "");
	is("the log came along", 3, lines(repo, "refs/heads/dir/r2"), "");
	is("the old log is gone", -1, lines(repo, "refs/heads/r"), "");
	is("a rename to a name that exists", GIT_EEXISTS,
	    rename_ref(repo, "refs/heads/dir/r2", "refs/heads/e", 0),
	    "already exists");
	set(repo, "refs/heads/e", &two);
	is("the same, forced", 0,
	    rename_ref(repo, "refs/heads/dir/r2", "refs/heads/e", 1), "");
	is("with the log", 4, lines(repo, "refs/heads/e"), "");
	is("a rename into itself", GIT_EDIRECTORY,
	    rename_ref(repo, "refs/heads/e", "refs/heads/e/e", 0),
	    "third name");
	is("a rename to the same name", 0,
	    rename_ref(repo, "refs/heads/e", "refs/heads/e", 1), "");
	git_reference_symbolic_create(NULL, repo, "refs/sym", "refs/heads/e", 0,
	    "sym");
	is("a rename of a symbolic ref", 0,
	    rename_ref(repo, "refs/sym", "refs/sym2", 0), "");
	is("the current branch", 0,
	    rename_ref(repo, "refs/heads/main", "refs/heads/trunk", 0), "");
	is("HEAD follows", 1, is_at(repo, "HEAD", &two), "");
	rename_ref(repo, "refs/heads/trunk", "refs/heads/main", 0);
}

/* ---- locks ---- */

static int git(git_repository *repo, const char *command)
{
	char line[8192];

	snprintf(line, sizeof(line), "git -C '%s' %s 2>/dev/null",
	    git_repository_path(repo), command);
	return system(line);
}

static void locks(git_repository *repo)
{
	git_transaction *tx;

	git_transaction_new(&tx, repo);
	is("a lock", 0, git_transaction_lock_ref(tx, "refs/heads/e"), "");
	is("the lock is git's", 0,
	    access(lock_path(repo, "refs/heads/e"), F_OK), "");
	is("git cannot write", 1,
	    git(repo, "update-ref refs/heads/e HEAD") != 0, "");
	git_transaction_free(tx);
	is("git can write", 0, git(repo, "update-ref refs/heads/e HEAD"), "");
	git_transaction_new(&tx, repo);
	is("a lock of a missing ref", 0,
	    git_transaction_lock_ref(tx, "refs/heads/none"), "");
	is("an unlocked name", GIT_ENOTFOUND,
	    git_transaction_remove(tx, "refs/heads/e"), "not locked");
	git_transaction_free(tx);
	is("no such ref was made", 0, is_at(repo, "refs/heads/none", &one), "");
	/* git may pack and prune what was written. */
	is("git packs", 0, git(repo, "pack-refs --all --prune"), "");
	is("a packed ref", 0, set(repo, "refs/heads/e", &one), "");
	is("is written", 1, is_at(repo, "refs/heads/e", &one), "");
	is("a packed ref is deleted", 0,
	    git_reference_remove(repo, "refs/heads/e"), "");
	is("and gone", 0, is_at(repo, "refs/heads/e", &one), "");
}

/* ---- threads and forks ---- */

struct writer {
	git_repository *repo;
	int id, failures;
};

static void *write_refs(void *arg)
{
	struct writer *w = arg;
	char name[64];
	int i;

	for (i = 0; i < WRITES; i++) {
		snprintf(name, sizeof(name), "refs/threads/%d-%d", w->id, i);
		w->failures +=
		    set(w->repo, name, &one) < 0 || !is_at(w->repo, name, &one);
	}
	return NULL;
}

/* The number of failures. */
static int in_threads(git_repository *repo, void *(*run)(void *))
{
	struct writer writers[THREADS];
	pthread_t ids[THREADS];
	int i, failures = 0;

	for (i = 0; i < THREADS; i++) {
		writers[i] = (struct writer){ .repo = repo, .id = i };
		pthread_create(&ids[i], NULL, run, &writers[i]);
	}
	for (i = 0; i < THREADS; i++) {
		pthread_join(ids[i], NULL);
		failures += writers[i].failures;
	}
	return failures;
}

/* Moves refs/heads/swap from ONE to TWO or back, only from the value read. A
 * swap that should have failed adds no line to the log. */
static void *swap(void *arg)
{
	struct writer *w = arg;
	int swaps = 0, code;

	while (swaps < WRITES) {
		int at_one = is_at(w->repo, "refs/heads/swap", &one);

		code = git_reference_create_matching(NULL, w->repo,
		    "refs/heads/swap", at_one ? &two : &one, 1,
		    at_one ? &one : &two, "swap");
		swaps += code == 0;
		w->failures += code < 0 && code != GIT_EMODIFIED;
	}
	return NULL;
}

static void swaps(git_repository *repo)
{
	is("a ref for all", 0, new_ref(repo, "refs/heads/swap"), "");
	is("threads compare and swap", 0, in_threads(repo, swap), "");
	is("each swap has its line", THREADS * WRITES + 1,
	    lines(repo, "refs/heads/swap"), "");
}

static void forks(git_repository *repo)
{
	int status, code;
	pid_t pid = fork();

	if (pid == 0)
		_exit(set(repo, "refs/heads/child", &one) == 0 ? 0 : 1);
	code = set(repo, "refs/heads/parent", &one);
	waitpid(pid, &status, 0);
	is("a child writes", 0, status, "");
	is("beside its parent", 0, code, "");
}

/* A reference from before the call writes through refd, too. */
static int again(const char *path, const char *socket)
{
	git_repository *repo = open_plain(path);
	git_reference *ref;
	git_refdb *db;

	git_reference_lookup(&ref, repo, "refs/heads/child");
	is("attached twice", 0, refd_git2_attach(repo, "/none"), "");
	is("the first socket", GIT_ERROR, git_reference_delete(ref),
	    "nothing was written");
	is("the second call", 0, refd_git2_attach(repo, socket), "");
	is("counts", 0, git_reference_delete(ref), "");
	git_reference_free(ref);
	git_repository_refdb(&db, repo);
	is("compress", 0, git_refdb_compress(db), "");
	git_refdb_free(db);
	is("packs nothing", 0,
	    access(file(repo, "refs/heads/parent", ""), F_OK), "");
	git_repository_free(repo);
	return bad;
}

static int all(const char *path, const char *socket)
{
	git_repository *repo = open_attached(path, socket);

	errors(repo);
	renames(repo);
	locks(repo);
	is("threads write", 0, in_threads(repo, write_refs), "");
	swaps(repo);
	forks(repo);
	git_repository_free(repo);
	return again(path, socket);
}

/* ---- no daemon; repositories that are refused ---- */

static int away(const char *path, const char *socket)
{
	git_repository *repo = open_attached(path, socket);
	git_transaction *tx;

	is("main is there", 1, is_at(repo, "refs/heads/main", &two), "");
	is("a write", GIT_ERROR, set(repo, "refs/heads/main", &one),
	    "nothing was written");
	is("a deletion", GIT_ERROR,
	    git_reference_remove(repo, "refs/heads/main"),
	    "nothing was written");
	is("a rename", GIT_ERROR,
	    rename_ref(repo, "refs/heads/main", "refs/heads/m", 0),
	    "nothing was written");
	git_transaction_new(&tx, repo);
	is("a lock", GIT_ERROR, git_transaction_lock_ref(tx, "refs/heads/main"),
	    "nothing was written");
	git_transaction_free(tx);
	is("a deletion of a log", GIT_ERROR,
	    git_reflog_delete(repo, "refs/heads/main"), "nothing was written");
	is("main is still there", 1, is_at(repo, "refs/heads/main", &two), "");
	git_repository_free(repo);
	return bad;
}

static void refuse(const char *path, const char *key, const char *value,
    const char *words)
{
	git_repository *repo = open_plain(path);
	git_config *config;

	git_repository_config(&config, repo);
	git_config_set_string(config, key, value);
	is(words, GIT_EINVALID, refd_git2_attach(repo, "/none"), words);
	git_config_delete_entry(config, key);
	git_config_free(config);
	git_repository_free(repo);
}

static int refused(const char *path)
{
	git_repository *repo = open_plain(path), *memory;
	git_odb *odb;

	git_repository_set_namespace(repo, "other");
	is("a namespace", GIT_EINVALID, refd_git2_attach(repo, "/none"),
	    "namespace");
	git_repository_set_namespace(repo, NULL);
	is("it writes by itself", 0, set(repo, "refs/heads/plain", &one), "");
	git_repository_odb(&odb, repo);
	git_repository_wrap_odb(&memory, odb);
	is("no directory", GIT_EINVALID, refd_git2_attach(memory, "/none"),
	    "only in memory");
	git_repository_free(memory);
	git_odb_free(odb);
	git_repository_free(repo);
	refuse(path, "extensions.objectformat", "sha256", "SHA-256");
	refuse(path, "extensions.refstorage", "reftable", "reftables");
	return bad;
}

/* The repository names SOCKET, which has another owner. */
static int stranger(const char *path, const char *socket)
{
	git_repository *repo = open_plain(path);
	git_config *config;

	git_repository_config(&config, repo);
	git_config_set_string(config, "refd.socket", socket);
	is("attached", 0, refd_git2_attach(repo, NULL), "");
	is("a stranger's daemon", GIT_ERROR, set(repo, "refs/heads/x", &one),
	    "of user 64002");
	is("nothing was written", 0, is_at(repo, "refs/heads/x", &one), "");
	git_repository_free(repo);
	repo = open_attached(path, socket);
	is("a socket of the program", 0, set(repo, "refs/heads/x", &one), "");
	git_config_delete_entry(config, "refd.socket");
	git_config_free(config);
	git_repository_free(repo);
	return bad;
}

/* ---- while the daemon is killed ---- */

static int steps(const char *path, const char *socket, int nr)
{
	git_repository *repo = open_attached(path, socket);
	int i = 0, errors_seen = 0, unknown = 0, code;
	char name[64];

	while (i < nr) {
		snprintf(name, sizeof(name), "refs/heads/steps/%d", i);
		code = new_ref(repo, name);
		unknown += code == REFD_GIT2_EUNKNOWN;
		errors_seen += code < 0;
		if (code < 0 && code != REFD_GIT2_EUNKNOWN &&
		    is_at(repo, name, &one))
			errx(1, "%s is there after: %s", name, why());
		if (code == 0 && !is_at(repo, name, &one))
			errx(1, "%s is not there", name);
		if (code < 0)
			usleep(10000);
		i += code == 0;
	}
	printf("%d refs, %d errors, %d unknown\n", i, errors_seen, unknown);
	git_repository_free(repo);
	return 0;
}

int main(int argc, char **argv)
{
	int code = 129;

	setvbuf(stdout, NULL, _IOLBF, 0);
	git_libgit2_init();
	if (argc == 4 && strcmp(argv[1], "all") == 0)
		code = all(argv[2], argv[3]);
	else if (argc == 4 && strcmp(argv[1], "away") == 0)
		code = away(argv[2], argv[3]);
	else if (argc == 3 && strcmp(argv[1], "refused") == 0)
		code = refused(argv[2]);
	else if (argc == 4 && strcmp(argv[1], "stranger") == 0)
		code = stranger(argv[2], argv[3]);
	else if (argc == 5 && strcmp(argv[1], "steps") == 0)
		code = steps(argv[2], argv[3], atoi(argv[4]));
	git_libgit2_shutdown();
	return code;
}
