#!/bin/bash
# The Debian packages, built and used in Debian 13: see debian.sh.

SUITE=trixie exec "$(dirname "$0")/debian.sh"
