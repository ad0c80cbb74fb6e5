// SPDX-License-Identifier: Apache-2.0
/* Paints the boxes of one frame. Everything is in device pixels. */

import {
	COLOUR_CUT, COLOUR_NEUTRAL, COLOUR_UNMATCHED, colourList, cssColour, functionColours,
} from "./colours.ts";
import type { Theme } from "./colours.ts";
import { Labels } from "./labels.ts";
import { Boxes, firstOf, layoutBoxes } from "./layout.ts";
import type { Matches } from "./search.ts";
import { isMatch } from "./search.ts";
import { groupName, groupOf, isInside, nodeName } from "./tree.ts";
import { Strips, pixelOf } from "./strips.ts";
import type { Rows } from "./strips.ts";
import type { Tree } from "./tree.ts";

export const ROW_HEIGHT = 19;
const FONT_SIZE = 12;
export const FONT_FAMILY = 'system-ui, -apple-system, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif';
const LABEL_MIN_WIDTH = 22;
const LABEL_PADDING = 4;

export interface Scene {
	tree: Tree;
	theme: Theme;
	matches: Matches | null;
	from: number;
	to: number;
	/* in device pixels */
	width: number;
	height: number;
	scroll: number;
	ratio: number;
	/* true: the root is at the top */
	icicle: boolean;
	/* ancestors of this node are shown paler */
	zoomed: number;
}

/* A row is a whole number of device pixels, so that all rows are the same. */
export function rowPixels(ratio: number): number {
	return Math.round(ROW_HEIGHT * ratio);
}

/* The top edge of the row at DEPTH. */
export function rowTop(scene: Scene, depth: number): number {
	const row = rowPixels(scene.ratio);
	const offset = depth * row - Math.round(scene.scroll);
	return scene.icicle ? offset : scene.height - row - offset;
}

export function depthAt(scene: Scene, y: number): number {
	const offset = (scene.icicle ? y : scene.height - 1 - y) + Math.round(scene.scroll);
	return Math.floor(offset / rowPixels(scene.ratio));
}

function makeHatch(context: CanvasRenderingContext2D, theme: Theme, ratio: number): CanvasPattern | null {
	const size = Math.max(4, Math.round(8 * ratio));
	const tile = document.createElement("canvas");
	tile.width = tile.height = size;
	const paint = tile.getContext("2d");
	if (!paint)
		return null;
	paint.fillStyle = cssColour(theme.cut);
	paint.fillRect(0, 0, size, size);
	paint.strokeStyle = cssColour(theme.hatch);
	paint.lineWidth = Math.max(1, size / 4);
	paint.beginPath();
	for (const shift of [-size, 0, size]) {
		paint.moveTo(shift - 1, size + 1);
		paint.lineTo(shift + size + 1, -1);
	}
	paint.stroke();
	return context.createPattern(tile, "repeat");
}

export class Painter {
	#context: CanvasRenderingContext2D;
	#boxes = new Boxes();
	#strips = new Strips();
	#colours = new Uint32Array(0);
	#colourOf: Uint16Array = new Uint16Array(0);
	#hatch: CanvasPattern | null = null;
	#labels: Labels | null = null;
	#made = { profile: null as unknown, tree: null as unknown, theme: null as unknown, ratio: 0 };

	constructor(context: CanvasRenderingContext2D) {
		this.#context = context;
	}

