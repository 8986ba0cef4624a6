#!/bin/bash
# Proves that the files of `make install` work: the programs, the library under
# its versioned names only, the headers, pkg-config, the manual pages, and
# completion in bash and zsh. `make uninstall` removes all of them.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

to=$T/root
# Uses the built files: make does not compare their flags.
mk() {
	make -s -C "$ROOT" -o all BUILD="$BUILD" DESTDIR="$to" PREFIX=/usr "$@" \
		>"$T/make.log" 2>&1
}
mkdir "$to"
if ! mk install; then
	not_ok 'make install' "$(tail -n 3 "$T/make.log")"
	finish
fi
ok 'make install'
PATH=$to/usr/bin:$PATH

# ---- the library ----

cat >"$T/use.c" <<'C'
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "client/refd.h"

int main(int argc, char **argv)
{
	struct refd_update update = { .action = REFD_CREATE,
		.name = "refs/heads/topic" };
	struct refd_request req = { .verb = REFD_VERB_TRANSACTION,
		.git_dir = argv[2], .umask = 022,
		.updates = &update, .nr_updates = 1 };
	struct refd *r = refd_new(argv[1]);
	struct refd_answer ans;
	struct stat st;

	if (argc != 4 || r == NULL || stat(req.git_dir, &st) < 0 ||
	    refd_oid_parse(argv[3], &update.new_oid) < 0)
		return 2;
	req.common_dev = st.st_dev;
	req.common_ino = st.st_ino;
	if (refd_connect(r, 1000) < 0 || refd_call(r, &req, 30000, &ans) < 0) {
		puts(refd_error(r));
		return 1;
	}
	puts(refd_status_name(ans.results[0].status));
	refd_answer_done(&ans);
	refd_free(r);
	return 0;
}
C
export PKG_CONFIG_PATH=$to/usr/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$to
# shellcheck disable=SC2046
check 'a program is made with the installed library' \
	cc -std=c11 -D_GNU_SOURCE -o "$T/use" "$T/use.c" \
	$(pkg-config --cflags --libs librefd)
start_daemon || finish
new_repo repo.git bare
one=$(new_commit repo.git one)
is 'and makes a branch' ok "$(LD_LIBRARY_PATH=$to/usr/lib \
	"$T/use" "$SOCKET" "$T/repo.git" "$one")"
is 'which is there' "$one" "$(ref_of repo.git refs/heads/topic)"
is 'its soname' librefd.so.0 "$(objdump -p "$T/use" |
	awk '$1 == "NEEDED" && /refd/ { print $2 }')"
is 'it lets out what it says, under a version' \
	"$(sed -n 's/^\t\(refd_[a-z_]*\);$/\1@@REFD_0/p' \
		"$ROOT/client/librefd/librefd.map")" \
	"$(nm -D --defined-only "$to/usr/lib/librefd.so.0" |
		awk '/ T / { print $3 }' | sort)"
said=$(sed -nE 's/^.*[ *](refd_[a-z]+)\(.*/\1/p' \
	"$to/usr/include/refd/client/refd.h" | sort -u)
is 'all that refd.h declares is let out' '' \
	"$(comm -23 <(echo "$said") <(sed -n 's/^\t\(refd_[a-z_]*\);$/\1/p' \
		"$ROOT/client/librefd/librefd.map" | sort))"

# ---- the manual ----

is 'each command has a page, or stands in refd(1)' '' "$(refd help |
	sed -n 's/^    \([a-z-]*\) .*/\1/p' | while read -r command; do
	ls "$to"/usr/share/man/man[18]/refd-"$command".[18] >/dev/null 2>&1 ||
		grep -qE "^\.It Nm.* $command( |\$)" \
			"$to/usr/share/man/man1/refd.1" || echo "$command"
done)"
for page in man3/librefd.3 man5/refd.conf.5 man7/refd-protocol.7; do
	check "$page" test -s "$to/usr/share/man/$page"
done

# ---- completion ----

# shellcheck source=client/completion/refd.bash
. "$to/usr/share/bash-completion/completions/refd"
complete_line() { # WORD...
	COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
	_refd
	echo "${COMPREPLY[*]}"
}
is 'bash: a command' update "$(complete_line refd upd)"
is 'bash: an option' '--batch-updates' "$(complete_line refd update --batch)"
is 'bash: an option that may be negated' '--deref --no-deref' \
	"$(complete_line refd update --deref) $(complete_line refd update --no-d)"
# The command accepts every completion.
bad=
mkdir "$T/empty"
for command in $(complete_line refd ''); do
	for option in $(complete_line refd "$command" --); do
		said=$(cd "$T/empty" && timeout 2 refd "$command" "$option" -h \
			2>&1 </dev/null)
		case $said in
		*unknown\ option* | *unrecognized\ option* | *invalid\ option*)
			bad="$bad $command $option" ;;
		esac
	done
done
is 'what is offered is taken' '' "$bad"
if command -v zsh >/dev/null; then
	is 'zsh: a command' 'refd update' "$(zsh -f -c '
		zmodload zsh/zpty
		zpty z zsh -f -i
		zpty -w z "PS1=; fpath=($1 \$fpath); autoload -U compinit"
		zpty -w z "compinit -u -D; echo rea\dy"
		zpty -r -m z said "*ready*"
		zpty -w -n z "refd upd"$'\''\t'\''
		zpty -r -m z said "*update*"
		print -r -- "$said"' - "$to/usr/share/zsh/site-functions" \
		2>/dev/null | grep -oa 'refd update' | tail -n 1)"
else
	skip 'zsh' 'there is none'
fi

# ---- and away ----

check 'make uninstall' mk uninstall
prints_nothing 'nothing is left' find "$to" ! -type d
is 'nor a directory of its own' '' "$(find "$to" -name '*refd*')"
finish
