/*
 * One contestant under one load, for the bench:
 *
 *	load --on NAME [--clients N] [--refs N] [--txns N] [--seconds S]
 *	     [--rate R] [--action create|delete|move|swap] [--prefix REF]
 *	     [--repo DIR [--repos N]] [--path PATH] [--oid HEX]...
 *	     [--input FILE] [--atomic] [-- COMMAND...]
 *
 * NAME is refd or ping (PATH: the daemon's socket), git, kept, rename, raw,
 * sqlite, redis or command. tests/bench/load.h describes the other options,
 * and tests/bench/peer.h the contestants. Prints a line of JSON.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/lib/cli.h"
#include "tests/bench/load_refd.h"
#include "tests/bench/peer.h"

#define OIDS_MAX 1024

struct load_options {
	const char *on;
	struct load load;
	struct job job;
	struct peer peer;
	struct load_refd refd;
	struct refd_oid oids[OIDS_MAX];
};

static double real(const char *s)
{
	char *end;
	double d = strtod(s, &end);

	if (end == s || *end || !(d > 0))
		die("'%s' is not a number above nothing", s);
	return d;
}

static unsigned number(const char *s, unsigned most)
{
	uint64_t n;

	if (!cli_number(s, most, &n) || n == 0)
		die("'%s' is not a number from 1 to %u", s, most);
	return (unsigned)n;
}

static void add_oid(struct load_options *o, const char *hex)
{
	size_t len = strlen(hex);

	o->job.object_format =
	    len == REFD_OID_MAX_HEX ? REFD_FORMAT_SHA256 : REFD_FORMAT_SHA1;
	if (o->job.nr_oids == OIDS_MAX ||
	    len != refd_object_format_hex(o->job.object_format) ||
	    refd_oid_parse(hex, o->job.object_format,
		&o->oids[o->job.nr_oids++]) < 0)
		die("--oid '%s': an object id, %d at most", hex, OIDS_MAX);
}

static void take_option(struct load_options *o, int c, const char *arg)
{
	switch (c) {
	case 'O':
		o->on = arg;
		break;
	case 'c':
		o->load.clients = number(arg, LOAD_CLIENTS_MAX);
		break;
	case 't':
		o->load.txns = number(arg, UINT32_MAX);
		break;
	case 's':
		o->load.seconds = real(arg);
		break;
	case 'r':
		o->load.rate = real(arg);
		break;
	case 'n':
		o->job.refs = number(arg, 1000000);
		break;
	case 'a':
		if (job_action_from_name(arg, &o->job.action) < 0)
			die("--action '%s'?", arg);
		break;
	case 'p':
		o->job.prefix = arg;
		break;
	case 'R':
		o->job.repo = arg;
		break;
	case 'N':
		o->job.repos = number(arg, 1000000);
		break;
	case 'P':
		o->peer.path = arg;
		o->refd.socket = arg;
		break;
	case 'o':
		add_oid(o, arg);
		break;
	case 'i':
		o->peer.input = arg;
		break;
	case 'A':
		o->refd.atomic = true;
		break;
	default:
		exit(EXIT_USAGE);
	}
}

static void parse(struct load_options *o, int argc, char **argv)
{
	static const struct option names[] = {
		{ "on", required_argument, NULL, 'O' },
		{ "clients", required_argument, NULL, 'c' },
		{ "txns", required_argument, NULL, 't' },
		{ "seconds", required_argument, NULL, 's' },
		{ "rate", required_argument, NULL, 'r' },
		{ "refs", required_argument, NULL, 'n' },
		{ "action", required_argument, NULL, 'a' },
		{ "prefix", required_argument, NULL, 'p' },
		{ "repo", required_argument, NULL, 'R' },
		{ "repos", required_argument, NULL, 'N' },
		{ "path", required_argument, NULL, 'P' },
		{ "oid", required_argument, NULL, 'o' },
		{ "input", required_argument, NULL, 'i' },
		{ "atomic", no_argument, NULL, 'A' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "+", names, NULL)) >= 0)
		take_option(o, c, optarg);
	o->peer.command = argv + optind;
	if (!o->on || (!o->load.txns && o->load.seconds <= 0))
		die("--on, and --txns or --seconds, are needed");
}

static struct load_contestant contestant(struct load_options *o)
{
	static const struct {
		const char *name;
		struct load_contestant (*make)(struct peer *);
	} peers[] = {
		{ "git", peer_git },
		{ "kept", peer_kept },
		{ "command", peer_command },
		{ "raw", peer_raw },
		{ "sqlite", peer_sqlite },
		{ "redis", peer_redis },
		{ "rename", peer_rename },
	};
	size_t i;

	for (i = 0; i < sizeof(peers) / sizeof(peers[0]); i++)
		if (!strcmp(o->on, peers[i].name))
			return peers[i].make(&o->peer);
	if (!strcmp(o->on, "refd") || !strcmp(o->on, "ping"))
		return load_refd(&o->refd);
	die("--on '%s'?", o->on);
}

int main(int argc, char **argv)
{
	static struct load_options o = { .load = { .clients = 1 },
		.job = { .refs = 1, .prefix = "refs/heads/load" } };
	struct load_contestant with;
	struct json j = { .to = stdout };
	struct load_result result;
	bool all_well;

	o.job.oids = o.oids;
	o.peer.job = &o.job;
	parse(&o, argc, argv);
	if (strcmp(o.on, "ping") != 0)
		o.refd.job = &o.job;
	with = contestant(&o);
	all_well = load_run(&o.load, &with, &result);
	load_json(&j, NULL, &result);
	putchar('\n');
	return all_well ? 0 : 1;
}
