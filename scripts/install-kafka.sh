#!/usr/bin/env bash
# Install Apache Kafka's broker into .servers/kafka/, from Maven Central, for the tests of sinks.
# A machine without mvn or java, or without a way to Maven Central, goes without it, and the tests that need it skip.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ -f .servers/kafka/installed ] && [ ! scripts/kafka.xml -nt .servers/kafka/installed ]; then
  exit 0
fi
for tool in mvn java; do
  if ! command -v "$tool" >/dev/null 2>&1; then
    echo "$tool is missing: the tests with Kafka will be skipped" >&2
    exit 0
  fi
done
rm -rf .servers/kafka
mkdir -p .servers/kafka
if ! mvn --batch-mode --quiet --file scripts/kafka.xml dependency:copy-dependencies -DincludeScope=runtime \
  -DoutputDirectory="$PWD/.servers/kafka/libs" >.servers/kafka/install.log 2>&1; then
  tail -5 .servers/kafka/install.log >&2
  echo "Kafka could not be installed: the tests with it will be skipped" >&2
  exit 0
fi
touch .servers/kafka/installed
