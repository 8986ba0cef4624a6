#include "daemon/server/reload_thread.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "daemon/base/log.h"

struct reload_run {
	const struct reload_thread *reload;
	pthread_t thread;
	atomic_bool over;
	void *new; /* written by the thread before OVER */
};

static void *reload_thread_main(void *arg)
{
	struct reload_run *run = arg;
	const struct reload_thread *reload = run->reload;

	run->new = reload->calls.read(reload->calls.arg);
	atomic_store(&run->over, true);
	reload->wake(reload->wake_arg);
	return NULL;
}

/* With all signals blocked, because the loop handles them. */
static int reload_create_thread(struct reload_run *run)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&run->thread, NULL, reload_thread_main, run);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}

void reload_thread_init(struct reload_thread *reload,
    const struct reload_calls *calls, struct service_link *service,
    void (*wake)(void *arg), void *wake_arg)
{
	*reload = (struct reload_thread){ .calls = *calls,
		.service = service,
		.wake = wake,
		.wake_arg = wake_arg };
}

static void start_run(struct reload_thread *reload)
{
	struct reload_run *run = calloc(1, sizeof(*run));

	reload->again = false;
	service_reloading(reload->service);
	if (run != NULL) {
		run->reload = reload;
		if (reload_create_thread(run) == 0) {
			reload->run = run;
			return;
		}
	}
	free(run);
	log_event(LOG_LEVEL_ERROR, "reload-failed",
	    LOG_STR("error", "out of memory or threads"),
	    LOG_TEXT("all stays as it is"));
	service_reloaded(reload->service);
}

void reload_thread_ask(struct reload_thread *reload)
{
	if (reload->run != NULL)
		reload->again = true;
	else
		start_run(reload);
}

/* Returns the configuration that the thread has read. */
static void *end_run(struct reload_thread *reload)
{
	void *new;

	pthread_join(reload->run->thread, NULL);
	new = reload->run->new;
	free(reload->run);
	reload->run = NULL;
	return new;
}

void reload_thread_look(struct reload_thread *reload)
{
	void *new;

	if (reload->run == NULL || !atomic_load(&reload->run->over))
		return;
	new = end_run(reload);
	if (new != NULL)
		reload->calls.apply(reload->calls.arg, new);
	service_reloaded(reload->service);
	if (reload->again)
		start_run(reload);
}

void reload_thread_give_up(struct reload_thread *reload)
{
	void *new = reload->run != NULL ? end_run(reload) : NULL;

	if (new != NULL)
		reload->calls.forget(new);
}
