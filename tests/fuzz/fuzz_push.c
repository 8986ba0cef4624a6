/*
 * Any bytes as the messages of receive-pack to the hook. The messages are
 * accepted, with every command in its own packet, or refused. The report has a
 * result for every name that the protocol can express, in one packet that ends
 * with the name or the reason.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/push/push.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool ok)
{
	if (!ok)
		abort();
}

static bool says(const struct pkt *pkt, const char *word, const char *name)
{
	size_t w = strlen(word), n = strlen(name);

	return pkt->len >= w + n && memcmp(pkt->data, word, w) == 0 &&
	    memcmp(pkt->data + w, name, n) == 0;
}

static void check_report(const struct push *push)
{
	struct pkt_buf out = { 0 };
	const char *at;
	struct pkt pkt;
	size_t i, left;
	long taken;

	push_put_report(push, &out);
	expect(!pkt_buf_failed(&out));
	at = out.data;
	left = out.len;
	for (i = 0; i < push->nr; i++) {
		if (push->commands[i].unreportable)
			continue;
		taken = pkt_parse(at, left, &pkt);
		expect(taken > 0 && pkt.kind == PKT_DATA);
		expect(says(&pkt, i % 2 != 0 ? "ok " : "ng ",
		    push->commands[i].name));
		expect(memchr(pkt.data, '\n', pkt.len - 1) == NULL);
		at += taken;
		left -= (size_t)taken;
	}
	expect(
	    pkt_parse(at, left, &pkt) == (long)left && pkt.kind == PKT_FLUSH);
	pkt_buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct push_reader in = { 0 };
	struct push push = { 0 };
	const char *why = NULL;
	size_t i;

	in.fd = memfd_create("push", MFD_CLOEXEC);
	expect(in.fd >= 0 && write(in.fd, data, size) == (ssize_t)size);
	expect(lseek(in.fd, 0, SEEK_SET) == 0);
	if (push_read_version(&in, &push, &why) &&
	    push_read_commands(&in, &push, &why) &&
	    (!push.has_options || push_read_options(&in, &push, &why))) {
		push_set_namespace(&push, size % 2 != 0 ? "a/b" : NULL);
		for (i = 0; i < push.nr; i += 2)
			push.commands[i].ng = strdup("for a reason");
		check_report(&push);
	} else {
		expect(why != NULL);
	}
	close(in.fd);
	push_reader_done(&in);
	push_done(&push);
	return 0;
}
