// Open pages of the site in a browser without a window and say, as JSON, what a person would see. Read from stdin by node, in the
// folder the browser was installed into. LOOK_AT is {"site": address, "pages": [path], "widths": [pixels], "shots": folder or null}.
import chromium from "@sparticuz/chromium";
import puppeteer from "puppeteer-core";

const { site, pages, widths, shots } = JSON.parse(process.env.LOOK_AT);
const executablePath = await chromium.executablePath();
const browser = await puppeteer.launch({ args: chromium.args, executablePath, headless: "shell" });
const complaints = [];

async function open(path, width, scheme) {
  const page = await browser.newPage();
  const complain = (text) => complaints.push(`${path}: ${text}`);
  page.on("console", (message) => ["error", "warn"].includes(message.type()) && complain(message.text()));
  page.on("pageerror", (error) => complain(String(error)));
  page.on("request", (request) => /^(https?|wss?):/.test(request.url()) && !request.url().startsWith(site) && complain(`asks for ${request.url()}`));
  page.on("response", (response) => response.status() >= 400 && complain(`${response.status()} for ${response.url()}`));
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  await page.setViewport({ width, height: 900 });
  await page.goto(site + path, { waitUntil: "load" });
  const isDrawn = () => !document.querySelector(".diagram-source");
  await page.waitForFunction(isDrawn, { timeout: 8000 }).catch(() => {});
  return page;
}

const seen = {};
for (const path of pages) {
  const page = await open(path, widths[0], "light");
  for (const width of widths) {
    await page.setViewport({ width, height: 900 });
    (seen[path] ??= {})[width] = await page.evaluate(() => {
      const scrolls = (element) => ["auto", "scroll", "hidden"].includes(getComputedStyle(element).overflowX);
      const reachable = (element) => {
        for (let each = element; each; each = each.parentElement) if (scrolls(each)) return true;
        return element.getBoundingClientRect().right <= innerWidth + 1;
      };
      return {
        pageWidth: document.documentElement.scrollWidth,
        windowWidth: innerWidth,
        outOfReach: [...document.querySelectorAll("article *")].filter((each) => !reachable(each)).map((each) => each.textContent.slice(0, 40)),
        undrawn: document.querySelectorAll(".diagram-source").length,
        drawn: document.querySelectorAll(".diagram svg").length,
      };
    });
    if (shots) await page.screenshot({ path: `${shots}/${path.replaceAll("/", "-")}-${width}.png` });
  }
  await page.close();
}

const dark = await open("index.html", 390, "dark");
const background = await dark.evaluate(() => getComputedStyle(document.body).backgroundColor);
await dark.close();

const page = await open("guides/data.html", 1280, "light");
await page.keyboard.down("Control");
await page.keyboard.press("k");
await page.keyboard.up("Control");
await new Promise((done) => setTimeout(done, 500));
await page.keyboard.type("rank members by score");
const found = await page.waitForFunction(() => {
  const links = [];
  const walk = (root) => {
    for (const each of root.querySelectorAll("*")) {
      if (each.shadowRoot) walk(each.shadowRoot);
      if (each.tagName === "A" && each.href.includes("?h=")) links.push(new URL(each.href).pathname);
    }
  };
  walk(document);
  return links.includes("/guides/leaderboard.html") ? links : null;
}, { timeout: 10000 }).then((links) => links.jsonValue()).catch(() => []);
await browser.close();
console.log(JSON.stringify({ complaints, seen, background, found }));
