/*
 * The protocol between git's receive-pack and the proc-receive hook:
 * githooks(5), "proc-receive", version 1. refd also speaks the protocol with a
 * chained hook.
 *
 * Blocking reads and writes; one thread. Functions return false with a static
 * reason for people.
 */
#ifndef CLIENT_PUSH_PUSH_H
#define CLIENT_PUSH_PUSH_H

#include "proto/lib/cli.h"
#include "proto/oid.h"
#include "proto/pktline.h"

/* A command "<old> <new> <ref>", which owns its strings. */
struct push_command {
	enum refd_object_format object_format; /* the same for all */
	struct refd_oid old_oid, new_oid;
	char *name;
	char *ref; /* with the namespace: the ref that is written */
	/* A byte of the name would break the report. The ref gets no report,
	 * and receive-pack treats the ref as failed. */
	bool unreportable;
	bool is_chained; /* for the hook of refd.chain */

	/* The verdict: a reason for "ng"; packets of the chained hook; left to
	 * git; otherwise "ok". */
	char *ng;
	struct pkt_buf said;
	bool is_gits;
};

/* Empty when zero-initialised. */
struct push {
	bool atomic;
	bool has_options; /* push options are available */
	struct push_command *commands;
	size_t nr, size;
	struct text options; /* the push options, as packets */
};

void push_done(struct push *push);

struct push_reader {
	int fd;
	char *data;
	size_t begin, end, size;
};

void push_reader_done(struct push_reader *in);

/* Reads the greeting, up to its flush. */
bool push_read_version(struct push_reader *in, struct push *push,
    const char **why);
/* Reads all commands, up to their flush. */
bool push_read_commands(struct push_reader *in, struct push *push,
    const char **why);
/* Reads the push options, if they were requested. */
bool push_read_options(struct push_reader *in, struct push *push,
    const char **why);

/* Adds the namespaces of PATH, "a/b" as in GIT_NAMESPACE, to each command's
 * ref. NULL or empty means none. Call at most once. */
void push_set_namespace(struct push *push, const char *path);

/* Gives the verdict WHY to each command without a verdict. */
void push_refuse(struct push *push, const char *why);

void push_put_version(bool with_options, struct pkt_buf *out);
/* Appends a verdict for each command, in their order. */
void push_put_report(const struct push *push, struct pkt_buf *out);

#endif
