# shellcheck shell=bash
# Reads commands from the README, so that tests run them as written.

# Prints the first indented block below HEADING in FILE.
readme_block() { # FILE HEADING
	awk -v heading="## $2" '
		/^## / { here = $0 == heading; seen = 0 }
		here && /^    / { print substr($0, 5); seen = 1; next }
		here && seen && !/^$/ { exit }' "$1"
}
