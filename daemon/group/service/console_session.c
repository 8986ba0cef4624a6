#include "daemon/group/service/console_session.h"

#include "daemon/group/service/damage.h"
#include "daemon/group/service/schema.h"

void console_session_die(const struct session *s, enum session_result result)
{
	cli_die(result == SESSION_AWAY ? EXIT_AWAY : EXIT_FATAL,
	    "group '%s': %s", s->config->name,
	    s->why.data ? s->why.data : "the database does not answer");
}

void console_session_open(struct session *s)
{
	uint8_t group[GROUP_UUID_BYTES];
	enum session_result result = session_open(s);

	if (result == SESSION_OK)
		result = schema_check(s, group);
	if (result != SESSION_OK)
		console_session_die(s, result);
}

bool console_session_find_node(struct session *s, const char *name,
    struct console_node *node)
{
	struct params p = { 0 };
	PGresult *r;
	bool found;

	params_text(&p, s->config->name);
	params_text(&p, name);
	r = session_run(s,
	    "SELECT applied, (SELECT max(lsn) FROM refd.log WHERE grp = $1),"
	    " greatest(0, floor(extract(epoch FROM clock_timestamp() - seen))),"
	    " seen > clock_timestamp() - " CONSOLE_SEEN ","
	    " floor(extract(epoch FROM clock_timestamp()) * 1000),"
	    " " DAMAGE_IS_LIST " FROM refd.node WHERE grp = $1 AND node = $2",
	    &p);
	if (!r)
		console_session_die(s, SESSION_AWAY);
	found = PQntuples(r) == 1;
	if (found)
		*node = (struct console_node){ session_number(r, 0, 0),
			session_number(r, 0, 1), session_number(r, 0, 2),
			*PQgetvalue(r, 0, 3) == 't', session_number(r, 0, 4),
			*PQgetvalue(r, 0, 5) == 't' };
	PQclear(r);
	return found;
}
