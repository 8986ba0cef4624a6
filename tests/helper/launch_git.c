/*
 * Starts a git that scripts/git-new has unpacked, as its shell script does, in
 * less time. The environment variable GIT_LAUNCH has a line each for the
 * loader, its library path and the program.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char *lines = getenv("GIT_LAUNCH"), *slash = strrchr(argv[0], '/');
	char **args = calloc((size_t)argc + 6, sizeof(*args));
	char *loader, *libraries, *program;
	int i;

	if (!lines || !args)
		return 127;
	lines = strdup(lines);
	loader = strtok(lines, "\n");
	libraries = strtok(NULL, "\n");
	program = strtok(NULL, "\n");
	if (!program)
		return 127;
	args[0] = loader;
	args[1] = "--argv0";
	args[2] = slash ? slash + 1 : argv[0];
	args[3] = "--library-path";
	args[4] = libraries;
	args[5] = program;
	for (i = 1; i < argc; i++)
		args[5 + i] = argv[i];
	execv(loader, args);
	perror(loader);
	return 127;
}
