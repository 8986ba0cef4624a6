# shellcheck shell=bash
# For scenarios of groups, and for others with cases in Python, which print
# their reports.

# The programs of the newest PostgreSQL of this machine.
binaries=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -n 1)

run_python() { # FILE ARGUMENT...
	while read -r line; do
		case $line in
		ok\ *) ok "${line#ok }" ;;
		not\ ok\ *) not_ok "${line#not ok }" ;;
		skip\ *:\ *)
			line=${line#skip }
			skip "${line%%: *}" "${line#*: }"
			;;
		*) echo "$line" ;;
		esac
	done < <(python3 -B "$ROOT/tests/$1" "${@:2}" 2>&1)
}

# refd-group enables repositories as root, and root's list is in /var/lib/refd.
# The mounts belong to this scenario, so the machine's list stays as it is.
hide_list() {
	[ -z "${OWN_MOUNTS:-}" ] || mount -t tmpfs tmpfs /var/lib
}

# Two nodes of a group (tests/lib/group_pair.py).
run_cases() { # FILE
	unset REFD_SOCKET REFD_STATE
	run_python "lib/$1" "$REFD" "$T"
	check 'all cases have run' test -e "$T/ended"
}

# refd-group, with PostgreSQL and a standby (tests/lib/group_console.py).
run_with_servers() { # FILE ARGUMENT...
	if [ ! -d "$binaries" ] || [ "$(id -u)" -ne 0 ]; then
		skip "$1" 'needs root and PostgreSQL: scripts/deps --group'
		return
	fi
	hide_list
	# PostgreSQL refuses to run as root.
	chmod 711 "$T"
	mkdir "$T/pg"
	run_python "long/$1" "$BUILD/bin/refd-group" "$T/pg" "$binaries" \
		65534 "${@:2}"
	check 'all cases have run' test -e "$T/pg/ended"
}