	#prepare(scene: Scene) {
		const { tree, theme, ratio } = scene;
		const made = this.#made;
		if (made.profile !== tree.profile)
			this.#colourOf = functionColours(tree.profile);
		if (made.profile !== tree.profile || made.theme !== theme || made.ratio !== ratio) {
			this.#colours = Uint32Array.from(colourList(theme, tree.profile.kinds), pixelOf);
			this.#hatch = makeHatch(this.#context, theme, ratio);
		}
		this.#context.font = `${Math.round(FONT_SIZE * ratio)}px ${FONT_FAMILY}`;
		if (made.tree !== tree || made.ratio !== ratio)
			this.#labels = new Labels((text) => this.#context.measureText(text).width);
		this.#made = { profile: tree.profile, tree, theme, ratio };
	}

	#colourIndex(scene: Scene, node: number): number {
		const fn = scene.tree.fn[firstOf(node)]!;
		if (scene.matches && !isMatch(scene.matches, fn))
			return COLOUR_UNMATCHED;
		return fn < 0 ? COLOUR_NEUTRAL : this.#colourOf[fn]!;
	}

	#fillBoxes(scene: Scene, rows: Rows) {
		const context = this.#context;
		const { count, node, left, right, depth } = this.#boxes;
		const gap = Math.max(1, Math.round(scene.ratio));
		const strips = this.#strips;
		strips.clear(scene.width, rows, pixelOf(scene.theme.background));
		for (let i = 0; i < count; i++) {
			const end = right[i]! - left[i]! > 3 * gap ? right[i]! - gap : right[i]!;
			strips.fill(depth[i]!, left[i]!, end, this.#colours[this.#colourIndex(scene, node[i]!)]!);
		}
		strips.draw(context, rows.top, rows.height);
		context.fillStyle = scene.theme.background;
		for (let row = rows.top + rows.height - gap; row < scene.height; row += rows.height)
			context.fillRect(0, row, scene.width, gap);
		this.#hatchCuts(scene, gap);
	}

	#hatchCuts(scene: Scene, gap: number) {
		if (!this.#hatch)
			return;
		const context = this.#context;
		const { count, node, left, right, depth } = this.#boxes;
		context.fillStyle = this.#hatch;
		for (let i = 0; i < count; i++) {
			const width = right[i]! - left[i]! - gap;
			if (width > 2 * gap && this.#colourIndex(scene, node[i]!) === COLOUR_CUT)
				context.fillRect(left[i]!, rowTop(scene, depth[i]!), width, rowPixels(scene.ratio) - gap);
		}
	}

	// Bars above and below are seen without telling colours apart.
	#markMatches(scene: Scene, rows: Rows) {
		const { tree, matches, theme, ratio } = scene;
		if (!matches)
			return;
		const { count, node, left, right, depth } = this.#boxes;
		const gap = Math.max(1, Math.round(ratio));
		const bar = Math.round(2 * ratio);
		const ink = pixelOf(theme.name === "light" ? theme.ink : "#ffffff");
		this.#strips.clear(scene.width, rows, 0);
		for (let i = 0; i < count; i++)
			if (isMatch(matches, tree.fn[firstOf(node[i]!)]!))
				this.#strips.fill(depth[i]!, left[i]!, Math.max(left[i]! + gap, right[i]! - gap), ink);
		this.#strips.drawBars(this.#context, rows, 0, bar);
		this.#strips.drawBars(this.#context, rows, rows.height - gap - bar, bar);
	}

	#paleAncestors(scene: Scene) {
		const { tree, zoomed, theme } = scene;
		if (zoomed <= 0)
			return;
		const context = this.#context;
		const { count, node, left, right, depth } = this.#boxes;
		context.fillStyle = theme.background;
		context.globalAlpha = theme.name === "light" ? 0.45 : 0.16;
		for (let i = 0; i < count; i++)
			if (node[i] !== zoomed && node[i]! >= 0 && isInside(tree, zoomed, node[i]!))
				context.fillRect(left[i]!, rowTop(scene, depth[i]!), right[i]! - left[i]!, rowPixels(scene.ratio));
		context.globalAlpha = 1;
	}

	#writeLabels(scene: Scene) {
		const context = this.#context;
		const { tree, theme, ratio } = scene;
		const { count, node, left, right, depth } = this.#boxes;
		const least = LABEL_MIN_WIDTH * ratio;
		const padding = LABEL_PADDING * ratio;
		const unmatched = (at: number) => scene.matches !== null && this.#colourIndex(scene, at) === COLOUR_UNMATCHED;
		const baseline = Math.round((ROW_HEIGHT - 1) * ratio * 0.5 + FONT_SIZE * ratio * 0.35);
		context.textBaseline = "alphabetic";
		context.direction = "ltr";
		for (const faded of scene.matches ? [false, true] : [false]) {
			context.fillStyle = faded ? theme.unmatchedInk : theme.ink;
			for (let i = 0; i < count; i++) {
				const width = right[i]! - left[i]!;
				if (width < least || node[i]! < 0 || unmatched(node[i]!) !== faded)
					continue;
				const fn = tree.fn[node[i]!]!;
				const name = fn < -1 ? groupName(tree, groupOf(fn)) : nodeName(tree, node[i]!);
				const text = this.#labels!.fit(fn, name, width - 2 * padding);
				if (text)
					context.fillText(text, left[i]! + padding, rowTop(scene, depth[i]!) + baseline);
			}
		}
	}

	paint(scene: Scene) {
		this.#prepare(scene);
		const context = this.#context;
		context.fillStyle = scene.theme.background;
		context.fillRect(0, 0, scene.width, scene.height);
		const ends = [depthAt(scene, 0), depthAt(scene, scene.height - 1)];
		const firstDepth = Math.max(0, Math.min(...ends));
		const lastDepth = Math.min(scene.tree.rowStart.length - 2, Math.max(...ends));
		if (lastDepth < firstDepth)
			return;
		const span = { from: scene.from, to: scene.to, width: scene.width, firstDepth, lastDepth };
		layoutBoxes(scene.tree, span, this.#boxes);
		const [first, last] = scene.icicle ? [firstDepth, lastDepth] : [lastDepth, firstDepth];
		const rows: Rows = { first, last, top: rowTop(scene, first), height: rowPixels(scene.ratio) };
		this.#fillBoxes(scene, rows);
		this.#paleAncestors(scene);
		this.#markMatches(scene, rows);
		this.#writeLabels(scene);
	}
}

/* Draws the frame round NODE's box: what the pointer is on, or what the keyboard is on (STRONG). */
export function paintOutline(context: CanvasRenderingContext2D, scene: Scene, node: number, strong: boolean) {
	const { tree, ratio, theme } = scene;
	const scale = scene.width / (scene.to - scene.from);
	const left = Math.max(-4, Math.round((tree.start[node]! - scene.from) * scale));
	const right = Math.min(scene.width + 4, Math.round((tree.start[node]! + tree.total[node]! - scene.from) * scale));
	const top = rowTop(scene, tree.depth[node]!);
	const line = Math.round((strong ? 2.5 : 1.5) * ratio);
	const width = Math.max(right - left, 3 * ratio);
	const height = rowPixels(ratio) - 1;
	if (strong) {
		context.strokeStyle = theme.background;
		context.lineWidth = line + 2 * ratio;
		context.strokeRect(left, top, width - 1, height);
	}
	context.strokeStyle = theme.name === "light" ? "#000000" : "#ffffff";
	context.lineWidth = line;
	context.strokeRect(left, top, width - 1, height);
}
