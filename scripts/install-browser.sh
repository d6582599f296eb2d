#!/usr/bin/env bash
# Install a browser without a window into .browser/, from npm, for the tests that look at the pages Stator makes.
# A machine without npm, or on which it does not start, goes without it, and those tests skip.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v npm >/dev/null 2>&1; then
  echo "npm is missing: no page will be looked at in a browser" >&2
  exit 0
fi
if [ -f .browser/installed ] && cmp -s scripts/browser.json .browser/package.json; then
  exit 0
fi
mkdir -p .browser
rm -f .browser/installed
cp scripts/browser.json .browser/package.json
if ! (cd .browser && npm install --no-audit --no-fund --loglevel=error >/dev/null); then
  echo "the browser cannot be had from npm: no page will be looked at" >&2
  exit 0
fi
if (cd .browser && node --input-type=module -) <<'START'
import chromium from "@sparticuz/chromium";
import puppeteer from "puppeteer-core";
const executablePath = await chromium.executablePath();
const browser = await puppeteer.launch({ args: chromium.args, executablePath, headless: "shell" });
await browser.close();
START
then
  touch .browser/installed
else
  echo "the browser does not start here: no page will be looked at" >&2
fi
