#!/bin/bash
# The commands of the README in Debian 13: see readme.sh.

SUITE=trixie exec "$(dirname "$0")/readme.sh"
