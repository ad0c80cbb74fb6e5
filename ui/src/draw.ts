// SPDX-License-Identifier: Apache-2.0
/* Paints the boxes of one frame. Everything is in device pixels. */

import {
	COLOUR_CUT, COLOUR_NEUTRAL, COLOUR_SLIVER, COLOUR_UNMATCHED, colourList, cssColour, functionColours,
} from "./colours.ts";
import type { Theme } from "./colours.ts";
import { Labels } from "./labels.ts";
import { Boxes, SLIVERS, layoutBoxes } from "./layout.ts";
import type { Matches } from "./search.ts";
import { isMatch } from "./search.ts";
import { groupName, groupOf, isInside, nodeName } from "./tree.ts";
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

/* The top edge of the row at DEPTH. */
export function rowTop(scene: Scene, depth: number): number {
	const row = ROW_HEIGHT * scene.ratio;
	const offset = depth * row - scene.scroll;
	return Math.round(scene.icicle ? offset : scene.height - row - offset);
}

export function depthAt(scene: Scene, y: number): number {
	const row = ROW_HEIGHT * scene.ratio;
	return Math.floor(((scene.icicle ? y : scene.height - y) + scene.scroll) / row);
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
	#styles: (string | CanvasPattern)[] = [];
	#colourOf: Uint16Array = new Uint16Array(0);
	#labels: Labels | null = null;
	#made = { profile: null as unknown, tree: null as unknown, theme: null as unknown, ratio: 0 };
	// Boxes sorted by colour: setting the fill style per box would cost more than filling it.
	#colour = new Uint16Array(1024);
	#order = new Int32Array(1024);
	#counts = new Int32Array(0);

	constructor(context: CanvasRenderingContext2D) {
		this.#context = context;
	}

	get boxCount(): number {
		return this.#boxes.count;
	}

	#prepare(scene: Scene) {
		const { tree, theme, ratio } = scene;
		const made = this.#made;
		if (made.profile !== tree.profile)
			this.#colourOf = functionColours(tree.profile);
		if (made.profile !== tree.profile || made.theme !== theme || made.ratio !== ratio) {
			this.#styles = colourList(theme, tree.profile.kinds);
			this.#styles[COLOUR_CUT] = makeHatch(this.#context, theme, ratio) ?? this.#styles[COLOUR_CUT]!;
			this.#counts = new Int32Array(this.#styles.length + 1);
		}
		this.#context.font = `${Math.round(FONT_SIZE * ratio)}px ${FONT_FAMILY}`;
		if (made.tree !== tree || made.ratio !== ratio)
			this.#labels = new Labels((text) => this.#context.measureText(text).width);
		this.#made = { profile: tree.profile, tree, theme, ratio };
	}

	#pickColour(scene: Scene, node: number): number {
		if (node === SLIVERS)
			return COLOUR_SLIVER;
		const fn = scene.tree.fn[node]!;
		if (scene.matches && !isMatch(scene.matches, fn))
			return COLOUR_UNMATCHED;
		return fn < 0 ? COLOUR_NEUTRAL : this.#colourOf[fn]!;
	}

	#sortByColour(scene: Scene) {
		const { count, node } = this.#boxes;
		if (this.#colour.length < count) {
			this.#colour = new Uint16Array(count * 2);
			this.#order = new Int32Array(count * 2);
		}
		const counts = this.#counts.fill(0);
		for (let i = 0; i < count; i++) {
			this.#colour[i] = this.#pickColour(scene, node[i]!);
			counts[this.#colour[i]! + 1]!++;
		}
		for (let i = 1; i < counts.length; i++)
			counts[i]! += counts[i - 1]!;
		for (let i = 0; i < count; i++)
			this.#order[counts[this.#colour[i]!]!++] = i;
	}

	#fillBoxes(scene: Scene) {
		const context = this.#context;
		const { count, left, right, depth } = this.#boxes;
		const gap = Math.max(1, Math.round(scene.ratio));
		const height = Math.round(ROW_HEIGHT * scene.ratio) - gap;
		let colour = -1;
		for (let n = 0; n < count; n++) {
			const i = this.#order[n]!;
			if (this.#colour[i] !== colour) {
				colour = this.#colour[i]!;
				context.fillStyle = this.#styles[colour]!;
			}
			const width = right[i]! - left[i]!;
			context.fillRect(left[i]!, rowTop(scene, depth[i]!), width > 3 * gap ? width - gap : width, height);
		}
	}

	// Bars above and below are seen without telling colours apart.
	#markMatches(scene: Scene) {
		const { tree, matches, theme, ratio } = scene;
		if (!matches)
			return;
		const context = this.#context;
		const { count, node, left, right, depth } = this.#boxes;
		const gap = Math.max(1, Math.round(ratio));
		const bar = Math.round(2 * ratio);
		const height = Math.round(ROW_HEIGHT * ratio) - gap;
		context.fillStyle = theme.name === "light" ? theme.ink : "#ffffff";
		for (let i = 0; i < count; i++) {
			if (node[i] === SLIVERS || !isMatch(matches, tree.fn[node[i]!]!))
				continue;
			const top = rowTop(scene, depth[i]!);
			const width = Math.max(gap, right[i]! - left[i]! - gap);
			context.fillRect(left[i]!, top, width, bar);
			context.fillRect(left[i]!, top + height - bar, width, bar);
		}
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
			if (node[i] !== zoomed && node[i] !== SLIVERS && isInside(tree, zoomed, node[i]!))
				context.fillRect(left[i]!, rowTop(scene, depth[i]!), right[i]! - left[i]!, ROW_HEIGHT * scene.ratio);
		context.globalAlpha = 1;
	}

	#writeLabels(scene: Scene) {
		const context = this.#context;
		const { tree, theme, ratio } = scene;
		const { count, node, left, right, depth } = this.#boxes;
		const least = LABEL_MIN_WIDTH * ratio;
		const padding = LABEL_PADDING * ratio;
		const baseline = Math.round((ROW_HEIGHT - 1) * ratio * 0.5 + FONT_SIZE * ratio * 0.35);
		context.textBaseline = "alphabetic";
		context.direction = "ltr";
		for (const faded of [false, true]) {
			context.fillStyle = faded ? theme.unmatchedInk : theme.ink;
			for (let i = 0; i < count; i++) {
				const width = right[i]! - left[i]!;
				if (width < least || node[i] === SLIVERS || (this.#colour[i] === COLOUR_UNMATCHED) !== faded)
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
		const span = {
			from: scene.from, to: scene.to, width: scene.width,
			firstDepth: Math.min(...ends), lastDepth: Math.max(...ends),
		};
		layoutBoxes(scene.tree, span, this.#boxes);
		this.#sortByColour(scene);
		this.#fillBoxes(scene);
		this.#paleAncestors(scene);
		this.#markMatches(scene);
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
	const height = Math.round(ROW_HEIGHT * ratio) - 1;
	if (strong) {
		context.strokeStyle = theme.background;
		context.lineWidth = line + 2 * ratio;
		context.strokeRect(left, top, width - 1, height);
	}
	context.strokeStyle = theme.name === "light" ? "#000000" : "#ffffff";
	context.lineWidth = line;
	context.strokeRect(left, top, width - 1, height);
}
