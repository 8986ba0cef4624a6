/*
 * The part of a repository's configuration that refd-group tells a node that
 * joins (lister.h). Any thread; nothing blocks.
 */
#ifndef GROUP_SERVICE_LISTER_CONFIG_H
#define GROUP_SERVICE_LISTER_CONFIG_H

#include "proto/lib/cli.h"

struct lister_config {
	bool is_sha256;
	bool hides_refs; /* from fetches, and not only those below refs/refd */
};

/* CONFIG: the output of git config -z, whose values any writer of the
 * repository's configuration has chosen. */
struct lister_config lister_config_parse(const struct text *config);

#endif
