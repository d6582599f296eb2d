#!/usr/bin/env bash
# Install Prometheus and promtool into .servers/prometheus/, from the system's own package, for the
# tests of rules and dashboards. The package is downloaded and unpacked, not installed. A machine
# without apt, or without a way to its mirrors, goes without it, and the tests that need it skip.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ -f .servers/prometheus/installed ]; then
  exit 0
fi
for tool in apt-get dpkg-deb; do
  if ! command -v "$tool" >/dev/null 2>&1; then
    echo "$tool is missing: the tests with Prometheus will be skipped" >&2
    exit 0
  fi
done
rm -rf .servers/prometheus
mkdir -p .servers/prometheus/package
fetch() {
  (cd .servers/prometheus && apt-get download prometheus >>install.log 2>&1 &&
    dpkg-deb --extract prometheus_*.deb package >>install.log 2>&1)
}
# A new machine has no package lists yet; updating them needs root.
if ! fetch && ! { apt-get update >>.servers/prometheus/install.log 2>&1 && fetch; }; then
  tail -5 .servers/prometheus/install.log >&2
  echo "Prometheus could not be installed: the tests with it will be skipped" >&2
  exit 0
fi
mv .servers/prometheus/package/usr/bin/{prometheus,promtool} .servers/prometheus/
rm -rf .servers/prometheus/package .servers/prometheus/*.deb
touch .servers/prometheus/installed
