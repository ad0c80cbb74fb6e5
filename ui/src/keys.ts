// SPDX-License-Identifier: Apache-2.0
/* The keys: one table for the handler and for the help, so that neither can know a key that the other does not. */

export type Action =
	| "up" | "down" | "previous" | "next" | "zoom" | "zoom-out" | "reset" | "enlarge" | "shrink" | "page-up"
	| "page-down" | "search" | "next-match" | "previous-match" | "icicle" | "order" | "merge" | "theme"
	| "processes" | "functions" | "session" | "help";

export interface KeyRow {
	action: Action;
	/* as KeyboardEvent.key; the first ones are shown in the help */
	keys: readonly string[];
	shown: string;
	help: string;
	/* "graph": only while the graph has the focus, because elsewhere the key means something else */
	scope: "graph" | "any";
}

export const KEYS: readonly KeyRow[] = [
	{ action: "up", keys: ["ArrowUp"], shown: "↑", help: "to the box above", scope: "graph" },
	{ action: "down", keys: ["ArrowDown"], shown: "↓", help: "to the box below", scope: "graph" },
	{ action: "previous", keys: ["ArrowLeft"], shown: "←", help: "to the box on the left in this row", scope: "graph" },
	{ action: "next", keys: ["ArrowRight"], shown: "→", help: "to the box on the right in this row", scope: "graph" },
	{ action: "zoom", keys: ["Enter"], shown: "Enter", help: "zoom to the focused box (or click it)", scope: "graph" },
	{ action: "zoom-out", keys: ["Escape", "Backspace"], shown: "Esc  Backspace", help: "clear the search, then zoom out one step", scope: "any" },
	{ action: "reset", keys: ["0", "Home"], shown: "0  Home", help: "show everything", scope: "graph" },
	{ action: "enlarge", keys: ["+", "="], shown: "+", help: "enlarge around the focus (or Ctrl and wheel)", scope: "any" },
	{ action: "shrink", keys: ["-"], shown: "−", help: "shrink", scope: "any" },
	{ action: "page-up", keys: ["PageUp"], shown: "Page up", help: "scroll up (or wheel)", scope: "graph" },
	{ action: "page-down", keys: ["PageDown"], shown: "Page down", help: "scroll down (or wheel, or drag)", scope: "graph" },
	{ action: "search", keys: ["/"], shown: "/  Ctrl-F", help: "search: text, =exact name, /regular expression/", scope: "any" },
	{ action: "next-match", keys: ["n"], shown: "n", help: "next match", scope: "any" },
	{ action: "previous-match", keys: ["N"], shown: "N", help: "previous match", scope: "any" },
	{ action: "icicle", keys: ["i"], shown: "i", help: "flame (root at the bottom) or icicle (root at the top)", scope: "any" },
	{ action: "order", keys: ["o"], shown: "o", help: "order boxes by weight or by name", scope: "any" },
	{ action: "merge", keys: ["m"], shown: "m", help: "one box per process name or one per process", scope: "any" },
	{ action: "processes", keys: ["p"], shown: "p", help: "choose processes", scope: "any" },
	{ action: "functions", keys: ["f"], shown: "f", help: "table of functions, with callers and callees", scope: "any" },
	{ action: "session", keys: ["s"], shown: "s", help: "facts of the session", scope: "any" },
	{ action: "theme", keys: ["t"], shown: "t", help: "light or dark", scope: "any" },
	{ action: "help", keys: ["?"], shown: "?", help: "this list", scope: "any" },
];

export interface KeyPress {
	key: string;
	ctrlKey: boolean;
	metaKey: boolean;
	altKey: boolean;
}

export interface KeyPlace {
	inText: boolean;
	/* in the graph, or nowhere in particular */
	inGraph: boolean;
	inDialog: boolean;
}

/* What PRESS means at PLACE, null if it is not ours. */
export function actionFor(press: KeyPress, place: KeyPlace): Action | null {
	if (place.inDialog)
		return null;
	if ((press.ctrlKey || press.metaKey) && !press.altKey && press.key.toLowerCase() === "f")
		return "search";
	if (press.ctrlKey || press.metaKey || press.altKey || place.inText)
		return null;
	const row = KEYS.find((each) => each.keys.includes(press.key));
	return row && (row.scope === "any" || place.inGraph) ? row.action : null;
}
