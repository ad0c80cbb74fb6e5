// SPDX-License-Identifier: Apache-2.0
/* The real viewer.html in Chromium, from a file, as a reader opens it. */

import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import type { BrowserContext, BrowserContextOptions, Page } from "playwright-core";
import { writePage } from "../profiles.ts";

export interface Opened {
	page: Page;
	/* what must stay empty: console errors, exceptions, violations of the policy */
	errors: string[];
	/* requests other than for the file itself */
	requests: string[];
	close(): Promise<void>;
}

const FLAGS = [
	"--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
	"--disable-component-update", "--disable-sync",
];

export class Chromium {
	#folder: string;
	#context: BrowserContext;
	#count = 0;

	private constructor(folder: string, context: BrowserContext) {
		this.#folder = folder;
		this.#context = context;
	}

	static async start(options: BrowserContextOptions = {}): Promise<Chromium> {
		const folder = await mkdtemp(join(tmpdir(), "cairn-ui-"));
		const context = await chromium.launchPersistentContext(join(folder, "user"), {
			executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
			headless: true,
			args: FLAGS,
			viewport: { width: 1400, height: 900 },
			colorScheme: "light",
			...options,
		});
		return new Chromium(folder, context);
	}

	async open(profile: unknown): Promise<Opened> {
		const viewer = await readFile("dist/viewer.html", "utf8");
		const file = join(this.#folder, `${this.#count++}.html`);
		await writeFile(file, writePage(viewer, profile));
		const page = await this.#context.newPage();
		const errors: string[] = [];
		const requests: string[] = [];
		const url = pathToFileURL(file).href;
		page.on("console", (message) => {
			if (message.type() === "error" || message.type() === "warning")
				errors.push(message.text());
		});
		page.on("pageerror", (error) => errors.push(error.message));
		page.on("request", (request) => {
			if (request.url() !== url)
				requests.push(request.url());
		});
		await page.goto(url);
		return { page, errors, requests, close: () => page.close() };
	}

	async stop() {
		await this.#context.close();
		await rm(this.#folder, { recursive: true, force: true });
	}
}

/* Waits until nothing moves any more. */
export async function settle(page: Page) {
	await page.waitForSelector('.flame[data-settled="true"]');
}
