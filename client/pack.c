/*
 * refd pack: the daemon moves the loose refs of a repository to packed-refs.
 *
 * Happy path: one request, one answer, as soon as the refs are packed. Refs
 * that others write meanwhile stay loose, and are counted.
 *
 * Failures: a refusal or an unavailable daemon ends the program, but refs that
 * were packed before a failure stay packed.
 */
#include <stdio.h>
#include <string.h>

#include "client/commands.h"
#include "client/git/gitdir.h"
#include "client/request/output.h"
#include "client/request/question.h"

static const char *value_of(const struct refd_answer *ans, const char *key)
{
	size_t i;

	for (i = 0; i < ans->nr_pairs; i++)
		if (!strcmp(ans->pairs[i].key, key))
			return ans->pairs[i].value;
	die("the daemon's answer is not one to this question");
}

static void print(const struct refd_answer *ans)
{
	const char *left = value_of(ans, "left");

	if (!strcmp(value_of(ans, "refs-format"), "reftable")) {
		print_line(stdout,
		    "nothing to pack: the refs are in reftables, which refd "
		    "merges by itself");
		return;
	}
	print_part(stdout, "packed %s refs", value_of(ans, "packed"));
	if (strcmp(left, "0") != 0)
		print_part(stdout, ", left %s refs that others write", left);
	print_lines(stdout, "\n");
}

static int run_pack(const struct command *c, int argc, char **argv)
{
	struct refd_request req = { .verb = REFD_VERB_PACK };
	struct question q = { 0 };
	struct gitdir gd = { 0 };
	struct text why = { 0 };
	struct refd_answer ans;
	struct refd *r;

	cli_parse(c, &q, argc, &argv);
	if (!gitdir_locate(&gd, argv[0], &why))
		die("%s", why.data);
	req.git_dir = gd.common;
	req.common_dev = gd.dev;
	req.common_ino = gd.ino;
	r = question_connect_of(q.socket, gd.common, 0);
	question_call(r, &req, -1, &ans);
	if (ans.kind != REFD_ANSWER_PAIRS)
		die("the daemon's answer is not one to this question");
	if (q.json)
		output_json_pairs(ans.pairs, ans.nr_pairs);
	else
		print(&ans);
	refd_answer_done(&ans);
	refd_free(r);
	gitdir_done(&gd);
	text_done(&why);
	return EXIT_DONE;
}

const struct command pack_command = {
	.name = "pack",
	.summary = "move loose refs to packed-refs",
	.arguments = "[<repository>]",
	.purpose = "Moves the loose refs of a repository to packed-refs, as "
		   "'git pack-refs --all' does, beside all writers. Without "
		   "an argument: of the current repository.",
	.example = "refd pack /srv/git/project.git",
	.manual = "refd-pack(1)",
	.most = 1,
	.options = question_json,
	.run = run_pack,
};
