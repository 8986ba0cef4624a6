#include "proto/status.h"

#include <string.h>

static const struct status_row {
	enum refd_status status;
	enum { NO_RETRY, RETRY } retry;
	const char *name, *text;
} rows[] = {
#define X(symbol, code, again, wire_name, human_text)                          \
	[code] = { REFD_##symbol, again, wire_name, human_text },
	REFD_STATUS_TABLE(X)
#undef X
};

#define NR_ROWS (sizeof(rows) / sizeof(rows[0]))

/* A row's index is its code. */
_Static_assert(NR_ROWS == REFD_STATUSES, "a gap in the codes");

static const struct status_row *row_of(enum refd_status status)
{
	static const struct status_row pending = { REFD_PENDING, NO_RETRY,
		"pending", "not decided yet" };

	if ((unsigned)status < NR_ROWS)
		return &rows[status];
	return &pending;
}

const char *refd_status_name(enum refd_status status)
{
	return row_of(status)->name;
}

const char *refd_status_text(enum refd_status status)
{
	return row_of(status)->text;
}

bool refd_status_may_retry(enum refd_status status)
{
	return row_of(status)->retry == RETRY;
}

int refd_status_from_name(const char *name, enum refd_status *status)
{
	size_t i;

	for (i = 0; i < NR_ROWS; i++) {
		if (strcmp(rows[i].name, name) == 0) {
			*status = rows[i].status;
			return 0;
		}
	}
	return -1;
}

int refd_status_from_code(unsigned code, enum refd_status *status)
{
	if (code >= NR_ROWS)
		return -1;
	*status = rows[code].status;
	return 0;
}

#define X(symbol, code, wire_name) wire_name,
static const char *const outcomes[] = { REFD_OUTCOME_TABLE(X) };
#undef X

#define NR_OUTCOMES (sizeof(outcomes) / sizeof(outcomes[0]))

const char *refd_outcome_name(enum refd_outcome outcome)
{
	if ((unsigned)outcome < NR_OUTCOMES)
		return outcomes[outcome];
	return outcomes[REFD_OUTCOME_UNKNOWN];
}

int refd_outcome_from_name(const char *name, enum refd_outcome *outcome)
{
	size_t i;

	for (i = 0; i < NR_OUTCOMES; i++) {
		if (strcmp(outcomes[i], name) == 0) {
			*outcome = (enum refd_outcome)i;
			return 0;
		}
	}
	return -1;
}

enum refd_outcome refd_outcome_of(size_t nr, size_t ok, size_t unknown)
{
	if (unknown > 0)
		return REFD_OUTCOME_UNKNOWN;
	if (ok == nr)
		return REFD_COMMITTED;
	return ok == 0 ? REFD_REJECTED : REFD_PARTIAL;
}
