#include "daemon/live_config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/base/time.h"
#include "daemon/config_keys.h"
#include "daemon/options.h"

#define LOOK_NS (1000 * NS_PER_MS)

/* ---- applying ---- */

/* The number of connections that the limits of CFG and of open files permit.
 * Connections get at most half of the descriptors, so that clients cannot
 * exhaust the descriptors for refs. */
static size_t connections_max(const struct config *cfg, rlim_t descriptors)
{
	if (descriptors == 0 || cfg->connections_max <= descriptors / 2)
		return cfg->connections_max;
	log_event(LOG_LEVEL_WARNING, "files-limited",
	    LOG_NUM("open_files", descriptors),
	    LOG_NUM("connections", descriptors / 2),
	    LOG_TEXT("the limit of open files leaves room for no more "
		     "connections: raise it (LimitNOFILE=)"));
	return descriptors / 2;
}

static enum refd_durability weakest(const struct config *cfg)
{
	enum refd_durability found = cfg->durability;
	size_t i;

	for (i = 0; i < cfg->nr_sections; i++)
		if (cfg->sections[i].durability < found)
			found = cfg->sections[i].durability;
	return found;
}

void live_config_settings(const struct config *cfg, rlim_t descriptors,
    struct server_settings *settings)
{
	*settings = (struct server_settings){
		.durability = cfg->durability,
		.weakest = weakest(cfg),
		.connections_max = connections_max(cfg, descriptors),
		.peers = {
			.uids = cfg->any_users.ids,
			.nr_uids = cfg->any_users.nr,
			.gids = cfg->any_groups.ids,
			.nr_gids = cfg->any_groups.nr,
		},
		.scheduler = {
			.batch_refs = cfg->batch_refs,
			.session_ns =
			    (int64_t)cfg->session_timeout_ms * NS_PER_MS,
			.slow_ns = (int64_t)cfg->slow_ms * NS_PER_MS,
			.of_user = cfg->of_user,
		},
		.max_lag_ns = (int64_t)cfg->max_lag_ms * NS_PER_MS,
	};
}

/* The rules of CFG, to be freed; NULL: no memory. Every root has a rule too,
 * because otherwise a user of one section could write outside of this
 * section. */
static struct rights_rule *make_rules(const struct config *cfg, size_t *nr_out)
{
	struct rights_rule *rules =
	    calloc(cfg->nr_sections + cfg->nr_roots + 1, sizeof(*rules));
	const struct config_root *section;
	size_t i, nr = 0;

	if (rules == NULL)
		return NULL;
	/* If two rules have the same directory, the first rule applies, so
	 * sections come before roots. */
	for (i = 0; i < cfg->nr_sections; i++) {
		section = &cfg->sections[i];
		rules[nr++] =
		    (struct rights_rule){ section->path, section->durability,
			    { section->users.ids, section->groups.ids,
				section->users.nr, section->groups.nr },
			    cfg->of_repository };
	}
	for (i = 0; i < cfg->nr_roots; i++)
		rules[nr++] =
		    (struct rights_rule){ cfg->roots[i], cfg->durability,
			    { cfg->users.ids, cfg->groups.ids, cfg->users.nr,
				cfg->groups.nr },
			    cfg->of_repository };
	*nr_out = nr;
	return rules;
}

int live_config_store(const struct config *cfg, struct store *store)
{
	size_t nr = 0;
	struct rights_rule *rules = make_rules(cfg, &nr);
	const struct store_settings settings = {
		.rights = {
			.general = cfg->durability,
			.rules = rules,
			.nr_rules = nr,
			.reserved = (const char *const *)cfg->reserved,
			.nr_reserved = cfg->nr_reserved,
		},
		.checkpoint_interval_ns =
		    (int64_t)cfg->checkpoint_interval_ms * NS_PER_MS,
		.durability_interval_ns =
		    (int64_t)cfg->durability_interval_ms * NS_PER_MS,
		.pack_refs = cfg->pack_refs,
	};
	int r = rules != NULL ? store_set(store, &settings) : -ENOMEM;

	free(rules);
	return r;
}

/* ---- reload ---- */

void live_config_forget(void *read)
{
	struct config *cfg = read;

	if (cfg != NULL)
		config_done(cfg);
	free(cfg);
}

