#!/bin/bash
# Proves the look of commands on a real terminal: colour, unless NO_COLOR or
# TERM object; lines that fit 80 and 40 columns and break between words; and
# control characters in names, which never reach the terminal. Proves when refd
# log runs a pager, and how both end.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/terminal.sh
. "$ROOT/tests/lib/terminal.sh"

terminal_start || finish

# A terminal that obeys this name gets the title "pwned".
evil=$'evil\e]2;pwned\a\e[2J.git'
visible='evil\?\]2;pwned\?\?\[2J\.git'
SERVED=$T/$'srv\e]2;pwned\a'
mkdir "$SERVED"

check 'the daemon starts' start_daemon
new_repo "${SERVED##*/}/$evil" bare
one=$(new_commit "${SERVED##*/}/$evil" one)
check 'a ref is made' "$REFD" update -C "$SERVED/$evil" refs/heads/x "$one"

# The terminal broke no line, except a single word that is too long.
breaks_well() { # NAME COLUMNS
	! terminal_tmux capture-pane -p -J -t "$1" | sed 's/ *$//' |
		grep -E "^.{$(($2 + 1)),}" | grep -q '[^ ] '
}

# ---- status ----

terminal status 80 "$REFD" status
check 'status ends' terminal_ended status
check 'status has a sentence' terminal_shows status '^refd serves /'
check 'without control characters' terminal_shows status 'srv\?\]2;pwned\?'
check 'in green' grep -q $'^\e\\[32mrefd serves' \
	<<<"$(terminal_screen status -e)"
check 'its lines fit' breaks_well status 80
terminal plain 80 env NO_COLOR=1 "$REFD" status
check 'status with NO_COLOR ends' terminal_ended plain
prints_no 'and has no colour' $'\e' terminal_screen plain -e
terminal dumb 80 env TERM=dumb "$REFD" status
check 'status of a dumb terminal ends' terminal_ended dumb
prints_no 'and has no colour either' $'\e' terminal_screen dumb -e
check 'paused' "$REFD" pause
terminal narrow 40 "$REFD" status
check 'status of a narrow terminal ends' terminal_ended narrow 75
check 'and has the state' terminal_shows narrow '^refd has been paused for'
check 'in yellow' grep -q $'^\e\\[33mrefd has been paused' \
	<<<"$(terminal_screen narrow -e)"
check 'and lines that fit' breaks_well narrow 40
check 'resumed' "$REFD" resume

# ---- top ----

for columns in 80 40; do
	name=top$columns
	terminal "$name" "$columns" "$REFD" top
	check "top on $columns columns" \
		await 10 terminal_shows "$name" '^refd serving, up '
	check 'is green' grep -q $'^\e\\[32mrefd serving' \
		<<<"$(terminal_screen "$name" -e)"
	check 'names the repository' terminal_shows "$name" 'REFS/S$'
	check 'and lines that fit' breaks_well "$name" "$columns"
	terminal_press "$name" q
	check 'q ends it' terminal_ended "$name"
	prints_nothing 'and the screen is as before' terminal_screen "$name"
done
terminal once 80 "$REFD" top --once
check 'top --once ends' terminal_ended once
check 'a name without control characters' terminal_shows once "$visible"

# ---- locks, slowlog ----

git -C "$SERVED/$evil" config core.filesRefLockTimeout 300000
: >"$SERVED/$evil/refs/heads/x.lock"
"$REFD" update -C "$SERVED/$evil" refs/heads/x "$one" &
waiter=$!
own $waiter
somebody_waits() { "$REFD" locks | grep -q x.lock; }
check 'one waits for a lock' await 10 somebody_waits
sleep 1
for columns in 120 40; do
	name=locks$columns
	terminal "$name" "$columns" "$REFD" locks
	check "locks on $columns columns ends" terminal_ended "$name"
	check 'and has headings' terminal_shows "$name" '^AGE +WAITING +LONGEST'
	check 'and lines that fit' breaks_well "$name" "$columns"
done
# In 40 columns, the name is cut or wrapped.
check 'and a name without control characters' terminal_shows locks120 \
	'srv\?\]2;pwned'
check 'a stale lock is yellow' grep -q $'\e\\[33mopen in no process' \
	<<<"$(terminal_screen locks120 -e)"
rm "$SERVED/$evil/refs/heads/x.lock"
check 'the update ends' wait $waiter
reap $waiter
for columns in 80 40; do
	name=slow$columns
	terminal "$name" "$columns" "$REFD" slowlog
	check "slowlog on $columns columns ends" terminal_ended "$name"
	check 'and has relative times' terminal_shows "$name" \
		'^[0-9]+ s ago +[0-9.]+ s +queue'
	check 'and lines that fit' breaks_well "$name" "$columns"
done
check 'with the user' terminal_shows slow80 "committed +1  $(id -un)"
check 'and a bold heading' grep -q $'^\e\\[1mWHEN' \
	<<<"$(terminal_screen slow80 -e)"

