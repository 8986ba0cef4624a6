#include "proto/lib/consent.h"

#include <stddef.h>
#include <stdio.h>
#include <strings.h>
#include <unistd.h>

#include "proto/lib/print.h"
#include "proto/lib/progress.h"

static enum consent (*relay)(const char *question);

void consent_relay(enum consent (*ask)(const char *question))
{
	relay = ask;
}

enum consent consent_ask(const char *question)
{
	char line[8];

	fflush(stdout);
	if (relay != NULL)
		return relay(question);
	if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
		return CONSENT_NOBODY;
	progress_clear();
	print_part(stderr, "%s [y/N] ", question);
	return fgets(line, sizeof(line), stdin) != NULL &&
		(strcasecmp(line, "y\n") == 0 ||
		    strcasecmp(line, "yes\n") == 0) ?
	    CONSENT_YES :
	    CONSENT_NO;
}
