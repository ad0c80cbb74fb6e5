// SPDX-License-Identifier: Apache-2.0
/* The built page in a real browser. Rows of the small profile, from the root at the bottom: all; worker 0–70 %, base
   70–100 %; main 0–70, main 70–95, cut 95–100; parse 0–50, read 50–70, query 70–95; … (tests/tree.test.ts has all). */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { ProfileWriter, bigProfile, smallProfile } from "../profiles.ts";
import { Chromium, settle } from "./page.ts";
import type { Opened } from "./page.ts";

const ROW = 19;

let chromium: Chromium;

before(async () => {
	chromium = await Chromium.start();
});

after(async () => {
	await chromium.stop();
});

/* A test on a fresh page of PROFILE, which must make no request and no complaint. */
function browserTest(name: string, profile: () => unknown, body: (page: Page) => Promise<void>) {
	test(name, async () => {
		const opened: Opened = await chromium.open(profile());
		try {
			await opened.page.evaluate(() => localStorage.clear());
			await opened.page.reload();
			await body(opened.page);
			assert.deepEqual(opened.errors, []);
			assert.deepEqual(opened.requests, []);
		} finally {
			await opened.close();
		}
	});
}

async function box(page: Page) {
	return (await page.locator(".flame").boundingBox())!;
}

/* Where the box at DEPTH and the share X of the width is, in the flame (root at the bottom). */
async function pointAt(page: Page, x: number, depth: number) {
	const flame = await box(page);
	return { x: flame.x + flame.width * x, y: flame.y + flame.height - (depth + 0.5) * ROW };
}

async function click(page: Page, x: number, depth: number) {
	const point = await pointAt(page, x, depth);
	await page.mouse.click(point.x, point.y);
	await settle(page);
}

const focused = (page: Page) => page.locator(".status b").textContent();
const matched = (page: Page) => page.locator(".matched").textContent();
const spoken = (page: Page) => page.locator('.spoken[role="status"]').textContent();

async function press(page: Page, ...keys: string[]) {
	for (const key of keys)
		await page.keyboard.press(key);
	await settle(page);
}

async function expectText(page: Page, selector: string, text: string | RegExp) {
	await page.locator(selector).filter({ hasText: text }).first().waitFor({ timeout: 10_000 });
}

browserTest("the page shows the session and the whole profile", smallProfile, async (page) => {
	await settle(page);
	assert.equal(await page.title(), "small – cairn");
	assert.equal(await page.locator("h1").textContent(), "small");
	await expectText(page, ".facts", "box");
	await expectText(page, ".warnings", "3 lost");
	assert.equal(await focused(page), "all");
	assert.match((await page.locator(".legend").textContent())!, /native 50\.0%.*kernel 45\.0%.*cut 5\.00%/);
});

browserTest("a click zooms, Escape and Backspace go back", smallProfile, async (page) => {
	await settle(page);
	await click(page, 0.9, 1);
	assert.equal(await focused(page), "base (20)");
	await expectText(page, ".toolbar", "Show all");
	await click(page, 0.5, 3);
	assert.equal(await focused(page), "query");
	await press(page, "Escape");
	await click(page, 0.9, 2);
	assert.equal(await focused(page), "[cut: no unwind rows]", "one step back is the process");
	await press(page, "Backspace", "Backspace");
	await page.locator('[data-action="reset"]').waitFor({ state: "detached" });
	await click(page, 0.25, 3);
	assert.equal(await focused(page), "parse", "two steps back is everything");
});

browserTest("arrow keys move the focus and Enter zooms", smallProfile, async (page) => {
	await settle(page);
	await press(page, "ArrowUp");
	assert.equal(await focused(page), "worker (2 processes)");
	await press(page, "ArrowRight", "ArrowUp");
	assert.equal(await focused(page), "main");
	assert.match((await spoken(page))!, /^main, native, total 25 samples ≈ 2\.5 s, 25\.0%, self 0 samples, level 2$/);
	await press(page, "Enter");
	assert.match((await spoken(page))!, /100\.0% of view/);
	await press(page, "ArrowDown");
	assert.equal(await focused(page), "base (20)");
	await press(page, "Home");
	assert.equal(await focused(page), "all");
});

browserTest("in the icicle the root is at the top and down leads to callees", smallProfile, async (page) => {
	await settle(page);
	await press(page, "i");
	const flame = await box(page);
	await page.mouse.click(flame.x + flame.width * 0.9, flame.y + 1.5 * ROW);
	await settle(page);
	assert.equal(await focused(page), "base (20)");
	await press(page, "ArrowDown");
	assert.equal(await focused(page), "main");
});

