#!/bin/bash
# Proves that gitolite3 works with refd. Its update hook still denies (by
# branch, by path, by user). A push to its administration still takes effect,
# and new repositories are served at once. The daemon runs as gitolite's
# account, with umask 077.

# shellcheck source=tests/lib/stack.sh
. "$(dirname "$0")/../lib/stack.sh"
# shellcheck source=tests/lib/stack_push.sh
. "$ROOT/tests/lib/stack_push.sh"

# gitolite's own repository expects this branch.
git config --system init.defaultBranch master
home=/var/lib/gitolite3
getent passwd gitolite3 >/dev/null ||
	useradd -r -d $home -s /bin/bash -p '*' gitolite3
chown gitolite3: $home
for name in alice bob; do
	add_pusher $name
	cp "/home/$name/.ssh/id_ed25519.pub" "$T/$name.pub"
	chmod 644 "$T/$name.pub"
	make_work $name
done
start_sshd
check 'gitolite is set up' quietly as gitolite3 \
	gitolite setup -pk "$T/alice.pub" 2>"$T/setup.log"
sed -i "s/\(GIT_CONFIG_KEYS *=> *\)''/\1'.*'/" $home/.gitolite.rc

pusher=alice
daemon_user=gitolite3
repositories=$home/repositories
repo_of() {
	if [ "$1" = refd ]; then
		echo $repositories/served.git
	else
		echo $repositories/native.git
	fi
}
url_of() {
	echo "gitolite3@localhost:$(basename "$(repo_of "$1")")"
}

# A push to gitolite's own repository, with CONF as its configuration.
administer() { # CONF
	as alice rm -rf admin
	quietly as alice git clone -q gitolite3@localhost:gitolite-admin admin
	install -o alice "$T/bob.pub" /home/alice/admin/keydir/bob.pub
	printf '%s\n' "$1" | as alice tee admin/conf/gitolite.conf >/dev/null
	as alice git -C admin add -A
	as alice git -C admin commit -q -m conf
	as alice git -C admin push -q >"$T/admin.log" 2>&1
}

conf='repo gitolite-admin
	RW+	= alice
repo served native
	RW+CD refs/heads/a/	= alice
	-	VREF/NAME/secret	= alice
	RWC refs/	= alice
	RW refs/heads/one	= bob
	config core.logAllRefUpdates = true
	config gc.auto = 0'
check 'its administration works' administer "$conf"

stack=gitolite
start_refd $repositories
check "$stack: enabled" quietly \
	as gitolite3 refd enable $repositories/served.git
check "$stack: its hook is in place" [ -x $repositories/served.git/hooks/update ]

both 'a push' 1 main
both 'many at once' 1 c-one:refs/heads/one side c-base main:refs/heads/a/1 \
	main:refs/heads/a/2
both 'moved' 1 c-two:refs/heads/one
both 'a rewind is denied' 0 +side:refs/heads/one
both 'a deletion is denied' 0 :refs/heads/side
both 'a deletion is allowed elsewhere' 1 :refs/heads/a/2
both 'atomic, and one is denied' 0 --atomic c-one:refs/heads/b/1 :side
as alice sh -c 'cd work && git checkout -q -b secret && echo >secret &&
	git add secret && git commit -q -m secret && git checkout -q main'
both 'a path is denied' 0 secret
both 'one is denied, the other is not' 1 secret c-one:refs/heads/open
both 'atomic' 1 --atomic c-one:refs/heads/b/1 c-two:refs/heads/b/2
is "$stack: files are for nobody else" '' "$(find $repositories/served.git \
	\( -name hooks -o -name refd \) -prune -o ! -type l -perm /077 -print)"

pusher=bob
both 'somebody else may not make one' 0 main:refs/heads/bobs
both 'nor move this one' 0 c-two:refs/heads/main c-one:refs/heads/b/1
pusher=alice
both 'back for bob' 1 +c-one:refs/heads/a/1
fallback 'the daemon is stopped' c-two:refs/heads/a/1
fallback 'the daemon is stopped, and it is denied' :side
both 'the daemon is back' 1 side:refs/heads/a/3
check "$stack: disabled" quietly \
	as gitolite3 refd disable $repositories/served.git

# All repositories, including gitolite's own and future ones.
stack='gitolite, all by the system'
check "$stack: enabled" quietly refd enable --system --root $repositories
before=$(transactions)
check "$stack: its administration works" administer "$conf
repo fresh
	RW	= bob
	-	= alice
	R	= alice"
is "$stack: and is served" $((before + 1)) "$(transactions)"
check "$stack: a repository was made" [ -d $repositories/fresh.git ]
url_of() { echo gitolite3@localhost:fresh; }
pusher=bob
before=$(transactions)
push_to refd main
is "$stack: it is served at once" "$((before + 1)) $(as bob git -C work \
	rev-parse main)" "$(transactions) $(as gitolite3 git -C \
	$repositories/fresh.git rev-parse main)"
pusher=alice
push_to refd +side:main
check "$stack: and denies" grep -q DENIED "$T/refd.err"
is "$stack: nothing of it is done" $((before + 1)) "$(transactions)"
finish
