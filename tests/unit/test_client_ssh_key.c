/*
 * Proves the fingerprint of the key that sshd names: it is the one of
 * `ssh-keygen -l`, of the first key, and nothing that has no form of a key, or
 * is no regular file of a few lines, gives one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/request/ssh_key.h"
#include "proto/lib/cli.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

#define ED                                                                     \
	"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEHO0Ba7DSvVkHs27fucgVqeh/rzF/"   \
	"HJ7LCoj+iV98Mg"
#define RSA                                                                    \
	"ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQDCXvHJ/+cDJM9nnuXjBFOL8P+3N/"   \
	"UEExkXKaPIfEPVXwH/YW+knnZAGhdLddJN3E4yGcnAnTaB5dvaafNDPPQdMrV3AvUy/"  \
	"U72N9oZweg9lxzCX4WMctMkNTaHkKVEoSuiAQp2fIm8SXANXiRtV9oCW/UP9Qwbv1VJT" \
	"4N/Wg257w=="
#define CERT                                                                   \
	"x-cert-v01 AAAACngtY2VydC12MDEAAAAgQc7QFrsNK9WQezbt+5yBWp6H+vMX8cnss" \
	"KiP6JX3wyA="
#define ED_NAME  "SHA256:w5JYTkhPBj8bkg07H37N0dAg3rR+7atPvlgoEAyUBfw"
#define RSA_NAME "SHA256:H866lY6xVudwVMjQlmy2Ziv0+GEafG839RXkvX4SRCM"

static char path[600];

static void setup(void)
{
	tmp_setup();
	snprintf(path, sizeof(path), "%s/auth", tmp_root);
}

static const char *named(const char *text, size_t len)
{
	static char name[SSH_KEY_NAME_MAX + 1];

	tmp_put_bytes("auth", text, len);
	return ssh_key_name(path, name) ? name : "";
}

static void is(const char *text, const char *name)
{
	ck_assert_str_eq(named(text, strlen(text)), name);
}

CASE(.setup = setup, .teardown = tmp_teardown);

TEST(a_key_has_the_name_of_ssh_keygen)
{
	is("publickey " ED "\n", ED_NAME);
	is("publickey " RSA "\n", RSA_NAME);
	is("publickey " ED, ED_NAME);
	is("password\npublickey " RSA "\npublickey " ED "\n", RSA_NAME);
	is("publickey " ED " a comment\n", ED_NAME);
}

TEST(what_is_no_key_has_no_name)
{
	static const char nul[] = "publickey ssh-ed25519 AAAA\0C3NzaC1lZDI1";

	is("", "");
	is("password\n", "");
	is(ED "\n", "");
	is("publickey", "");
	is("publickey \n", "");
	is("publickey ssh-ed25519", "");
	is("publickey ssh-ed25519 \n", "");
	is("publickey ssh-ed25519 =====\n", "");
	is("publickey ssh-ed25519 AAAA\n", "");
	is("publickey ssh-ed25519 AAAAC3NzaC1lZDI1NTE5\n", "");
	is("publickey ssh-ed25518 AAAAC3NzaC1lZDI1NTE5AAAAIEHO\n", "");
	is("publickey ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA!EHO\n", "");
	is("publickey ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA\033[31m\n", "");
	is("publickey " CERT "\n", "");
	ck_assert_str_eq(named(nul, sizeof(nul)), "");
	/* The next line counts. */
	is("publickey " CERT "\npublickey " ED "\n", ED_NAME);
}

TEST(a_large_file_is_not_read)
{
	char *text = xasprintf("publickey %s\n%*s", ED, SMALL_FILE_BYTES, "");

	is(text, "");
	text[SMALL_FILE_BYTES] = '\0';
	is(text, ED_NAME);
	free(text);
}

TEST(only_a_regular_file_is_read)
{
	char name[SSH_KEY_NAME_MAX + 1];

	ck_assert(!ssh_key_name(path, name));
	ck_assert(!ssh_key_name("", name));
	ck_assert(!ssh_key_name(tmp_root, name));
	ck_assert(!ssh_key_name("/dev/zero", name));
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	ck_assert(!ssh_key_name(path, name));
}