browserTest("a search says what it matched, of the view and of all", smallProfile, async (page) => {
	await settle(page);
	await page.keyboard.press("/");
	await page.keyboard.type("vfs");
	await expectText(page, ".matched", "matched 45.0%");
	await page.keyboard.press("Enter");
	await expectText(page, ".status", "vfs_read");
	await page.keyboard.press("Escape");
	assert.equal(await matched(page), "");
	await page.keyboard.press("Escape");
	await press(page, "Home");
	await click(page, 0.3, 1);
	await page.keyboard.press("Control+f");
	await page.keyboard.type("/^(vfs_read|lex)$/");
	await expectText(page, ".matched", "matched 42.9% of view, 55.0% of all");
	await page.keyboard.press("Control+f");
	await page.keyboard.type("/(/");
	await expectText(page, ".matched.error", /group/);
	await page.keyboard.press("Control+f");
	await page.keyboard.type("nothing like it");
	await expectText(page, ".matched", "no match");
});

browserTest("n and N go from match to match", smallProfile, async (page) => {
	await settle(page);
	await page.keyboard.press("/");
	await page.keyboard.type("=read");
	await expectText(page, ".matched", "45.0%");
	await page.keyboard.press("Tab");
	await press(page, "n");
	assert.match((await spoken(page))!, /^read, kernel, total 20/);
	await press(page, "n");
	assert.match((await spoken(page))!, /^read, kernel, total 25/);
	await press(page, "n");
	assert.match((await spoken(page))!, /^read, kernel, total 20/);
	await press(page, "N");
	assert.match((await spoken(page))!, /^read, kernel, total 25/);
});

const theme = (page: Page) => page.locator("#cairn").getAttribute("data-theme");

browserTest("the theme follows the system until it is chosen, and is remembered", smallProfile, async (page) => {
	assert.equal(await theme(page), "light");
	await page.emulateMedia({ colorScheme: "dark" });
	await page.locator('#cairn[data-theme="dark"]').waitFor();
	await page.keyboard.press("t");
	await page.locator('#cairn[data-theme="light"]').waitFor();
	await page.reload();
	assert.equal(await theme(page), "light");
});

browserTest("the table shows functions, sorts, and highlights the chosen one", smallProfile, async (page) => {
	await settle(page);
	await page.keyboard.press("f");
	const names = async () => page.locator(".spacer .table-row .name").allTextContents();
	assert.deepEqual((await names()).slice(0, 2), ["vfs_read", "parse"]);
	await page.getByRole("button", { name: "Total" }).click();
	assert.deepEqual((await names()).slice(0, 2), ["main", "parse"]);
	await page.getByRole("button", { name: "Function", exact: true }).click();
	assert.equal((await names())[0], "[cut: no unwind rows]");
	assert.equal(await page.locator('[aria-sort="ascending"]').textContent(), "Function ▴");
	await page.locator(".spacer .table-row", { hasText: "parse" }).click();
	await expectText(page, ".matched", "matched 50.0%");
	assert.match((await page.locator(".neighbours").textContent())!, /Callers100\.0%mainCallees20\.0%lex/);
	await page.locator(".neighbours button", { hasText: "lex" }).click();
	await expectText(page, ".matched", "matched 10.0%");
	await page.keyboard.press("/");
	await page.keyboard.type("read");
	await expectText(page, ".table h2", "2 functions");
	assert.deepEqual(await names(), ["read", "vfs_read"]);
});

browserTest("the table is worked with the keyboard", smallProfile, async (page) => {
	await settle(page);
	await page.keyboard.press("f");
	await page.locator(".table-grid").focus();
	await page.keyboard.press("ArrowDown");
	await expectText(page, '.table-row[aria-selected="true"]', "vfs_read");
	await page.keyboard.press("ArrowDown");
	await expectText(page, '.table-row[aria-selected="true"]', "parse");
	await page.keyboard.press("End");
	await page.keyboard.press("f");
	await page.locator(".table").waitFor({ state: "detached" });
});

browserTest("the table of a large profile holds only the rows one sees", () => bigProfile(20_000), async (page) => {
	await settle(page);
	await page.keyboard.press("f");
	await page.locator(".table-grid").focus();
	assert.ok(await page.locator(".spacer .table-row").count() < 100);
	await page.keyboard.press("ArrowDown");
	await page.keyboard.press("End");
	const count = (await page.locator(".table h2").textContent())!.replace(/\D/g, "");
	await page.locator(`.table-row[aria-selected="true"][aria-rowindex="${Number(count) + 1}"]`).waitFor();
});

