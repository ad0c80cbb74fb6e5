// SPDX-License-Identifier: Apache-2.0
/* What the reader chose, remembered between visits where the browser allows it (a file:// page often may not). */

import type { ThemeName } from "./colours.ts";

export interface Settings {
	/* null follows the system */
	theme: ThemeName | null;
	icicle: boolean;
	merge: boolean;
	order: "weight" | "name";
}

export const DEFAULTS: Settings = { theme: null, icicle: false, merge: true, order: "weight" };

const KEY = "cairn-viewer";

export function parseSettings(text: string | null): Settings {
	let stored: Partial<Record<keyof Settings, unknown>>;
	try {
		stored = Object(JSON.parse(text ?? "{}")) as typeof stored;
	} catch {
		return { ...DEFAULTS };
	}
	return {
		theme: stored.theme === "light" || stored.theme === "dark" ? stored.theme : null,
		icicle: stored.icicle === true,
		merge: stored.merge !== false,
		order: stored.order === "name" ? "name" : "weight",
	};
}

export function readSettings(): Settings {
	try {
		return parseSettings(localStorage.getItem(KEY));
	} catch {
		return { ...DEFAULTS };
	}
}

export function writeSettings(settings: Settings) {
	try {
		localStorage.setItem(KEY, JSON.stringify(settings));
	} catch {
		// No storage: the choice lasts as long as the page.
	}
}
