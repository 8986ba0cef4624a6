#!/bin/bash
# Proves that the image of scripts/distro/image works as docs/installation.md
# says. The image is built from this tree's Debian packages. The containers have
# the settings of compose.yaml; crun runs them in place of Docker. The three
# commands of the page lead to the first push within a minute. The daemon is
# killed and started again. No container has root's rights. A path that differs
# between the containers is refused with the reason.
#
# A Debian made by mmdebstrap stands in for Docker's image of Debian. Nothing
# but loopback is used while the containers run. STACKS_CACHE=DIR keeps the
# Debian between runs.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/root.sh
. "$ROOT/tests/lib/root.sh"
# shellcheck source=tests/lib/packages.sh
. "$ROOT/tests/lib/packages.sh"

root_needs image --image
image=$ROOT/scripts/distro/image
page=$ROOT/docs/installation.md
suite=$(apt_private_codename)

# ---- the image ----

packages_build packages || finish
debs=("$T"/packages/refd_*.deb)
# The Debian has the archives of further packages, and has them not installed.
# shellcheck disable=SC2016 # mmdebstrap's shell knows the root
if ! root_make "image-$suite" "$suite" '' \
	"$(for deb in "${debs[@]}"; do dpkg-deb -f "$deb" Depends; done)" \
	--skip=cleanup/apt --customize-hook="copy-in ${debs[*]} /tmp" \
	--customize-hook='chroot "$1" sh -c "apt-get clean && apt-get -y \
		--no-install-recommends --download-only install git \
		openssh-server systemd-standalone-sysusers /tmp/*.deb &&
		rm /tmp/*.deb"'; then
	skip image "$(root_why)"
	finish
fi

printf '[storage]\ndriver = "vfs"\ngraphroot = "%s"\nrunroot = "%s"\n' \
	"$T/storage" "$T/storage-run" >"$T/storage.conf"
export CONTAINERS_STORAGE_CONF=$T/storage.conf BUILDAH_ISOLATION=chroot

make_base() {
	local container
	container=$(buildah from scratch) &&
		cp -a "$ROOT_BASE/." "$(buildah mount "$container")" &&
		buildah commit -q --rm "$container" localhost/debian >/dev/null
}
build_image() {
	BUILDER=buildah "$image/build" "${debs[@]}" -- --pull-never \
		--build-arg DEBIAN=localhost/debian >"$T/build.log" 2>&1 &&
		buildah push -q localhost/refd "oci:$T/oci:refd" &&
		umoci unpack --image "$T/oci:refd" "$T/bundle" \
			>"$T/umoci.log" 2>&1
}
check 'a Debian' make_base
SECONDS=0
if ! build_image; then
	not_ok 'the image' "$(tail -n 3 "$T/build.log")"
	finish
fi
ok "the image, after $SECONDS s"
rm -rf "$T/storage" "$T/packages"
is 'has no host key, and no id of a machine' '' \
	"$(find "$T/bundle/rootfs/etc" -name 'ssh_host_*' -o -name machine-id)"

# ---- in place of Docker ----

check 'docker-compose accepts the file' env REFD_KEYS=/keys \
	docker-compose -f "$image/compose.yaml" config -q
check 'and the file of a group' \
	docker-compose -f "$image/compose-group.yaml" config -q

run=$T/run
volumes=$T/volumes
mkdir "$volumes"

# crun refuses a machine with both versions of cgroups. These mounts are the
# scenario's own.
mountpoint -q /sys/fs/cgroup/unified && umount /sys/fs/cgroup/unified

crun() {
	command crun --root "$T/crun" --cgroup-manager=disabled "$@"
}
# Runs a command with the settings of the container's own process.
in_container() { # SERVICE COMMAND...
	jq '.process | .args = $ARGS.positional' "$run/$1/config.json" --args -- \
		"${@:2}" >"$T/process.json" &&
		crun exec --process "$T/process.json" "$1"
}
start() { # SERVICE
	crun run --detach --bundle "$run/$1" "$1" >>"$T/$1.log" 2>&1 </dev/null &&
		own "$(pid_of "$1")"
}
pid_of() { # SERVICE
	crun state "$1" | jq .pid
}
is_healthy() { # SERVICE
	local words
	mapfile -t words <"$run/$1/health"
	in_container "$1" "${words[@]}" >/dev/null 2>&1
}
up() { # SERVICE
	start "$1" && await 10 is_healthy "$1"
}
gone() { # SERVICE
	[ "$(crun state "$1" | jq -r .status)" = stopped ]
}
end() { # SERVICE SIGNAL
	crun kill "$1" "$2" && await 9 gone "$1" && crun delete "$1"
}
docker() {
	case "$*" in
	'compose up -d --wait')
		python3 "$ROOT/tests/lib/compose.py" "$image/compose.yaml" \
			"$T/bundle" "$volumes" "$run" || return
		scenario_mounts+=("$volumes/socket")
		up refd && up ssh
		;;
	'compose exec ssh '* | 'compose exec refd '*)
		in_container "${@:3}"
		;;
	*) return 1 ;;
	esac
}
# The port of the container is its own.
push() { # ARGUMENT...
	nsenter -n -t "$(pid_of ssh)" git -C "$T/work" push -q "$@"
}
git() {
	if [ "$1" = push ]; then push "${@:2}"; else command git "$@"; fi
}

mkdir "$HOME/.ssh"
ssh-keygen -q -t ed25519 -N '' -f "$HOME/.ssh/id_ed25519"
export GIT_SSH_COMMAND="ssh -i $HOME/.ssh/id_ed25519 -o LogLevel=ERROR \
	-o StrictHostKeyChecking=accept-new -o UserKnownHostsFile=$T/known"
new_repo work
url=ssh://git@localhost:2222/srv/git/a.git
log_of() { # BRANCH
	docker compose exec refd refd log --repo /srv/git/a.git \
		--ref "refs/heads/$1" | grep -c "refs/heads/$1"
}

# ---- the first push ----

mapfile -t commands < <(sed -n '/^    .*compose up/,/^$/{s/^    //p}' "$page")
is 'three commands' 3 ${#commands[@]}
SECONDS=0
for command in "${commands[@]}"; do
	check "$command" eval "$command"
done
check "the first push, after $SECONDS s" test $SECONDS -le 60
is 'is in the log' 1 "$(log_of main)"
is 'by its connection' 1 "$(docker compose exec refd refd log --json \
	--repo /srv/git/a.git | grep -c '"SSH_CONNECTION"')"

# ---- rights ----

for service in refd ssh; do
	is "$service: without rights" \
		'Uid: 1000 CapPrm: 0000000000000000 CapBnd: 0000000000000000 NoNewPrivs: 1' \
		"$(in_container "$service" cat /proc/1/status | awk '
			/^(Uid|CapPrm|CapBnd|NoNewPrivs):/ { print $1, $2 }' |
			xargs)"
	is "$service: nothing of the image can be written" 1 \
		"$(in_container "$service" touch /etc/x 2>&1 |
			grep -c 'Read-only file system')"
done
is 'refd: without a network' lo "$(in_container refd ls /sys/class/net | xargs)"
check 'refd: confined' grep -q '^confined_by:.* Landlock [0-9].* seccomp' \
	<<<"$(in_container refd refd status -v)"
is 'ssh: no access to the journal' 0 \
	"$(in_container ssh ls /var/lib/refd | grep -c journal)"
is 'ssh: cannot replace the socket' 1 \
	"$(in_container ssh rm /run/refd/refd.sock 2>&1 |
		grep -c 'Read-only file system')"

# ---- kill -9 ----

check 'the daemon is killed' end refd KILL
push "$url" HEAD:refs/heads/away 2>"$T/away"
is 'a push: git does it' '0 1' \
	"$? $(grep -c 'git updates the refs itself' "$T/away")"
check 'the daemon is back' up refd
check 'a push' push "$url" HEAD:refs/heads/after
is 'is in the log, as the first' '1 1' "$(log_of after) $(log_of main)"
check 'refd verify' in_container refd refd verify /srv/git/a.git

# ---- new containers ----

check 'the containers end' eval 'end ssh TERM && end refd TERM'
check 'and start with the same volumes' eval 'up refd && up ssh'
check 'a push to the same host key' push "$url" HEAD:refs/heads/again
is 'and the same journal' '1 1' "$(log_of again) $(log_of main)"

# ---- a different path ----

mkdir "$run/other"
jq '(.mounts[].destination | select(. == "/srv/git")) = "/mnt"' \
	"$run/ssh/config.json" >"$run/other/config.json"
check 'another path' start other
in_container other refd enable /mnt/a.git >"$T/enable" 2>&1
check 'the warning of refd enable' \
	grep -q "'/mnt/a.git' is not under a root that refd serves" "$T/enable"
in_container other refd update -C /mnt/a.git refs/heads/other \
	"$(git -C "$T/work" rev-parse HEAD)" 2>"$T/other"
is 'an update is refused with the reason' '128 1' \
	"$? $(grep -c 'is not under a root that refd serves' "$T/other")"
finish
