#include "daemon/service/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int manager = -1; /* a connected socket */

void notify_connect(void)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	socklen_t size;

	if (path == NULL || strlen(path) >= sizeof(addr.sun_path))
		return;
	strcpy(addr.sun_path, path);
	size =
	    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
	if (path[0] == '@')
		addr.sun_path[0] = '\0'; /* the abstract namespace */
	manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (manager >= 0 &&
	    connect(manager, (const struct sockaddr *)&addr, size) < 0)
		notify_disconnect();
}

void notify_disconnect(void)
{
	if (manager >= 0)
		close(manager);
	manager = -1;
}

void notify_manager(const char *state)
{
	if (manager >= 0)
		send(manager, state, strlen(state),
		    MSG_NOSIGNAL | MSG_DONTWAIT);
}
