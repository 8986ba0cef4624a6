#include "client/log/who.h"

#include <pwd.h>
#include <stdlib.h>
#include <string.h>

static const char *identity(const struct refd_record *rec, const char *name)
{
	size_t i;

	for (i = 0; i < rec->nr_identities; i++)
		if (!strcmp(rec->identities[i].name, name))
			return rec->identities[i].value;
	return NULL;
}

/* Neighbours mostly have the same account, and a look-up may ask a directory
 * service. */
static const char *account_name(uint32_t uid)
{
	static struct text name;
	static uint32_t known;
	const struct passwd *pw;

	if (name.len && known == uid)
		return name.data;
	known = uid;
	text_clear(&name);
	pw = getpwuid(uid);
	if (pw)
		text_add_visible(&name, pw->pw_name);
	else
		text_addf(&name, "uid=%u", uid);
	return name.data;
}

/* SSH_CONNECTION begins with the address of the client. */
static void add_address(struct text *t, const char *connection)
{
	char *address = xstrdup(connection);

	address[strcspn(address, " ")] = '\0';
	text_adds(t, " from ");
	text_add_visible(t, address);
	free(address);
}

void who_add(struct text *t, const struct refd_record *rec)
{
	const char *account = account_name(rec->uid),
		   *person = refd_identity_person(rec->identities,
		       rec->nr_identities);
	const char *connection = identity(rec, "SSH_CONNECTION");

	text_adds(t, account);
	if (person && strcmp(person, account) != 0) {
		text_adds(t, " (");
		text_add_visible(t, person);
		text_addc(t, ')');
	} else if (!person && connection) {
		add_address(t, connection);
	}
}
