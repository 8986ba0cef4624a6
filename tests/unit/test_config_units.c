/*
 * Proves that a duration or a size of the configuration means the same in every
 * unit, is shown in one form, and is refused if it does not fit.
 */
#include <stdio.h>

#include "daemon/config.h"
#include "proto/lib/config_units.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

static const struct {
	const char *written, *shown;
	uint64_t value;
} units[] = {
	{ "slowLog=0", "0", 0 },
	{ "slowLog=10ms", "10ms", 10 },
	{ "slowLog=5000ms", "5s", 5000 },
	{ "slowLog=90s", "90s", 90000 },
	{ "slowLog=120 s", "2min", 120000 },
	{ "slowLog=60min", "1h", 3600000 },
	{ "[journal]\nretention=1day", "1 day", 86400000 },
	{ "[journal]\nretention=48h", "2 days", 172800000 },
	{ "[journal]\nretention=7 days", "1 week", 604800000 },
	{ "[journal]\nretention=2  weeks", "2 weeks", 1209600000 },
	{ "[journal]\nretention-size=10MiB", "10MiB", 10 << 20 },
	{ "[journal]\nretention-size=2048 MiB", "2GiB", 2ULL << 30 },
};

CASE(.setup = tmp_setup, .teardown = tmp_teardown);

TEST(units_are_read_and_shown, .times = sizeof(units) / sizeof(units[0]))
{
	char text[600], *why;
	struct config cfg;

	config_init(&cfg);
	snprintf(text, sizeof(text), "[daemon]\n%s\n", units[_i].written);
	tmp_put("config", text);
	snprintf(text, sizeof(text), "%s/config", tmp_root);
	ck_assert_int_eq(config_read_file(&cfg, &sys_kernel, text, &why), 0);
	ck_assert_str_eq(cfg.values[0].text, units[_i].shown);
	ck_assert_uint_eq(cfg.slow_ms + cfg.retention_ms + cfg.retention_bytes,
	    units[_i].value);
	config_done(&cfg);
}

static const char *const refused[] = { "", "s", "-1s", "1", "1 S", "1sec",
	"1s ", "1.5s", "1MiB", "18446744073709551616ms",
	"18446744073709551615 weeks" };

TEST(what_does_not_fit_is_refused,
    .times = sizeof(refused) / sizeof(refused[0]))
{
	uint64_t value = 7;

	ck_assert(!config_units_parse(CONFIG_UNITS_TIME, refused[_i], &value));
	ck_assert_uint_eq(value, 7);
}
