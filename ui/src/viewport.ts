// SPDX-License-Identifier: Apache-2.0
/* The window onto the tree: which values lie between the left and right edge, and how far it is scrolled away from
   the root. Only numbers; flame-view.ts moves it and draw.ts shows it. */

import type { Tree } from "./tree.ts";
import { childrenOf, nodeAt } from "./tree.ts";

export interface Viewport {
	from: number;
	to: number;
	/* in CSS pixels, 0 shows the root */
	scroll: number;
}

// Beyond this a double no longer tells two neighbouring boxes apart.
const DEEPEST_ZOOM = 1e9;

export function whole(tree: Tree): Viewport {
	return { from: 0, to: tree.total[0]!, scroll: 0 };
}

/* VIEW moved and narrowed so that it lies within 0 … TOTAL. */
export function clampView(view: Viewport, total: number): Viewport {
	const size = Math.min(total, Math.max(view.to - view.from, total / DEEPEST_ZOOM));
	const from = Math.min(Math.max(0, view.from), total - size);
	return { from, to: from + size, scroll: view.scroll };
}

/* Shows 1 / FACTOR of what VIEW shows, and keeps the value AT where it is. */
export function zoomAt(view: Viewport, total: number, at: number, factor: number): Viewport {
	const from = at - (at - view.from) / factor;
	const to = at + (view.to - at) / factor;
	return clampView({ from, to, scroll: view.scroll }, total);
}

export function panBy(view: Viewport, total: number, delta: number): Viewport {
	return clampView({ ...view, from: view.from + delta, to: view.to + delta }, total);
}

export function spanOf(tree: Tree, node: number): { from: number; to: number } {
	return { from: tree.start[node]!, to: tree.start[node]! + tree.total[node]! };
}

const EASE_MS = 55;

/* VIEW after ELAPSED_MS on its way to TARGET; TARGET itself once the rest is too small to see. */
export function approach(view: Viewport, target: Viewport, elapsed_ms: number, width: number): Viewport {
	const part = 1 - Math.exp(-elapsed_ms / EASE_MS);
	const next = {
		from: view.from + (target.from - view.from) * part,
		to: view.to + (target.to - view.to) * part,
		scroll: view.scroll + (target.scroll - view.scroll) * part,
	};
	const pixel = (next.to - next.from) / Math.max(1, width);
	const near = Math.abs(next.from - target.from) < pixel / 3 && Math.abs(next.to - target.to) < pixel / 3;
	return near && Math.abs(next.scroll - target.scroll) < 0.5 ? target : next;
}

export type Step = "parent" | "child" | "next" | "previous";

/* Where the focus goes from NODE; NODE itself if there is nothing in that direction. */
export function stepFrom(tree: Tree, node: number, step: Step): number {
	if (step === "parent")
		return Math.max(0, tree.parent[node]!);
	if (step === "child") {
		let heaviest = node;
		for (const child of childrenOf(tree, node))
			if (heaviest === node || tree.total[child]! > tree.total[heaviest]!)
				heaviest = child;
		return heaviest;
	}
	const depth = tree.depth[node]!;
	const row = tree.rowNodes.subarray(tree.rowStart[depth]!, tree.rowStart[depth + 1]!);
	const at = row.indexOf(node) + (step === "next" ? 1 : -1);
	return row[at] ?? node;
}

/* The box at DEPTH under the fraction X of the window's width. */
export function nodeUnder(tree: Tree, view: Viewport, x: number, depth: number): number {
	return nodeAt(tree, depth, view.from + x * (view.to - view.from));
}
