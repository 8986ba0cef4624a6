/* Shared by finding.c, the list, and finding_print.c, the output. */
#ifndef PROTO_LIB_FINDING_INTERNAL_H
#define PROTO_LIB_FINDING_INTERNAL_H

#include "proto/lib/finding.h"

/* Stands for the path of the repository in a text. */
#define FINDING_REPOSITORY "<repository>"
/* Repositories of a group with a name, and refs or files of each. */
#define FINDING_NAMES_MAX 3

struct finding_kind {
	const char *id;
	enum finding_severity severity;
	enum finding_repair repair;
	const char *remedy;
};

const struct finding_kind *finding_kind(enum finding_id id);
/* What to do about F, which is not repaired. */
const char *finding_remedy(const struct finding *f);
/* TEXT with TO for each path FROM; owned. NULL: no memory. */
char *finding_replace_path(const char *text, const char *from, const char *to);

/* Prints NR equal findings as a group. As JSON, NR is 1. */
void finding_print_group(struct findings *f, struct finding_held *const *group,
    size_t nr);
/* Prints the end, with the number of checked repositories. */
void finding_print_end(struct findings *f, size_t nr_repos);

#endif
