#include "daemon/service/start_failed.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/limits.h"
#include "proto/message.h"

/* Limit for clients, because some connect again and again. */
#define TOLD_MAX 4096

static bool may_read_reason(int client)
{
	struct ucred cred;
	socklen_t size = sizeof(cred);

	return getsockopt(client, SOL_SOCKET, SO_PEERCRED, &cred, &size) == 0 &&
	    (cred.uid == 0 || cred.uid == geteuid());
}

/* The buffer of a new socket has room for the whole answer, so nothing of it is
 * cut off. */
static void tell_client(int client, const char *why)
{
	struct refd_hello hello = {
		.version = REFD_PROTOCOL_VERSION,
		.state = REFD_DRAINING,
		.pid = (uint64_t)getpid(),
		.max_updates = REFD_UPDATES_MAX,
		.max_bytes = REFD_TXN_BYTES_MAX,
	};
	struct refd_answer ans = { .kind = REFD_ANSWER_REFUSED,
		.status = REFD_IO,
		.text = may_read_reason(client) ?
		    why :
		    "the daemon's log has the reason" };
	struct pkt_buf out = { 0 };

	snprintf(hello.software, sizeof(hello.software), "refd/%s",
	    REFD_VERSION);
	refd_hello_encode(&hello, &out);
	refd_answer_encode(&ans, &out);
	if (!pkt_buf_failed(&out))
		send(client, out.data, out.len, MSG_NOSIGNAL | MSG_DONTWAIT);
	pkt_buf_done(&out);
}

void start_failed_tell(int fd, const char *why)
{
	int client, told;

	for (told = 0; fd >= 0 && told < TOLD_MAX; told++) {
		client = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (client >= 0) {
			tell_client(client, why);
			close(client);
		} else if (errno != EINTR && errno != ECONNABORTED) {
			return;
		}
	}
}
