#include "client/deliver/streams.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

static void make_ready(struct stream *s)
{
	s->state = STREAM_READY;
	DL_APPEND(s->to->ready, s);
}

struct stream *streams_of(struct receiver *to, const char *repo)
{
	struct stream *s;

	HASH_FIND_STR(to->streams, repo, s);
	if (s)
		return s;
	s = xcalloc(1, sizeof(*s));
	s->to = to;
	s->repo = xstrdup(repo);
	HASH_ADD_KEYPTR(hh, to->streams, s->repo, strlen(s->repo), s);
	return s;
}

void streams_add(struct stream *s, uint64_t nr, uint64_t bytes)
{
	s->nr += nr;
	s->bytes += bytes;
	s->to->bytes += bytes;
	if (s->state == STREAM_IDLE && s->nr > 0)
		make_ready(s);
}

void streams_set(struct stream *s, uint64_t nr, uint64_t bytes)
{
	s->to->bytes -= s->bytes;
	s->nr = s->bytes = 0;
	streams_add(s, nr, bytes);
}

struct stream *streams_take(struct receiver *to)
{
	struct stream *s = to->ready;

	if (!s)
		return NULL;
	DL_DELETE(to->ready, s);
	s->state = STREAM_BUSY;
	return s;
}

static void stream_free(struct stream *s)
{
	HASH_DEL(s->to->streams, s);
	free(s->repo);
	free(s);
}

void streams_done(struct stream *s, uint64_t bytes)
{
	assert(s->state == STREAM_BUSY);
	assert(s->nr > 0 && s->bytes >= bytes);
	s->nr--;
	s->bytes -= bytes;
	s->to->bytes -= bytes;
	if (s->nr > 0)
		make_ready(s);
	else
		stream_free(s);
}

void streams_pause(struct stream *s, uint64_t due_ms)
{
	assert(s->state == STREAM_BUSY);
	s->state = STREAM_PAUSED;
	s->due_ms = due_ms;
	DL_APPEND(s->to->paused, s);
}

uint64_t streams_wake(struct receiver *to, uint64_t now_ms)
{
	uint64_t first = UINT64_MAX;
	struct stream *s, *next;

	DL_FOREACH_SAFE(to->paused, s, next) {
		if (s->due_ms > now_ms) {
			if (s->due_ms < first)
				first = s->due_ms;
			continue;
		}
		DL_DELETE(to->paused, s);
		make_ready(s);
	}
	return first;
}

void streams_free(struct receiver *to)
{
	struct stream *s, *next;

	HASH_ITER(hh, to->streams, s, next)
		stream_free(s);
	to->ready = to->paused = NULL;
}
