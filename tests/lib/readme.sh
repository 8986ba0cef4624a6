# shellcheck shell=bash
# Reads commands from the documents, so that tests run them as written.

# Prints the NTH (first) indented block below HEADING, of any level, in FILE.
readme_block() { # FILE HEADING [NTH]
	awk -v heading="$2" -v nth="${3:-1}" '
		/^##+ / { here = substr($0, index($0, " ") + 1) == heading }
		here && /^    / {
			nr += !inside
			inside = 1
			if (nr == nth)
				print substr($0, 5)
			next
		}
		!/^$/ { inside = 0 }' "$1"
}

# Prints the headings of FILE that have indented blocks below them.
readme_headings() { # FILE
	awk '/^##+ / { heading = substr($0, index($0, " ") + 1) }
		/^    / { print heading }' "$1" | uniq
}
