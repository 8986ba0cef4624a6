#!/bin/bash
# tests/long/distro.sh runs this script in the Debian that it boots. It installs
# refd's RPM packages, pushes, and removes the packages. rpm does not know
# Debian's packages, so it looks at no dependency. Reports as a scenario does.

# shellcheck source=tests/lib/report.sh
. /usr/local/lib/report.sh

as_git() { runuser -u git -- env HOME=/srv/git "$@"; }
push() { as_git git -C /srv/git/work push -q "$repo" "$@"; }
repo=/srv/git/a.git

# ---- three commands: installation, refd enable, push ----

SECONDS=0
check 'rpm -i' rpm -i --nodeps /packages/refd.rpm /packages/librefd.rpm \
	/packages/refd-deliver.rpm
as_git git init -q --bare "$repo"
as_git git config --global user.name A
as_git git config --global user.email a@example.com
as_git git init -q /srv/git/work
as_git git -C /srv/git/work commit -q --allow-empty -m one
check 'refd enable' refd enable "$repo"
check 'a push' push HEAD:refs/heads/main
check "the first push, after $SECONDS s" test $SECONDS -le 60
is 'is in the log' 1 "$(refd log --repo "$repo" --ref refs/heads/main |
	grep -c refs/heads/main)"

is 'the accounts' "/srv/git:/usr/bin/git-shell
/var/lib/refd_deliver:/usr/sbin/nologin" \
	"$(getent passwd git refd-deliver | cut -d: -f6-)"
is 'the units' 'enabled enabled disabled' "$(systemctl is-enabled refd.socket \
	refd.service refd-deliver.service | xargs)"
is 'the service is up' active "$(show ActiveState)"

# ---- upgraded, and removed ----

check 'looks are wanted' systemctl -q enable --now refd-look.timer

was=$(show MainPID)
check 'an upgrade' rpm -U --force --nodeps /packages/refd.rpm
check 'has a new daemon' test "$was" != "$(show MainPID)"
is 'which is up, and enabled' 'active enabled' \
	"$(show ActiveState) $(systemctl is-enabled refd.service)"
check 'the web hooks go' rpm -e refd-deliver
check 'removal is refused' fails rpm -e refd 2>/run/refused
check 'for what is enabled' grep -q "$repo" /run/refused
check 'refd disable --all' refd disable --all
check 'then it goes' rpm -e refd librefd
is 'no daemon runs, no socket is open' '' "$(pgrep -l refd
	systemctl list-units --plain --no-legend --state=active 'refd*')"
check 'a push to git itself' push HEAD:refs/heads/without
echo finished
