#include "daemon/group/service/schema.h"

#include <string.h>

#include "proto/left_log.h"

/* Migration N brings the tables from version N to N + 1. */
static const char *const migrations[SCHEMA_VERSION] = {
	"CREATE TABLE refd.grp (grp text PRIMARY KEY, uuid uuid NOT NULL);"
	"CREATE TABLE refd.lease (grp text PRIMARY KEY, epoch bigint NOT NULL,"
	" owner text NOT NULL, until timestamptz NOT NULL, successor text,"
	" asked timestamptz, UNIQUE (grp, epoch));"
	"CREATE TABLE refd.log (grp text, lsn bigint, epoch bigint NOT NULL,"
	" id bytea NOT NULL, repo uuid NOT NULL, txid bytea NOT NULL,"
	" uid bigint NOT NULL, time_ms bigint NOT NULL,"
	" final boolean NOT NULL, path bytea NOT NULL, body bytea NOT NULL,"
	" objects bytea NOT NULL, PRIMARY KEY (grp, lsn), UNIQUE (grp, id));"
	"ALTER TABLE refd.log ALTER body SET STORAGE external,"
	" ALTER objects SET STORAGE external;"
	"CREATE TABLE refd.node (grp text, node text, applied bigint NOT NULL,"
	" seen timestamptz NOT NULL, has_room boolean NOT NULL DEFAULT false,"
	" machine text, refuses text, damaged text, PRIMARY KEY (grp, node));"
	"CREATE UNLOGGED TABLE refd.want (grp text, id uuid, node text"
	" NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp(),"
	" repo uuid NOT NULL, path bytea NOT NULL, is_new boolean NOT NULL,"
	" format bigint NOT NULL,"
	" oids bytea NOT NULL, bases bytea NOT NULL, epoch bigint NOT NULL,"
	" PRIMARY KEY (grp, id));"
	"ALTER TABLE refd.want ALTER oids SET STORAGE external,"
	" ALTER bases SET STORAGE external;"
	"CREATE UNLOGGED TABLE refd.held (grp text, id uuid, node text,"
	" at timestamptz NOT NULL DEFAULT clock_timestamp(), why text,"
	" PRIMARY KEY (grp, id, node))",
};

static void say_why(struct session *s, const char *why)
{
	text_clear(&s->why);
	text_adds(&s->why, why);
}

static enum session_result newer(struct session *s, uint64_t version)
{
	text_clear(&s->why);
	text_addf(&s->why,
	    "the tables in the schema refd have version %llu, and this "
	    "refd-group knows versions up to %d: install a newer refd-group",
	    (unsigned long long)version, SCHEMA_VERSION);
	return SESSION_WRONG;
}

/* ---- creating ---- */

static bool migrate(struct session *s, uint64_t version)
{
	struct params p = { 0 };

	params_number(&p, SCHEMA_VERSION);
	for (; version < SCHEMA_VERSION; version++)
		if (!session_do(s, migrations[version]))
			return false;
	return session_do(s, "DELETE FROM refd.version") &&
	    session_change(s, "INSERT INTO refd.version VALUES ($1)", &p) == 1;
}

static const char first_row[] =
    "INSERT INTO refd.log SELECT $1, $2::bigint, 0, uuid_send(gen_random_uuid()),"
    " gen_random_uuid(), '', 0, 0, true, '', '', ''";

static enum session_result add_group(struct session *s, const uint8_t *origin)
{
	struct params name = { 0 }, lease = { 0 }, row = { 0 };
	uint64_t lsn = 0;
	long added;

	if (origin)
		left_log_lsn(origin, &lsn);

