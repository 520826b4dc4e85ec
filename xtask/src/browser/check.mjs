// Opens pages in headless Chromium at three widths and in both colour schemes, runs axe-core's rules, and takes screenshots.
// Usage: node check.mjs MODULES CHROMIUM OUTPUT PAGE...
// Prints a line for each problem, and exits with 1 if there is one.
import { createRequire } from "node:module";
import { mkdirSync, readFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";

const [modules, chromium, output, ...pages] = process.argv.slice(2);
const require = createRequire(join(resolve(modules), "/"));
const puppeteer = require("puppeteer-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const WIDTHS = [360, 800, 1400];
const SCHEMES = ["light", "dark"];

mkdirSync(output, { recursive: true });
const browser = await puppeteer.launch({
  executablePath: chromium,
  headless: true,
  args: ["--no-sandbox", "--disable-gpu", "--force-color-profile=srgb"],
  protocolTimeout: 300000,
});
let problems = 0;
let passed = 0;
const problem = (text) => {
  problems += 1;
  console.log(text);
};
for (const path of pages) {
  const name = basename(path, ".html");
  for (const scheme of SCHEMES) {
    for (const width of WIDTHS) {
      const where = `${name}, ${scheme}, ${width} px`;
      const page = await browser.newPage();
      page.on("pageerror", (error) => problem(`${where}: error in the script: ${error.message}`));
      page.on("console", (message) => {
        if (message.type() === "error") problem(`${where}: ${message.text()}`);
      });
      page.on("request", (request) => {
        if (!request.url().startsWith("file:")) problem(`${where}: a request to ${request.url()}`);
      });
      await page.setViewport({ width, height: 900 });
      await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
      await page.goto("file://" + resolve(path), { waitUntil: "load", timeout: 120000 });
      const widest = await page.evaluate(() => document.documentElement.scrollWidth);
      if (widest > width) problem(`${where}: the page is ${widest} px wide`);
      await page.screenshot({ path: join(output, `${name}-${scheme}-${width}.png`), fullPage: true });
      await page.evaluate(() => document.querySelectorAll("details").forEach((part) => (part.open = true)));
      await page.evaluate(axe);
      const result = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
      for (const violation of result.violations) {
        const nodes = violation.nodes.slice(0, 3).map((node) => node.html.slice(0, 120));
        problem(`${where}: ${violation.id}: ${violation.help}: ${nodes.join(" | ")} (${violation.nodes.length})`);
      }
      passed += 1;
      await page.close();
    }
  }
  const page = await browser.newPage();
  await page.goto("file://" + resolve(path), { waitUntil: "load", timeout: 120000 });
  // The arrow keys read figures, and a legend hides its line.
  const chart = await page.$(".picture[tabindex]");
  if (chart) {
    await chart.focus();
    await page.keyboard.press("ArrowRight");
    const read = await page.$eval(".readout", (readout) => readout.textContent);
    if (!read) problem(`${name}: the arrow keys read nothing`);
    await page.$eval(".legend button", (button) => button.click());
    const hidden = await page.$$eval(".line.hidden, .dot.hidden", (lines) => lines.length);
    if (!hidden) problem(`${name}: a legend hides no line`);
  }
  await page.close();
}
await browser.close();
console.log(`${passed} views of ${pages.length} pages, ${problems} problems`);
process.exit(problems ? 1 : 0);