browserTest("processes are chosen by name, and the picture follows", smallProfile, async (page) => {
	await settle(page);
	await page.keyboard.press("p");
	const rows = page.locator(".process-rows label");
	assert.equal(await rows.count(), 3);
	assert.match((await rows.first().textContent())!, /worker11\s*40\.0%/);
	await page.keyboard.type("base");
	assert.equal(await rows.count(), 1);
	await page.getByRole("button", { name: "Only listed" }).click();
	await page.keyboard.press("Escape");
	await page.locator("dialog").waitFor({ state: "detached" });
	await expectText(page, '[data-action="processes"]', "1 of 3 processes");
	await settle(page);
	await click(page, 0.5, 1);
	assert.match((await spoken(page))!, /^base \(20\), process, total 30 samples ≈ 3 s, 100\.0%/);
	await page.keyboard.press("p");
	await page.getByRole("button", { name: "All", exact: true }).click();
	await page.locator(".process-rows label", { hasText: "11" }).getByRole("checkbox").uncheck();
	await page.keyboard.press("Escape");
	await expectText(page, '[data-action="processes"]', "2 of 3 processes");
});

browserTest("processes of one name are one box or several", smallProfile, async (page) => {
	await settle(page);
	await press(page, "m", "ArrowUp");
	assert.equal(await focused(page), "worker (11)");
	await press(page, "m", "Home", "ArrowUp");
	assert.equal(await focused(page), "worker (2 processes)");
});

browserTest("the tooltip tells all about a box", smallProfile, async (page) => {
	await settle(page);
	const point = await pointAt(page, 0.25, 3);
	await page.mouse.move(point.x, point.y);
	const text = (await page.locator(".tooltip").textContent())!;
	for (const part of ["parse", "native", "worker", "50 samples", "50.0%", "40 samples", "40.0%", "2 processes"])
		assert.ok(text.includes(part), part);
	await page.mouse.move(point.x, 3);
	await page.locator(".tooltip").waitFor({ state: "detached" });
});

browserTest("the wheel with Ctrl zooms, a drag pans, nothing leaves the profile", smallProfile, async (page) => {
	await settle(page);
	const point = await pointAt(page, 0.5, 0);
	await page.mouse.move(point.x, point.y);
	await page.keyboard.down("Control");
	await page.mouse.wheel(0, -300);
	await page.keyboard.up("Control");
	await settle(page);
	await click(page, 0.98, 1);
	assert.equal(await focused(page), "worker (2 processes)", "at e times the size the window ends at 68 %");
	await press(page, "Home");
	await page.keyboard.press("+");
	await settle(page);
	await page.mouse.move(point.x, point.y);
	await page.mouse.down();
	await page.mouse.move(point.x - 2000, point.y, { steps: 3 });
	await page.mouse.up();
	await settle(page);
	await click(page, 0.97, 2);
	assert.equal(await focused(page), "[cut: no unwind rows]", "dragged to the right end");
});

browserTest("help lists the keys, and Escape closes it", smallProfile, async (page) => {
	await settle(page);
	await page.keyboard.press("?");
	assert.ok(await page.locator(".key-list kbd").count() > 20);
	await page.keyboard.press("Escape");
	await page.locator("dialog").waitFor({ state: "detached" });
});

browserTest("a kind in the legend highlights its frames", smallProfile, async (page) => {
	await settle(page);
	await page.locator(".legend button", { hasText: "kernel" }).click();
	await expectText(page, ".matched", "matched 45.0%");
	await page.locator(".legend button", { hasText: "kernel" }).click();
	assert.equal(await matched(page), "");
});

browserTest("every control can be reached and has a name", smallProfile, async (page) => {
	await settle(page);
	await page.keyboard.press("f");
	const controls = await page.locator("button:visible, input:visible, [tabindex='0']:visible").count();
	const seen = new Set<string>();
	for (let i = 0; i < controls + 5; i++) {
		await page.keyboard.press("Tab");
		const at = await page.evaluate(() => {
			const element = document.activeElement!;
			const name = element.getAttribute("aria-label") ?? element.textContent ?? "";
			return element === document.body ? "" : `${element.tagName} ${name.trim() || "NAMELESS"}`;
		});
		if (at)
			seen.add(at);
	}
	assert.ok([...seen].every((name) => !name.includes("NAMELESS")), [...seen].join("; "));
	for (const name of ["DIV Flame graph", "INPUT Search functions", "BUTTON Functions", "BUTTON Keys"])
		assert.ok(seen.has(name), name);
});