# A pager that shows that it ran, and leaves the rest unread after 'first'.
cat >"$T/pager" <<'PAGER'
#!/bin/sh
echo "pager LESS=$LESS"
[ "$1" = first ] && exec head -n 2
exec cat
PAGER
chmod +x "$T/pager"
terminal slowpaged 80 env GIT_PAGER="$T/pager" LESS= "$REFD" slowlog
check 'slowlog has a pager' await 10 terminal_shows slowpaged '^pager LESS=$'
check 'and relative times in the pager' terminal_shows slowpaged \
	'^[0-9]+ s ago +[0-9.]+ s +queue'

# ---- log ----

GL_USER=$'alice\e]2;pwned\a' "$REFD" update -C "$SERVED/$evil" \
	-m $'a\e[2Jmessage that is longer than this terminal' \
	"refs/heads/a/branch/of/a/very/long/name" "$one"
many=$(for n in {1..60}; do echo "create refs/heads/n$n $one"; done)
terminal log 80 env LESS= PAGER=cat "$REFD" log
check 'log ends' terminal_ended log
check 'log has a heading' \
	terminal_shows log '^time +record +who +repository +ref +change$'
check 'times are relative' terminal_shows log '^[0-9]+ seconds? ago +[0-9]+ root'
check 'long names keep their end' terminal_shows log ' \.\.\.[^ ]*/name created '
check 'repositories, too' terminal_shows log ' \.\.\.[^ ]*J\.git '
prints_no 'and reach no terminal' $'\e' terminal_screen log
check 'its lines fit' breaks_well log 80
check 'a creation is green' grep -q $'\e\\[32mcreated' \
	<<<"$(terminal_screen log -e)"
terminal verbose 80 env NO_COLOR=1 PAGER=cat "$REFD" log -v -n 1
check 'log -v ends' terminal_ended verbose
check 'and has no control characters' \
	terminal_shows verbose '^    GL_USER: alice\?\]2;pwned\?$'
prints_no 'and no colour with NO_COLOR' $'\e' terminal_screen verbose -e
check 'there are many refs' "$REFD" update -C "$SERVED/$evil" --stdin \
	<<<"$many"

terminal paged 80 env -u LESS GIT_PAGER="$T/pager" PAGER=false "$REFD" log
check 'log ends behind its pager' terminal_ended paged
terminal_tmux capture-pane -p -S - -t paged >"$T/paged"
is 'the pager got all' 'pager LESS=FRX 62' \
	"$(grep -m1 '^pager' "$T/paged") $(grep -c ' created ' "$T/paged")"
terminal less 80 env -u LESS -u PAGER "$REFD" log
check 'less waits' await 10 terminal_shows less '^:$'
check 'in colour' grep -q $'\e\\[1mtime' <<<"$(terminal_screen less -e)"
terminal_press less C-c
# less drops keys that arrive while it handles Ctrl-C.
reaches_end() { terminal_press less G && terminal_shows less '^.END.$'; }
check 'less goes on after Ctrl-C' await 10 reaches_end
terminal_press less q
# The shell of the terminal got Ctrl-C, too, and ends behind the command.
is_gone() { ! terminal_tmux has-session -t "$1"; }
check 'q ends both' await 10 is_gone less
terminal early 80 env GIT_PAGER="$T/pager first" "$REFD" log
has_ended() { [[ $(terminal_title "$1") = ended* ]]; }
check 'a pager that reads little' await 10 has_ended early
prints_no 'is no error' '^refd|rror|ipe' terminal_screen early
terminal nopager 80 env GIT_PAGER="$T/pager" "$REFD" log --no-pager -n 1
check 'log --no-pager ends' terminal_ended nopager
prints_no 'and runs no pager' pager terminal_screen nopager
terminal missing 80 env PAGER=no-such-pager "$REFD" log -n 1
check 'a missing pager is no failure' terminal_ended missing
check 'and is named' terminal_shows missing "warning: .*'no-such-pager'"
check 'the log is there' terminal_shows missing ' created '
terminal watch 80 env GIT_PAGER="$T/pager" "$REFD" watch --since 0 -n 1
check 'watch ends' terminal_ended watch
check 'watch has no relative times, and no pager' \
	terminal_shows watch '^[0-9-]{10}T[0-9:.]{12}Z +[0-9]+ root'
is 'a file has no table' 7 "$("$REFD" log -n 1 | tr '\t' '\n' | wc -l)"

# ---- doctor ----

# No daemon listens there, which is an error.
look=("$REFD" doctor --socket "$T/none" "$SERVED/$evil")
terminal doctor 80 "${look[@]}"
check 'doctor ends' terminal_ended doctor 1
check 'the last line counts the findings' \
	terminal_shows doctor '^1 repository: [0-9]+ errors?, '
check 'an error is red' grep -q $'^\e\\[1m\e\\[31merror' \
	<<<"$(terminal_screen doctor -e)"
check 'its remedy is bold' grep -q $'\e\\[1mremedy' \
	<<<"$(terminal_screen doctor -e)"
check 'names have no control characters' \
	terminal_shows doctor 'srv\?\]2;pwned\?'
terminal mono 80 "${look[@]}" --color=never
check 'doctor --color=never ends' terminal_ended mono 1
prints_no 'and has no colour' $'\e' terminal_screen mono -e

terminal_stop

finish
