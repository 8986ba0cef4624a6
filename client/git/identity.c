#include "client/git/identity.h"

#include <ctype.h>
#include <netdb.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/git/gitdate.h"

static const char *given(const char *s)
{
	return s && *s ? s : NULL;
}

static const char *user_name(const struct passwd *pw)
{
	return pw ? pw->pw_name : "unknown";
}

/* Adds the real name from the password file, where "&" stands for the
 * account. */
static void add_gecos_name(struct text *t, const struct passwd *pw)
{
	const char *s = pw && pw->pw_gecos ? pw->pw_gecos : "";
	size_t at;

	for (; *s && *s != ','; s++) {
		if (*s != '&') {
			text_addc(t, *s);
			continue;
		}
		at = t->len;
		text_adds(t, pw->pw_name);
		if (t->len > at)
			t->data[at] = (char)toupper((unsigned char)t->data[at]);
	}
}

static void add_host(struct text *t)
{
	struct addrinfo hints = { .ai_flags = AI_CANONNAME }, *ai = NULL;
	char host[256] = "";

	if (gethostname(host, sizeof(host) - 1) < 0)
		host[0] = '\0';
	if (strchr(host, '.')) {
		text_adds(t, host);
	} else if (*host && !getaddrinfo(host, NULL, &hints, &ai) &&
	    ai->ai_canonname && strchr(ai->ai_canonname, '.')) {
		text_adds(t, ai->ai_canonname);
	} else {
		text_addf(t, "%s.(none)", *host ? host : "(none)");
	}
	if (ai)
		freeaddrinfo(ai);
}

static void add_account_mail(struct text *t, const struct passwd *pw)
{
	struct text mailname = { 0 };

	text_addf(t, "%s@", user_name(pw));
	if (text_read_file(&mailname, "/etc/mailname", SMALL_FILE_BYTES) == 0 &&
	    strcspn(mailname.data, "\n"))
		text_add(t, mailname.data, strcspn(mailname.data, "\n"));
	else
		add_host(t);
	text_done(&mailname);
}

/* git takes a setting of any person, even an empty one, as a word that this
 * machine shall not be asked, so the identity may be empty (ident.c of git). */
static bool is_configured(const struct gitconfig *config,
    const char *const *keys)
{
	while (*keys && !gitconfig_get(config, *keys))
		keys++;
	return *keys != NULL;
}

static void find_name(struct text *t, const struct gitconfig *config)
{
	static const char *const keys[] = { "committer.name", "user.name",
		"author.name", NULL };
	const char *name = getenv("GIT_COMMITTER_NAME");
	struct passwd *pw;

	if (!name)
		name = given(gitconfig_get(config, "committer.name"));
	if (!name)
		name = given(gitconfig_get(config, "user.name"));
	if (name)
		text_adds(t, name);
	if (t->len)
		return;
	/* The account may be in a directory of the network, so the look-up
	 * comes last. */
	pw = getpwuid(getuid());
	if (!name && !is_configured(config, keys))
		add_gecos_name(t, pw);
	if (!t->len)
		text_adds(t, user_name(pw));
}

static void find_mail(struct text *t, const struct gitconfig *config)
{
	static const char *const keys[] = { "committer.email", "user.email",
		"author.email", NULL };
	const char *mail = getenv("GIT_COMMITTER_EMAIL");

	if (!mail)
		mail = given(gitconfig_get(config, "committer.email"));
	if (!mail)
		mail = given(gitconfig_get(config, "user.email"));
	if (!mail && is_configured(config, keys))
		mail = "";
	if (!mail)
		mail = given(getenv("EMAIL"));
	if (mail)
		text_adds(t, mail);
	else
		add_account_mail(t, getpwuid(getuid()));
}

/* Characters that git strips from both ends. */
static bool is_crud(char c)
{
	return (unsigned char)c <= ' ' || strchr(",:;<>\"\\'", c) != NULL;
}

static void add_without_crud(struct text *t, const struct text *from)
{
	size_t begin = 0, end = from->len, i;

	while (begin < end && is_crud(from->data[begin]))
		begin++;
	while (end > begin && is_crud(from->data[end - 1]))
		end--;
	for (i = begin; i < end; i++)
		if (!strchr("\n<>", from->data[i]))
			text_addc(t, from->data[i]);
}

char *identity_committer(const struct gitconfig *config)
{
	const char *when = given(getenv("GIT_COMMITTER_DATE"));
	struct text name = { 0 }, mail = { 0 }, line = { 0 };
	struct gitdate date;
	int zone;

	if (!when)
		gitdate_now(&date);
	else if (!gitdate_parse(when, &date))
		return NULL;
	find_name(&name, config);
	find_mail(&mail, config);
	add_without_crud(&line, &name);
	text_adds(&line, " <");
	add_without_crud(&line, &mail);
	zone = abs(date.zone);
	text_addf(&line, "> %lld %c%02d%02d", (long long)date.secs,
	    date.zone < 0 ? '-' : '+', zone / 60, zone % 60);
	text_done(&name);
	text_done(&mail);
	return line.data;
}
