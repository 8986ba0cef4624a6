/*
 * The command of a shell that asks for the outcome of a transaction. Any other
 * daemon would answer "never-seen", and after that answer a client may do the
 * work again (PROTOCOL.md). So the command names the daemon that got the
 * transaction.
 *
 * Pure.
 */
#ifndef PROTO_LIB_QUERY_COMMAND_H
#define PROTO_LIB_QUERY_COMMAND_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/lib/shell_word.h"
#include "proto/txid.h"

/* SOCKET is that of the request. Owned, or NULL without memory. */
static inline char *query_command(const char *socket,
    const struct refd_txid *txid)
{
	char id[REFD_TXID_HEX + 1], *command = NULL;
	char *word = malloc(SHELL_WORD_MAX(strlen(socket)));

	if (word == NULL ||
	    asprintf(&command, "refd query --socket %s %s",
		shell_word(word, socket), refd_txid_hex(txid, id)) < 0)
		command = NULL;
	free(word);
	return command;
}

#endif
