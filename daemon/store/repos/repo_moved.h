/*
 * The end of an admission that failed, for the worker that has TXN, before TXN
 * goes back to the loop. Blocks on the disk of the repository.
 */
#ifndef STORE_REPO_MOVED_H
#define STORE_REPO_MOVED_H

struct repos;
struct txn;

/* If TXN failed because its repository was moved away or is being removed,
 * refuses TXN with norepo. */
void repo_moved_refuse(struct repos *repos, struct txn *txn);

#endif