void *live_config_read(void *arg)
{
	struct live_config *live = arg;
	struct config *cfg = calloc(1, sizeof(*cfg));
	char *why = NULL;

	if (cfg != NULL &&
	    options_load(&options_daemon, cfg, &sys_kernel, live->argc,
		live->argv, NULL, &why) == OPTIONS_RUN)
		return cfg;
	log_event(LOG_LEVEL_ERROR, "reload-failed",
	    LOG_STR("error", why != NULL ? why : "out of memory"),
	    LOG_TEXT("all stays as it is; a new user or group that is not "
		     "found may need a restart, or its number, because a "
		     "running daemon asks no directory service, and root's "
		     "daemon does not read new names"));
	free(why);
	live_config_forget(cfg);
	return NULL;
}

/* The changes that need a restart, or the changes that the reload applied. */
struct change_log {
	bool of_restart;
	size_t nr;
};

static void log_change(void *arg, const struct config_key *key,
    const char *root, const char *was, const char *is)
{
	struct change_log *log = arg;

	if (key->reloads == log->of_restart)
		return;
	log->nr++;
	if (root == NULL)
		root = "";
	if (log->of_restart)
		log_event(LOG_LEVEL_WARNING, "setting-waits",
		    LOG_WORD("key", key->name), LOG_STR("root", root),
		    LOG_STR("is", was), LOG_STR("will_be", is),
		    LOG_TEXT("when the daemon is restarted"));
	else
		log_event(LOG_LEVEL_INFO, "setting-changed",
		    LOG_WORD("key", key->name), LOG_STR("root", root),
		    LOG_STR("was", was), LOG_STR("is", is));
}

void live_config_apply(void *arg, void *read)
{
	struct change_log applied = { .of_restart = false };
	struct change_log kept = { .of_restart = true };
	struct config *cfg = read;
	struct server_settings settings;
	struct live_config *live = arg;

	if (live_config_store(cfg, live->store) < 0) {
		log_event(LOG_LEVEL_ERROR, "reload-failed",
		    LOG_STR("error", "out of memory"),
		    LOG_TEXT("all stays as it is"));
		live_config_forget(cfg);
		return;
	}
	live_config_settings(cfg, live->descriptors, &settings);
	server_set(live->server, &settings);
	config_compare(live->now != NULL ? live->now : live->started, cfg,
	    log_change, &applied);
	config_compare(live->started, cfg, log_change, &kept);
	log_event(LOG_LEVEL_INFO, "reloaded",
	    LOG_STR("file", cfg->file != NULL ? cfg->file : ""),
	    LOG_NUM("changes", applied.nr + kept.nr),
	    LOG_NUM("waiting", kept.nr));
	live_config_done(live);
	live->now = cfg;
}

/* ---- other nodes that wait for a restart ---- */

/* A file that cannot be read now, or is as before, tells nothing new. */
static void look_for_group(struct live_config *live)
{
	const char *file = live->started->file;
	struct sys_stat st = { 0 };
	int r;

	if (sys_stat_trusted(&sys_kernel, file, &st) < 0 ||
	    (st.ino == live->looked.ino &&
		st.ctime_ns == live->looked.ctime_ns))
		return;
	r = config_file_has(&sys_kernel, file, "group.node");
	if (r < 0)
		return;
	live->looked = st;
	atomic_store(&live->is_group_unused, r > 0);
}

char *live_config_refusal(void *arg)
{
	struct live_config *live = arg;
	int64_t now_ns = SYS(&sys_kernel, now_mono);

	if (live->started->node != NULL || live->started->file == NULL)
		return NULL;
	if (now_ns - atomic_load(&live->looked_ns) > LOOK_NS &&
	    mutex_trylock(&live->looking) == 0) {
		look_for_group(live);
		atomic_store(&live->looked_ns, now_ns);
		mutex_unlock(&live->looking);
	}
	if (!atomic_load(&live->is_group_unused))
		return NULL;
	return strdup("the configuration has the section [group], and this "
		      "daemon was started without it, so other nodes would "
		      "not get the update: systemctl restart refd.service");
}

void live_config_done(struct live_config *live)
{
	live_config_forget(live->now);
	live->now = NULL;
}
