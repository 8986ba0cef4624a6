/*
 * A proc-receive hook that answers `ok` for every ref and writes nothing: the
 * cost of a push without any ref update. For measurements only.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PACKET_MAX 65520

/* Reads a packet. Returns the length of the payload, or 0 for a flush. Exits at
 * the end of input. */
static size_t read_packet(char *payload)
{
	char head[5] = "";
	size_t len;

	if (fread(head, 1, 4, stdin) != 4)
		exit(1);
	len = strtoul(head, NULL, 16);
	if (len < 4)
		return 0;
	if (len > PACKET_MAX || fread(payload, 1, len - 4, stdin) != len - 4)
		exit(1);
	payload[len - 4] = '\0';
	return len - 4;
}

static void say_ok(const char *name)
{
	printf("%04zxok %s", strlen(name) + 7, name);
}

int main(void)
{
	static char command[PACKET_MAX + 1];
	size_t ids = 2 * 41;

	while (read_packet(command))
		;
	printf("%04zxversion=1%s", strlen("version=1") + 4, "0000");
	fflush(stdout);
	while (read_packet(command))
		if (strlen(command) > ids)
			say_ok(command + ids);
	fputs("0000", stdout);
	return 0;
}