const HOSTILE = [
	"<script>window.hit=1</script>", "</script><img src=x onerror=window.hit=1>", "<svg onload=window.hit=1>",
	"a\u202eexe.gpj", "nul\0byte", "line\nfeed", "\u2028\u2029", "${window.hit=1}", "{{window.hit=1}}", "__proto__", "constructor",
	"javascript:window.hit=1", "x".repeat(100_000), "\ud800", "-->", "]]>", "&lt;b&gt;", "@CAIRN_PROFILE@", "",
];

function hostileProfile() {
	const writer = new ProfileWriter();
	HOSTILE.forEach((name, i) => {
		const process = writer.process(i, name);
		writer.sample(process, [{ name, kind: `k${i % 3}${name.slice(0, 40)}`, object: name, file: name, line: 1 }], HOSTILE.length - i);
	});
	writer.raw.session = { title: HOSTILE[1], host: HOSTILE[3], command: HOSTILE[0], notes: HOSTILE, cut: [{ reason: HOSTILE[1], samples: 1 }] };
	writer.raw.value = { name: HOSTILE[1]!, unit: HOSTILE[2]! };
	return writer.raw;
}

browserTest("hostile names are only text, wherever they are shown", hostileProfile, async (page) => {
	await settle(page);
	await press(page, "ArrowUp", "ArrowUp", "Enter");
	await press(page, "Home");
	for (const key of ["f", "s"])
		await page.keyboard.press(key);
	await page.keyboard.press("Escape");
	await page.locator(".spacer .table-row").first().click();
	const point = await pointAt(page, 0.02, 2);
	await page.mouse.move(point.x, point.y);
	await page.locator(".tooltip").waitFor();
	await page.keyboard.press("p");
	assert.equal(await page.evaluate(() => (window as unknown as { hit?: number }).hit), undefined);
	assert.equal(await page.locator("img, svg, iframe, object").count(), 0);
	assert.equal(await page.locator("script").count(), 2);
	const text = (await page.locator("body").innerText()).replace(/[\n\t]/g, "");
	assert.doesNotMatch(text, /[\u0000-\u001f\u200b-\u200f\u202a-\u202e\u2066-\u2069]/);
	assert.ok(text.includes("a\\u202eexe.gpj"));
	assert.ok(text.includes("nul\u2400byte"));
});

const MESSAGES: [string, unknown, RegExp][] = [
	["JSON that is broken", '{"version":1', /not valid JSON/],
	["a profile that is malformed", { ...smallProfile(), strings: 7 }, /malformed.*profile\.strings: not an array/s],
	["a profile that is newer", { version: 99 }, /newer than this viewer/],
	["an empty profile", { ...smallProfile(), samples: { stack: [], process: [], value: [] } }, /profile is empty/],
	["a page without a profile", "@CAIRN_PROFILE@", /no profile in this page/],
];

for (const [name, profile, expected] of MESSAGES)
	browserTest(`${name} is said to the reader`, () => profile, async (page) => {
		assert.match(await page.locator(".message").innerText(), expected);
	});

test("the policy lets nothing in and nothing out", async () => {
	const { page, errors, close } = await chromium.open(smallProfile());
	await settle(page);
	const outcome = await page.evaluate(async () => {
		const attempt = async (act: () => unknown) => {
			try {
				await act();
				return "allowed";
			} catch {
				return "refused";
			}
		};
		const script = document.createElement("script");
		return {
			text: await attempt(() => (script.text = "window.hit = 1")),
			markup: await attempt(() => (document.body.innerHTML = "<b>x</b>")),
			request: await attempt(() => fetch("https://example.invalid/")),
		};
	});
	assert.deepEqual(outcome, { text: "refused", markup: "refused", request: "refused" });
	assert.ok(errors.length > 0 && errors.every((error) => /Security Policy|Trusted/.test(error)), errors.join("\n"));
	await close();
});

browserTest("a narrow window keeps everything", smallProfile, async (page) => {
	await page.setViewportSize({ width: 400, height: 700 });
	await settle(page);
	await page.keyboard.press("f");
	await settle(page);
	const width = await page.evaluate(() => document.documentElement.scrollWidth);
	assert.ok(width <= 400);
	const flame = await box(page);
	assert.ok(flame.height > 100);
	await expectText(page, ".warnings", "3 lost");
});
