/*
 * Calls of libgit2 for the comparison: whole logs, transactions, stashes.
 */
#include <err.h>
#include <stdio.h>

#include "tests/libgit2/calls.h"

static int edit_log(git_repository *repo, const char *name,
    int (*edit)(git_reflog *log))
{
	git_reflog *log;
	int err = git_reflog_read(&log, repo, name);

	if (err < 0)
		return err;
	err = edit(log);
	if (err == 0)
		err = git_reflog_write(log);
	git_reflog_free(log);
	return err;
}

static int append(git_reflog *log)
{
	return git_reflog_append(log, &calls_two, calls_who, "appended");
}

static int drop(git_reflog *log)
{
	return git_reflog_drop(log, 1, 1);
}

static int log_append(git_repository *repo)
{
	return edit_log(repo, "refs/heads/a", append);
}

static int log_drop(git_repository *repo)
{
	return edit_log(repo, "HEAD", drop);
}

static int log_rename(git_repository *repo)
{
	int err = git_reflog_rename(repo, "refs/heads/lines", "refs/heads/l2");

	return err < 0 ? err :
			 calls_create(repo, "refs/heads/l2", &calls_two, 0);
}

static int log_delete(git_repository *repo)
{
	return git_reflog_delete(repo, "refs/heads/l2");
}

/* ---- git_transaction ---- */

static int transact(git_repository *repo, const char *name,
    int (*queue)(git_transaction *tx, git_repository *repo, const char *name))
{
	git_transaction *tx;
	int err = git_transaction_new(&tx, repo);

	if (err < 0)
		return err;
	err = git_transaction_lock_ref(tx, name);
	if (err == 0)
		err = queue(tx, repo, name);
	if (err == 0)
		err = git_transaction_commit(tx);
	git_transaction_free(tx);
	return err;
}

static int queue_nothing(git_transaction *tx, git_repository *repo,
    const char *name)
{
	(void)tx, (void)repo, (void)name;
	return 0;
}

static int queue_target(git_transaction *tx, git_repository *repo,
    const char *name)
{
	(void)repo;
	return git_transaction_set_target(tx, name, &calls_two, calls_who,
	    "by tx");
}

static int queue_symbolic(git_transaction *tx, git_repository *repo,
    const char *name)
{
	(void)repo;
	return git_transaction_set_symbolic_target(tx, name, "refs/heads/main",
	    calls_who, "by tx");
}

static int queue_remove(git_transaction *tx, git_repository *repo,
    const char *name)
{
	(void)repo;
	return git_transaction_remove(tx, name);
}

static int queue_log(git_transaction *tx, git_repository *repo,
    const char *name)
{
	git_reflog *log;
	int err = git_reflog_read(&log, repo, name);

	if (err < 0)
		return err;
	err = git_reflog_append(log, &calls_one, calls_who, "the only line");
	if (err == 0)
		err = git_reflog_drop(log, 1, 0);
	if (err == 0)
		err = git_transaction_set_reflog(tx, name, log);
	git_reflog_free(log);
	return err;
}

static int queue_log_and_target(git_transaction *tx, git_repository *repo,
    const char *name)
{
	int err = queue_log(tx, repo, name);

	if (err == 0)
		err = git_transaction_set_target(tx, name, &calls_one,
		    calls_who, "unseen");
	return err;
}

static int tx_nothing(git_repository *repo)
{
	return transact(repo, "refs/heads/a", queue_nothing);
}

static int tx_new(git_repository *repo)
{
	return transact(repo, "refs/heads/tx", queue_target);
}

static int tx_symbolic(git_repository *repo)
{
	return transact(repo, "refs/sym/tx", queue_symbolic);
}

static int tx_over_symbolic(git_repository *repo)
{
	return transact(repo, "refs/sym/tx", queue_target);
}

static int tx_log(git_repository *repo)
{
	return transact(repo, "refs/heads/tx", queue_log);
}

static int tx_log_and_target(git_repository *repo)
{
	return transact(repo, "refs/heads/tx", queue_log_and_target);
}

static int tx_remove(git_repository *repo)
{
	return transact(repo, "refs/heads/tx", queue_remove);
}

static int tx_remove_missing(git_repository *repo)
{
	return transact(repo, "refs/heads/none", queue_remove);
}

static int tx_two(git_repository *repo)
{
	git_transaction *tx;
	int err = git_transaction_new(&tx, repo);

	if (err == 0)
		err = git_transaction_lock_ref(tx, "refs/heads/tx1");
	if (err == 0)
		err = git_transaction_lock_ref(tx, "refs/heads/tx2");
	if (err == 0)
		err = queue_target(tx, repo, "refs/heads/tx1");
	if (err == 0)
		err = queue_target(tx, repo, "refs/heads/tx2");
	if (err == 0)
		err = git_transaction_commit(tx);
	git_transaction_free(tx);
	return err;
}

static int tx_not_committed(git_repository *repo)
{
	git_transaction *tx;
	int err = git_transaction_new(&tx, repo);

	if (err == 0)
		err = git_transaction_lock_ref(tx, "refs/heads/a");
	if (err == 0)
		err = queue_target(tx, repo, "refs/heads/a");
	git_transaction_free(tx);
	return err;
}

/* ---- stashes ---- */

static int stash(git_repository *repo, const char *content)
{
	char path[4096];
	git_oid id;
	FILE *f;

	snprintf(path, sizeof(path), "%sf", git_repository_workdir(repo));
	f = fopen(path, "w");
	if (!f || fputs(content, f) < 0 || fclose(f) != 0)
		err(1, "%s", path);
	return git_stash_save(&id, repo, calls_who, content, GIT_STASH_DEFAULT);
}

static int stash_three(git_repository *repo)
{
	int err = stash(repo, "first");

	if (err == 0)
		err = stash(repo, "second");
	return err < 0 ? err : stash(repo, "third");
}

static int stash_drop_newest(git_repository *repo)
{
	return git_stash_drop(repo, 0);
}

static int stash_drop_oldest(git_repository *repo)
{
	return git_stash_drop(repo, 1);
}

static int stash_pop(git_repository *repo)
{
	return git_stash_pop(repo, 0, NULL);
}

const struct call calls_logs[] = {
	{ "a line for a log", log_append },
	{ "a line less in a log", log_drop },
	{ "another name for a log", log_rename },
	{ "no log any more", log_delete },
	{ "a transaction without a change", tx_nothing },
	{ "a transaction makes a ref", tx_new },
	{ "a transaction makes a symbolic ref", tx_symbolic },
	{ "a transaction writes over a symbolic ref", tx_over_symbolic },
	{ "a transaction writes a log", tx_log },
	{ "a transaction writes a log and a ref", tx_log_and_target },
	{ "a transaction deletes a ref", tx_remove },
	{ "a transaction deletes a missing ref", tx_remove_missing },
	{ "a transaction writes two refs", tx_two },
	{ "a transaction that is not committed", tx_not_committed },
	{ "three stashes", stash_three },
	{ "the newest stash is dropped", stash_drop_newest },
	{ "the oldest stash is dropped", stash_drop_oldest },
	{ "the last stash is popped", stash_pop },
	{ NULL, NULL },
};
