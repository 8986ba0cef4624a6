#!/bin/bash
# Proves that the named tests notice every bug of tests/mutants.

exec "$(dirname "$0")/../../scripts/mutants"
