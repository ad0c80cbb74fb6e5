// SPDX-License-Identifier: Apache-2.0
/* Which boxes a window onto the tree shows, and where: whole device pixels, so that edges are sharp and cheap. */

import type { Tree } from "./tree.ts";

export interface Span {
	/* the values at the left and right edge */
	from: number;
	to: number;
	/* in device pixels */
	width: number;
	firstDepth: number;
	/* inclusive */
	lastDepth: number;
}

/* A negative node is a sliver: one pixel for neighbours that are each too narrow to see. It has the number ~first. */
export function sliverOf(first: number): number {
	return ~first;
}

export function firstOf(node: number): number {
	return node < 0 ? ~node : node;
}

export const NARROWEST = 0.5;

/* Filled anew for each frame; its arrays grow and are kept, so that drawing makes no garbage. */
export class Boxes {
	count = 0;
	node = new Int32Array(1024);
	left = new Int32Array(1024);
	right = new Int32Array(1024);
	depth = new Int32Array(1024);

	#grow() {
		const grow = (old: Int32Array) => {
			const grown = new Int32Array(old.length * 2);
			grown.set(old);
			return grown;
		};
		this.node = grow(this.node);
		this.left = grow(this.left);
		this.right = grow(this.right);
		this.depth = grow(this.depth);
	}

	add(node: number, left: number, right: number, depth: number) {
		if (this.count === this.node.length)
			this.#grow();
		this.node[this.count] = node;
		this.left[this.count] = left;
		this.right[this.count] = right;
		this.depth[this.count++] = depth;
	}
}

/* The first position in [low, high) of row order whose box ends after VALUE. */
function firstEndingAfter(tree: Tree, low: number, high: number, value: number): number {
	while (low < high) {
		const middle = (low + high) >> 1;
		const node = tree.rowNodes[middle]!;
		if (tree.start[node]! + tree.total[node]! > value)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

function layoutRow(tree: Tree, span: Span, depth: number, boxes: Boxes) {
	const scale = span.width / (span.to - span.from);
	const high = tree.rowStart[depth + 1]!;
	let at = firstEndingAfter(tree, tree.rowStart[depth]!, high, span.from);
	let lastPixel = -1;
	while (at < high) {
		const node = tree.rowNodes[at]!;
		const start = tree.start[node]!;
		if (start >= span.to)
			break;
		const exactLeft = (start - span.from) * scale;
		const exactRight = exactLeft + tree.total[node]! * scale;
		const left = Math.round(Math.max(exactLeft, 0));
		const right = Math.round(Math.min(exactRight, span.width));
		if (exactRight - exactLeft >= NARROWEST && right > left) {
			boxes.add(node, left, right, depth);
			at++;
			continue;
		}
		// All others that end within this pixel would be drawn on top of each other: one search skips them.
		const pixel = Math.min(Math.max(0, Math.floor(exactLeft)), span.width - 1);
		if (pixel > lastPixel)
			boxes.add(sliverOf(node), pixel, pixel + 1, depth);
		lastPixel = pixel;
		at = Math.max(at + 1, firstEndingAfter(tree, at + 1, high, span.from + (pixel + 1) / scale));
	}
}

export function layoutBoxes(tree: Tree, span: Span, boxes: Boxes) {
	boxes.count = 0;
	const last = Math.min(span.lastDepth, tree.rowStart.length - 2);
	if (!(span.to > span.from))
		return;
	for (let depth = Math.max(0, span.firstDepth); depth <= last; depth++)
		layoutRow(tree, span, depth, boxes);
}

/* The deepest row with a box between the values FROM and TO. */
export function deepestRow(tree: Tree, from: number, to: number): number {
	for (let depth = tree.rowStart.length - 2; depth > 0; depth--) {
		const high = tree.rowStart[depth + 1]!;
		const at = firstEndingAfter(tree, tree.rowStart[depth]!, high, from);
		if (at < high && tree.start[tree.rowNodes[at]!]! < to)
			return depth;
	}
	return 0;
}
