// Take a picture of a page in a browser without a window. Read from stdin by node, in the folder the browser was installed into.
// SCREENSHOT is {"file": page, "width": pixels, "height": pixels, "to": PNG file}.
import chromium from "@sparticuz/chromium";
import puppeteer from "puppeteer-core";
import { pathToFileURL } from "node:url";

const { file, width, height, to } = JSON.parse(process.env.SCREENSHOT);
const executablePath = await chromium.executablePath();
const browser = await puppeteer.launch({ args: chromium.args, executablePath, headless: "shell" });
const page = await browser.newPage();
await page.setViewport({ width, height });
await page.goto(pathToFileURL(file).href, { waitUntil: "load" });
await page.screenshot({ path: to });
await browser.close();
