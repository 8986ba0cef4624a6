#include "daemon/group/service/old_rows.h"

#define MOST      500
#define MOST_TEXT "500"
#define BYTES     "67108864" /* or one row */

/* The rows before the first one that is needed. */
static const char delete_sql[] =
    "DELETE FROM refd.log WHERE grp = $1 AND lsn <= ("
    " SELECT max(lsn) FROM (SELECT lsn, bool_and(time_ms <"
    "   extract(epoch FROM now() - interval '1 day') * 1000)"
    "   OVER (ORDER BY lsn)"
    "   AND (sum(bytes) OVER (ORDER BY lsn) <= " BYTES
    "    OR row_number() OVER (ORDER BY lsn) = 1) AS is_old"
    "  FROM (SELECT lsn, time_ms,"
    "   pg_column_size(body) + pg_column_size(objects) AS bytes"
    "   FROM refd.log WHERE grp = $1"
    "   AND lsn <= (SELECT min(applied) FROM refd.node WHERE grp = $1)"
    "   AND lsn < (SELECT max(lsn) FROM refd.log WHERE grp = $1)"
    "   ORDER BY lsn LIMIT " MOST_TEXT ") AS first) AS marked"
    " WHERE is_old AND EXISTS (SELECT FROM refd.lease"
    "  WHERE grp = $1 AND owner = $2 AND until > now()))";

bool old_rows_delete(struct session *s)
{
	struct params p = { 0 };

	params_text(&p, s->config->name);
	params_text(&p, s->config->node);
	return session_change(s, delete_sql, &p) == MOST;
}