	params_text(&name, s->config->name);
	if (origin)
		params_bytes(&name, origin, GROUP_UUID_BYTES);
	params_text(&row, s->config->name);
	params_number(&row, lsn);
	params_text(&lease, s->config->name);
	params_text(&lease, s->config->node);
	added = session_change(s,
	    origin ? "INSERT INTO refd.grp VALUES ($1, $2)"
		     " ON CONFLICT DO NOTHING" :
		     "INSERT INTO refd.grp VALUES ($1, gen_random_uuid())"
		     " ON CONFLICT DO NOTHING",
	    &name);
	if (added == 0) {
		say_why(s,
		    "a group of this name exists already: refd group status "
		    "shows it, and another name for group.name makes another "
		    "group");
		return SESSION_WRONG;
	}
	return added == 1 &&
		session_change(s,
		    "INSERT INTO refd.lease VALUES ($1, 1, $2, now())",
		    &lease) == 1 &&
		session_change(s, first_row, &row) == 1 ?
	    SESSION_OK :
	    SESSION_AWAY;
}

/* Locks the version, because otherwise two nodes could migrate at once. */
static enum session_result create(struct session *s, const uint8_t *origin)
{
	enum session_result result;
	uint64_t version;
	PGresult *r;

	if (!session_do(s,
		"BEGIN;"
		"CREATE SCHEMA IF NOT EXISTS refd;"
		"CREATE TABLE IF NOT EXISTS refd.version (version int NOT "
		"NULL);"
		"LOCK TABLE refd.version IN ACCESS EXCLUSIVE MODE"))
		return SESSION_AWAY;
	r = session_run(s, "SELECT coalesce(max(version), 0) FROM refd.version",
	    NULL);
	if (!r)
		return SESSION_AWAY;
	version = session_number(r, 0, 0);
	PQclear(r);
	if (version > SCHEMA_VERSION)
		return newer(s, version);
	result = migrate(s, version) ? add_group(s, origin) : SESSION_AWAY;
	if (result == SESSION_OK && !session_do(s, "COMMIT"))
		return SESSION_AWAY;
	return result;
}

enum session_result schema_create(struct session *s,
    const uint8_t origin[GROUP_UUID_BYTES])
{
	enum session_result result = create(s, origin);

	if (result != SESSION_OK)
		session_close(s);
	return result;
}

/* ---- checking ---- */

static const char no_group[] =
    "the database has no such group: check group.name and group.database, or "
    "create the group with refd group create";

static enum session_result check_version(struct session *s)
{
	PGresult *r = session_run(s,
	    "SELECT to_regclass('refd.version') IS NOT NULL", NULL);
	bool exists = r && *PQgetvalue(r, 0, 0) == 't';
	uint64_t version;

	if (!r)
		return SESSION_AWAY;
	PQclear(r);
	if (!exists) {
		say_why(s, no_group);
		return SESSION_WRONG;
	}
	r = session_run(s, "SELECT max(version) FROM refd.version", NULL);
	if (!r)
		return SESSION_AWAY;
	version = session_number(r, 0, 0);
	PQclear(r);
	return version > SCHEMA_VERSION ? newer(s, version) : SESSION_OK;
}

static enum session_result read_uuid(struct session *s,
    uint8_t group[GROUP_UUID_BYTES])
{
	struct params p = { 0 };
	PGresult *r;
	bool exists;

	params_text(&p, s->config->name);
	r = session_run_binary(s, "SELECT uuid FROM refd.grp WHERE grp = $1",
	    &p);
	if (!r)
		return SESSION_AWAY;
	exists = PQntuples(r) == 1 && PQgetlength(r, 0, 0) == GROUP_UUID_BYTES;
	if (exists)
		memcpy(group, PQgetvalue(r, 0, 0), GROUP_UUID_BYTES);
	else
		say_why(s, no_group);
	PQclear(r);
	return exists ? SESSION_OK : SESSION_WRONG;
}

enum session_result schema_check(struct session *s,
    uint8_t group[GROUP_UUID_BYTES])
{
	enum session_result result = check_version(s);

	if (result == SESSION_OK)
		result = read_uuid(s, group);
	if (result != SESSION_OK)
		session_close(s);
	return result;
}
