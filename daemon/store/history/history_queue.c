/*
 * Happy path:
 *	put	behind earlier questions of the same connection
 *	take	the first question of the next connection of the next user;
 *		the connection and the user go to the end of their lists
 *
 * Lists are short: only users and connections with waiting questions.
 *
 * Failure modes:
 *	out of memory		the question is given back
 */
#include "daemon/store/history/history_queue.h"

#include <errno.h>
#include <stdlib.h>

#include <utlist.h>

/* A connection with at least one question. */
struct history_client {
	const void *client;
	struct store_history *asks;
	struct history_client *next, *prev;
};

/* A user with at least one connection. */
struct history_user {
	uint32_t uid;
	struct history_client *clients;
	struct history_user *next, *prev;
};

static struct history_user *find_user(struct history_queue *q, uint32_t uid)
{
	struct history_user *user;

	DL_FOREACH(q->users, user) {
		if (user->uid == uid)
			return user;
	}
	user = calloc(1, sizeof(*user));
	if (user == NULL)
		return NULL;
	user->uid = uid;
	DL_APPEND(q->users, user);
	return user;
}

static struct history_client *find_client(struct history_user *user,
    const void *client)
{
	struct history_client *c;

	DL_FOREACH(user->clients, c) {
		if (c->client == client)
			return c;
	}
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		return NULL;
	c->client = client;
	DL_APPEND(user->clients, c);
	return c;
}

static void free_if_empty(struct history_queue *q, struct history_user *user)
{
	if (user->clients != NULL)
		return;
	DL_DELETE(q->users, user);
	free(user);
}

int history_queue_put(struct history_queue *q, struct store_history *ask)
{
	struct history_user *user = find_user(q, ask->peer.uid);
	struct history_client *c;

	if (user == NULL)
		return -ENOMEM;
	c = find_client(user, ask->client);
	if (c == NULL) {
		free_if_empty(q, user);
		return -ENOMEM;
	}
	DL_APPEND(c->asks, ask);
	return 0;
}

static void take_out(struct history_queue *q, struct history_user *user,
    struct history_client *c, struct store_history *ask)
{
	DL_DELETE(c->asks, ask);
	if (c->asks != NULL)
		return;
	DL_DELETE(user->clients, c);
	free(c);
	free_if_empty(q, user);
}

struct store_history *history_queue_take(struct history_queue *q)
{
	struct history_user *user = q->users;
	struct history_client *c;
	struct store_history *ask;

	if (user == NULL)
		return NULL;
	DL_DELETE(q->users, user);
	DL_APPEND(q->users, user);
	c = user->clients;
	DL_DELETE(user->clients, c);
	DL_APPEND(user->clients, c);
	ask = c->asks;
	take_out(q, user, c, ask);
	return ask;
}

void history_queue_take_dropped(struct history_queue *q,
    struct store_history **list)
{
	struct history_user *user, *next_user;
	struct history_client *c, *next_c;
	struct store_history *ask, *next;

	DL_FOREACH_SAFE(q->users, user, next_user) {
		DL_FOREACH_SAFE(user->clients, c, next_c) {
			DL_FOREACH_SAFE(c->asks, ask, next) {
				if (!atomic_load(&ask->is_dropped))
					continue;
				take_out(q, user, c, ask);
				DL_APPEND(*list, ask);
			}
		}
	}
}

bool history_queue_is_empty(const struct history_queue *q)
{
	return q->users == NULL;
}
