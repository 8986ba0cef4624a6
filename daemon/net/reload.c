#include "daemon/net/reload.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "daemon/base/log.h"
#include "daemon/net/service.h"

struct reload {
	struct net *net;
	pthread_t thread;
	atomic_bool over;
	void *read;
};

static void *reload_main(void *arg)
{
	struct reload *r = arg;

	r->read = r->net->cfg.read(r->net->cfg.reload_arg);
	atomic_store(&r->over, true);
	net_wake(r->net);
	return NULL;
}

static int start_thread(struct reload *r)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&r->thread, NULL, reload_main, r);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}

static void begin(struct net *net)
{
	struct reload *r = calloc(1, sizeof(*r));

	net->reload_again = false;
	service_reloading(&net->service);
	if (r != NULL) {
		r->net = net;
		if (start_thread(r) == 0) {
			net->reload = r;
			return;
		}
	}
	free(r);
	log_event(LOG_LEVEL_ERROR, "reload-failed",
	    LOG_STR("error", "out of memory or threads"),
	    LOG_TEXT("all stays as it is"));
	service_reloaded(&net->service);
}

void reload_asked(evutil_socket_t number, short what, void *arg)
{
	struct net *net = arg;

	(void)number;
	(void)what;
	if (net->state != NET_STATE_RECOVERING &&
	    net->state != NET_STATE_SERVING)
		log_event(LOG_LEVEL_INFO, "reload-refused",
		    LOG_TEXT("the daemon is stopping"));
	else if (net->reload != NULL)
		net->reload_again = true;
	else
		begin(net);
}

static void *join(struct net *net)
{
	void *read;

	pthread_join(net->reload->thread, NULL);
	read = net->reload->read;
	free(net->reload);
	net->reload = NULL;
	return read;
}

void reload_look(struct net *net)
{
	void *read;

	if (net->reload == NULL || !atomic_load(&net->reload->over))
		return;
	read = join(net);
	if (read != NULL)
		net->cfg.apply(net->cfg.reload_arg, read);
	service_reloaded(&net->service);
	if (net->reload_again)
		begin(net);
}

void reload_give_up(struct net *net)
{
	void *read = net->reload != NULL ? join(net) : NULL;

	if (read != NULL)
		net->cfg.forget(read);
}
