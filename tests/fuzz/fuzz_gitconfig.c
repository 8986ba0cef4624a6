/*
 * Any bytes as a configuration file of git. If refd's reader accepts the file,
 * "git config -z --list" of the installed git prints exactly the same bytes.
 * Refused files are git's, and nothing is compared.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/git/configfiles.h"
#include "client/git/gitconfig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool ok)
{
	if (!ok)
		abort();
}

static void check_against_git(const uint8_t *data, size_t size,
    const struct text *ours)
{
	int fd = memfd_create("config", MFD_CLOEXEC);
	struct gitconfig git = { 0 };
	char path[64];

	expect(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), fd);
	expect(gitconfig_read_file(&git, path) == 0);
	expect(git.list.len == ours->len);
	expect(ours->len == 0 || !memcmp(git.list.data, ours->data, ours->len));
	gitconfig_done(&git);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *exact = malloc(size > 0 ? size : 1);
	struct text ours = { 0 };

	if (exact == NULL)
		return 0;
	setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
	unsetenv("HOME");
	unsetenv("XDG_CONFIG_HOME");
	if (size > 0)
		memcpy(exact, data, size);
	if (configfiles_add(&ours, exact, size))
		check_against_git(data, size, &ours);
	text_done(&ours);
	free(exact);
	return 0;
}
