// Open pages in a browser without a window and say, as JSON, what a person would see. Read from stdin by node, in the folder the
// browser was installed into. LOOK_AT is {"pages": {name: file}, "widths": [pixels], "shots": folder or null}.
import chromium from "@sparticuz/chromium";
import puppeteer from "puppeteer-core";
import { pathToFileURL } from "node:url";

const { pages, widths, shots } = JSON.parse(process.env.LOOK_AT);
const executablePath = await chromium.executablePath();
const browser = await puppeteer.launch({ args: chromium.args, executablePath, headless: "shell" });
const seen = {};

for (const [name, file] of Object.entries(pages)) {
  for (const width of widths) {
    const page = await browser.newPage();
    const complaints = [];
    page.on("console", (message) => {
      if (["error", "warn"].includes(message.type())) complaints.push(message.text());
    });
    page.on("pageerror", (error) => complaints.push(String(error)));
    page.on("request", (request) => {
      if (!request.url().startsWith("file:")) complaints.push(`asks for ${request.url()}`);
    });
    page.on("requestfailed", (request) => complaints.push(`cannot load ${request.url()}`));
    await page.setViewport({ width, height: 900 });
    await page.goto(pathToFileURL(file).href, { waitUntil: "load" });
    const found = await page.evaluate(() => {
      const box = (element) => {
        const { left, right, width, height } = element.getBoundingClientRect();
        const style = getComputedStyle(element);
        const shown = width > 0 && height > 0 && style.visibility !== "hidden" && style.opacity !== "0";
        return { left, right, width, height, shown };
      };
      const all = (selector) => [...document.querySelectorAll(selector)].map(box);
      const scrolls = (element) => ["auto", "scroll"].includes(getComputedStyle(element).overflowX);
      const reachable = (element) => {
        for (let each = element; each; each = each.parentElement) if (scrolls(each)) return true;
        return element.getBoundingClientRect().right <= innerWidth + 1;
      };
      return {
        title: document.title,
        pageWidth: document.documentElement.scrollWidth,
        windowWidth: innerWidth,
        headings: [...document.querySelectorAll("h2")].map((each) => each.textContent),
        tables: all("table"),
        tabs: [...document.querySelectorAll(".tabs")].map((tabs) => [...tabs.querySelectorAll("label")].map((label) => {
          label.click();
          return [...tabs.querySelectorAll(".panel")].map((each) => box(each).shown);
        })),
        drawings: all("svg.entities"),
        drawn: document.querySelectorAll("svg.entities text").length,
        outOfReach: [...document.querySelectorAll("td, th, svg.entities, p, h1, h2, h3, li")]
          .filter((each) => !reachable(each)).map((each) => each.textContent.slice(0, 40)),
        links: [...document.querySelectorAll("nav a")].map((each) => ({
          name: each.textContent, there: Boolean(document.querySelector(each.getAttribute("href"))), ...box(each),
        })),
        letters: parseFloat(getComputedStyle(document.querySelector("td")).fontSize),
      };
    });
    if (shots) await page.screenshot({ path: `${shots}/${name}-${width}.png`, fullPage: true });
    (seen[name] ??= {})[width] = { ...found, complaints };
    await page.close();
  }
}
await browser.close();
console.log(JSON.stringify(seen));
