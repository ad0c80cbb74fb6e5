// SPDX-License-Identifier: Apache-2.0
/* Pictures of the viewer, for people to look at: dist/shots/*.png. */

import { mkdir } from "node:fs/promises";
import type { Page } from "playwright-core";
import { Chromium, settle } from "../tests/browser/page.ts";
import { realisticProfile } from "../tests/profiles.ts";

interface Shot {
	name: string;
	width: number;
	height: number;
	dark: boolean;
	act(page: Page): Promise<void>;
}

const nothing = async () => undefined;

const SHOTS: Shot[] = [
	{ name: "light", width: 1400, height: 900, dark: false, act: nothing },
	{ name: "dark", width: 1400, height: 900, dark: true, act: nothing },
	{ name: "narrow", width: 700, height: 800, dark: false, act: nothing },
	{
		name: "search", width: 1400, height: 900, dark: false,
		act: async (page) => {
			await page.keyboard.press("/");
			await page.keyboard.type("_copy");
		},
	},
	{
		name: "table", width: 1400, height: 900, dark: true,
		act: async (page) => {
			await page.keyboard.press("f");
			await page.click(".spacer .table-row:nth-child(3)");
		},
	},
	{
		name: "narrow-table", width: 700, height: 900, dark: true,
		act: async (page) => {
			await page.keyboard.press("i");
			await page.keyboard.press("f");
		},
	},
	{
		name: "tooltip", width: 1400, height: 900, dark: false,
		act: async (page) => {
			await page.mouse.click(300, 804);
			await settle(page);
			await page.mouse.move(420, 752);
		},
	},
	{
		name: "focus", width: 1400, height: 900, dark: true,
		act: async (page) => {
			for (const key of ["ArrowUp", "ArrowUp", "ArrowUp", "ArrowUp", "ArrowRight", "ArrowUp", "ArrowUp"])
				await page.keyboard.press(key);
		},
	},
	{ name: "processes", width: 1400, height: 900, dark: false, act: (page) => page.keyboard.press("p") },
	{ name: "help", width: 1400, height: 900, dark: false, act: (page) => page.keyboard.press("?") },
	{ name: "session", width: 1400, height: 900, dark: true, act: (page) => page.keyboard.press("s") },
];

await mkdir("dist/shots", { recursive: true });
const chromium = await Chromium.start();
for (const shot of SHOTS) {
	const { page, errors, close } = await chromium.open(realisticProfile());
	await page.setViewportSize({ width: shot.width, height: shot.height });
	await page.emulateMedia({ colorScheme: shot.dark ? "dark" : "light" });
	await page.evaluate(() => localStorage.clear());
	await page.reload();
	await settle(page);
	await shot.act(page);
	await settle(page);
	await page.screenshot({ path: `dist/shots/${shot.name}.png` });
	console.log(shot.name, errors.join("; "));
	await close();
}
await chromium.stop();
