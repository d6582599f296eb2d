#!/usr/bin/env bash
# Install the library that draws diagrams into .mermaid/, from npm, for the documentation site, which serves its own copy.
# A machine without npm goes without it, and the site shows the diagrams as text.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v npm >/dev/null 2>&1; then
  echo "npm is missing: the site shows diagrams as text" >&2
  exit 0
fi
wanted="mermaid@12.3.0"
if [ -f .mermaid/mermaid.min.js ] && [ "$(cat .mermaid/version)" = "$wanted" ]; then
  exit 0
fi
rm -rf .mermaid
mkdir .mermaid
# Only the packed library: an installation would bring two hundred megabytes that only its own build needs.
if (cd .mermaid && npm pack --silent "$wanted" >/dev/null && tar -xzf mermaid-*.tgz package/dist/mermaid.min.js); then
  mv .mermaid/package/dist/mermaid.min.js .mermaid/mermaid.min.js
  rm -rf .mermaid/package .mermaid/*.tgz
  echo "$wanted" >.mermaid/version
else
  echo "mermaid cannot be had from npm: the site shows diagrams as text" >&2
fi
