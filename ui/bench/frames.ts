// SPDX-License-Identifier: Apache-2.0
/* How long frames take with a large profile: drives the real page in Chromium and prints, per kind of movement, the
   time spent in our code per frame and the time between two frames. Run with a number of nodes, or 200,000. */

import type { Page } from "playwright-core";
import { loadProfile } from "../src/parse.ts";
import { functionTotals } from "../src/functions.ts";
import { findMatches, makeMatcher } from "../src/search.ts";
import { buildTree } from "../src/tree.ts";
import { Chromium, settle } from "../tests/browser/page.ts";
import { bigProfile } from "../tests/profiles.ts";

interface Frame {
	work: number;
	at: number;
	/* more frames follow: until the next one, the reader waits for us */
	moving: boolean;
}

declare global {
	interface Window {
		cairnFrames: Frame[];
	}
}

const NODES = Number(process.argv[2] ?? 200_000);
const FRAMES = 120;

function milliseconds(label: string, act: () => void) {
	const start = performance.now();
	act();
	console.log(`${label.padEnd(28)} ${(performance.now() - start).toFixed(0).padStart(6)} ms`);
}

function benchModel(json: string) {
	const loaded = loadProfile(json);
	if (loaded.state !== "profile")
		throw new Error("the made-up profile is not valid");
	const { profile } = loaded;
	const options = { merge: true, chosen: null, order: "weight" } as const;
	milliseconds("read and check the JSON", () => void loadProfile(json));
	const tree = buildTree(profile, options);
	milliseconds(`build a tree of ${tree.count}`, () => void buildTree(profile, options));
	milliseconds("table of functions", () => void functionTotals(tree));
	milliseconds("search", () => void findMatches(tree, makeMatcher("/method_1.*const/")!));
}

// Wraps what the browser calls us through from outside, so that the viewer carries no measuring of its own.
function recordFrames() {
	const original = window.requestAnimationFrame.bind(window);
	window.cairnFrames = [];
	const record = (at: number, act: () => void) => {
		const start = performance.now();
		act();
		const moving = document.querySelector<HTMLElement>(".flame")?.dataset.settled === "false";
		window.cairnFrames.push({ work: performance.now() - start, at, moving });
	};
	window.requestAnimationFrame = (callback) => original((now) => record(now, () => callback(now)));
	window.ResizeObserver = class extends ResizeObserver {
		constructor(callback: ResizeObserverCallback) {
			super((entries, self) => record(document.timeline.currentTime as number, () => callback(entries, self)));
		}
	};
}

type Movement = "zoom" | "pan" | "scroll" | "hover";

function move(movement: Movement, frames: number): Promise<void> {
	const flame = document.querySelector<HTMLElement>(".flame")!;
	const box = flame.getBoundingClientRect();
	let frame = 0;
	return new Promise((resolve) => {
		const next = () => {
			const turn = Math.floor(frame / 20) % 2 ? -1 : 1;
			const clientX = box.left + box.width * (0.2 + (0.6 * ((frame * 37) % 100)) / 100);
			const clientY = box.bottom - 20 - ((frame * 53) % 500);
			const base = { bubbles: true, cancelable: true, clientX, clientY };
			if (movement === "zoom")
				flame.dispatchEvent(new WheelEvent("wheel", { ...base, deltaY: -60 * turn, ctrlKey: true }));
			else if (movement === "pan")
				flame.dispatchEvent(new WheelEvent("wheel", { ...base, deltaX: 40 * turn }));
			else if (movement === "scroll")
				flame.dispatchEvent(new WheelEvent("wheel", { ...base, deltaY: -50 * turn }));
			else
				flame.dispatchEvent(new PointerEvent("pointermove", base));
			if (++frame < frames)
				setTimeout(() => requestAnimationFrame(next));
			else
				resolve();
		};
		next();
	});
}

function percentile(sorted: number[], part: number): string {
	return (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0).toFixed(1).padStart(6);
}

function row(label: string, values: number[]) {
	const sorted = [...values].sort((a, b) => a - b);
	return `${label} p50 ${percentile(sorted, 0.5)}  p95 ${percentile(sorted, 0.95)}  max ${percentile(sorted, 1)}`;
}

async function phase(page: Page, name: string, act: () => Promise<unknown>) {
	await settle(page);
	await page.evaluate(() => (window.cairnFrames = []));
	await act();
	await settle(page);
	const frames = await page.evaluate(() => window.cairnFrames);
	// Several callbacks of one frame have the same time.
	const work = new Map<number, number>();
	for (const frame of frames)
		work.set(frame.at, (work.get(frame.at) ?? 0) + frame.work);
	const times = [...work.keys()];
	const moving = new Map(frames.map((frame) => [frame.at, frame.moving]));
	const between = times.slice(1).flatMap((time, i) => (moving.get(times[i]!) ? [time - times[i]!] : []));
	console.log(`${name.padEnd(22)} ${String(times.length).padStart(4)} frames  ${row("work ms", [...work.values()])}   ` +
		row("between ms", between));
}

async function benchPage(json: string, deviceScaleFactor: number) {
	const chromium = await Chromium.start({ deviceScaleFactor });
	const { page, errors, close } = await chromium.open(json);
	await page.addInitScript(recordFrames);
	const start = performance.now();
	await page.reload();
	await settle(page);
	console.log(`\n1400 x 900, ${deviceScaleFactor} device pixel per pixel; first picture after ` +
		`${(performance.now() - start).toFixed(0)} ms`);
	for (const movement of ["zoom", "pan", "scroll", "hover"] as const)
		await phase(page, movement, () => page.evaluate(
			([script, name, count]) => new Function(`return (${script})("${name}", ${count})`)() as Promise<void>,
			[move.toString(), movement, FRAMES] as const,
		));
	await phase(page, "click and Escape", async () => {
		for (const x of [200, 600, 900]) {
			await page.mouse.click(x, 700);
			await settle(page);
			await page.keyboard.press("Escape");
			await settle(page);
		}
	});
	await phase(page, "resize", async () => {
		for (let width = 1400; width > 900; width -= 25)
			await page.setViewportSize({ width, height: 900 });
		await page.setViewportSize({ width: 1400, height: 900 });
	});
	await phase(page, "type a search", async () => {
		await page.keyboard.press("/");
		await page.keyboard.type("method_12");
	});
	await phase(page, "zoom while searching", () => page.evaluate(
		([script, count]) => new Function(`return (${script})("zoom", ${count})`)() as Promise<void>,
		[move.toString(), FRAMES] as const,
	));
	if (errors.length > 0)
		console.log(errors.join("\n"));
	await close();
	await chromium.stop();
}

const json = JSON.stringify(bigProfile(NODES));
console.log(`${NODES} nodes, ${(json.length / 1e6).toFixed(1)} MB of JSON`);
benchModel(json);
await benchPage(json, 1);
await benchPage(json, 2);
