#include "tests/lib/feed.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum refd_decoded feed(struct refd_request_decoder *dec, const char *s,
    struct refd_request *req, enum refd_status *status, const char **why)
{
	struct pkt pkt = { PKT_DATA, NULL, strlen(s) };
	enum refd_decoded r;
	char *copy = malloc(pkt.len + 1);
	size_t i;

	ck_assert_ptr_nonnull(copy);
	for (i = 0; i < pkt.len; i++)
		copy[i] = s[i] == '|' ? '\0' : s[i];
	pkt.data = copy;
	if (strcmp(s, DELIM) == 0)
		pkt.kind = PKT_DELIM;
	else if (s[0] == '\0')
		pkt.kind = PKT_FLUSH;
	r = refd_request_decode(dec, &pkt, req, status, why);
	free(copy);
	return r;
}

enum refd_decoded feed_all(struct refd_request_decoder *dec,
    const char *const *packets, struct refd_request *req,
    enum refd_status *status, const char **why)
{
	for (; *packets != NULL; packets++)
		ck_assert_int_eq(feed(dec, *packets, req, status, why),
		    REFD_DECODE_MORE);
	return feed(dec, "", req, status, why);
}

void check_in_step(struct refd_request_decoder *dec)
{
	static const char *const packets[] = { OPEN, "update refs/a|" OID "|",
		NULL };
	enum refd_status status;
	struct refd_request req;
	const char *why;

	ck_assert_int_eq(feed_all(dec, packets, &req, &status, &why),
	    REFD_DECODE_DONE);
	ck_assert_uint_eq(req.request_id, 7);
	ck_assert_uint_eq(req.nr_updates, 1);
	ck_assert_str_eq(req.updates[0].name, "refs/a");
	refd_request_done(&req);
}
