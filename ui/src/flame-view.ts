// SPDX-License-Identifier: Apache-2.0
/* The flame graph's canvas: keeps the window, moves it smoothly, and paints when something changed. It knows no
   toolbar and no keys; flame.tsx turns events into calls of it. */

import type { Theme } from "./colours.ts";
import { Painter, depthAt, paintOutline, rowPixels } from "./draw.ts";
import type { Scene } from "./draw.ts";
import { deepestRow } from "./layout.ts";
import type { Matches } from "./search.ts";
import { findPath, isInside, pathOf } from "./tree.ts";
import type { Tree } from "./tree.ts";
import { approach, clampView, nodeUnder, panBy, spanOf, stepFrom, whole, zoomAt } from "./viewport.ts";
import type { Step, Viewport } from "./viewport.ts";

export interface FlameListener {
	onFocus(node: number): void;
	onZoom(node: number): void;
}

const HISTORY_MAX = 100;
// Rows kept visible between the focus and the edge it moves towards.
const MARGIN_ROWS = 3;

export class FlameView {
	#canvas: HTMLCanvasElement;
	#overlay: HTMLCanvasElement;
	#painter: Painter;
	#listener: FlameListener;
	#tree: Tree | null = null;
	#theme: Theme;
	#matches: Matches | null = null;
	#icicle = false;
	#view: Viewport = { from: 0, to: 1, scroll: 0 };
	#target: Viewport = { from: 0, to: 1, scroll: 0 };
	#zoomed = 0;
	#focused = 0;
	#hovered = -1;
	#showFocus = false;
	#history: { view: Viewport; zoomed: number }[] = [];
	#size = { width: 0, height: 0, ratio: 1 };
	#request = 0;
	#lastFrame = 0;
	#dirty = false;

	constructor(canvas: HTMLCanvasElement, overlay: HTMLCanvasElement, theme: Theme, listener: FlameListener) {
		this.#canvas = canvas;
		this.#overlay = overlay;
		this.#theme = theme;
		this.#listener = listener;
		this.#painter = new Painter(canvas.getContext("2d", { alpha: false })!);
	}

	get focused(): number {
		return this.#focused;
	}

	get zoomed(): number {
		return this.#zoomed;
	}

	/* Zoom and focus stay on the same functions, as far as TREE has them. */
	setTree(tree: Tree) {
		const old = this.#tree;
		this.#tree = tree;
		this.#hovered = -1;
		this.#history = [];
		this.#focused = old ? findPath(tree, pathOf(old, this.#focused)) : 0;
		this.#zoomed = old ? findPath(tree, pathOf(old, this.#zoomed)) : 0;
		const scroll = this.#target.scroll;
		this.#target = { ...whole(tree), ...spanOf(tree, this.#zoomed), scroll };
		this.#limitScroll();
		this.#view = this.#target;
		this.#redraw();
		this.#listener.onZoom(this.#zoomed);
		this.#listener.onFocus(this.#focused);
	}

	setTheme(theme: Theme) {
		this.#theme = theme;
		this.#redraw();
	}

	setMatches(matches: Matches | null) {
		this.#matches = matches;
		this.#redraw();
	}

	setIcicle(icicle: boolean) {
		this.#icicle = icicle;
		this.#redraw();
	}

	/* SHOWN: the keyboard is here, so its focus must be seen. */
	setFocusShown(shown: boolean) {
		this.#showFocus = shown;
		this.#schedule();
	}

	/* Keys that move in the graph work from anywhere on the page; from then on the graph has them. */
	takeKeyboard() {
		this.#canvas.parentElement?.focus({ preventScroll: true });
		this.setFocusShown(true);
	}

	/* In CSS pixels. Paints at once: a canvas is cleared when its size changes. */
	resize(width: number, height: number, ratio: number) {
		this.#size = { width: Math.max(1, width), height: Math.max(1, height), ratio };
		for (const canvas of [this.#canvas, this.#overlay]) {
			canvas.width = Math.max(1, Math.round(width * ratio));
			canvas.height = Math.max(1, Math.round(height * ratio));
		}
		this.#limitScroll();
		this.#dirty = true;
		this.#paint();
	}

	#scene(): Scene {
		const { ratio } = this.#size;
		return {
			tree: this.#tree!, theme: this.#theme, matches: this.#matches,
			from: this.#view.from, to: this.#view.to, scroll: this.#view.scroll * ratio,
			width: this.#canvas.width, height: this.#canvas.height, ratio,
			icicle: this.#icicle, zoomed: this.#zoomed,
		};
	}

	#redraw() {
		this.#dirty = true;
		this.#schedule();
	}

	#schedule() {
		this.#canvas.parentElement?.setAttribute("data-settled", "false");
		if (!this.#request)
			this.#request = requestAnimationFrame((now) => this.#frame(now));
	}

	#frame(now: number) {
		this.#request = 0;
		const elapsed_ms = Math.min(50, this.#lastFrame ? now - this.#lastFrame : 16);
		this.#lastFrame = now;
		if (this.#view !== this.#target) {
			const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
			this.#view = still ? this.#target : approach(this.#view, this.#target, elapsed_ms, this.#size.width);
			this.#dirty = true;
		}
		this.#paint();
		if (this.#view !== this.#target) {
			this.#schedule();
			return;
		}
		this.#lastFrame = 0;
		this.#canvas.parentElement?.setAttribute("data-settled", "true");
	}

	#paint() {
		if (!this.#tree)
			return;
		const scene = this.#scene();
		if (this.#dirty)
			this.#painter.paint(scene);
		this.#dirty = false;
		const context = this.#overlay.getContext("2d")!;
		context.clearRect(0, 0, scene.width, scene.height);
		if (this.#hovered >= 0)
			paintOutline(context, scene, this.#hovered, false);
		if (this.#showFocus)
			paintOutline(context, scene, this.#focused, true);
	}

	// In CSS pixels, as the scroll.
	get #rowHeight(): number {
		return rowPixels(this.#size.ratio) / this.#size.ratio;
	}

	#limitScroll() {
		if (!this.#tree)
			return;
		const { from, to, scroll } = this.#target;
		const content = (deepestRow(this.#tree, from, to) + 1) * this.#rowHeight;
		const most = Math.max(0, content - this.#size.height);
		const limited = Math.min(most, Math.max(0, scroll));
		if (limited !== scroll)
			this.#target = { ...this.#target, scroll: limited };
	}

	#moveTo(target: Viewport) {
		this.#target = target;
		this.#limitScroll();
		this.#schedule();
	}

	/* The scroll that shows NODE with its parents, if they fit. */
	#scrollFor(node: number, scroll: number): number {
		const { height } = this.#size;
		const row = this.#rowHeight;
		const at = this.#tree!.depth[node]! * row;
		const margin = Math.min(MARGIN_ROWS * row, height / 4);
		if (at + row + margin > scroll + height)
			return at + row + margin - height;
		return at - margin < scroll ? Math.max(0, at - margin) : scroll;
	}

	/* The box at the CSS pixel X, Y of the canvas, or -1. */
	nodeAtPoint(x: number, y: number): number {
		if (!this.#tree)
			return -1;
		const scene = this.#scene();
		const depth = depthAt(scene, y * scene.ratio);
		return nodeUnder(this.#tree, this.#view, x / this.#size.width, depth);
	}

	hover(node: number) {
		if (node === this.#hovered)
			return;
		this.#hovered = node;
		this.#schedule();
	}

	focus(node: number) {
		if (!this.#tree)
			return;
		this.#focused = node;
		const span = spanOf(this.#tree, node);
		const { from, to } = this.#target;
		const scroll = this.#scrollFor(node, this.#target.scroll);
		const outside = span.to <= from || span.from >= to;
		const middle = (span.from + span.to) / 2 - (from + to) / 2;
		const target = { ...this.#target, scroll };
		this.#moveTo(outside ? panBy(target, this.#tree.total[0]!, middle) : target);
		this.#listener.onFocus(node);
	}

	/* UP and DOWN are directions on the screen, which depend on where the root is. */
	step(direction: Step | "up" | "down") {
		if (!this.#tree)
			return;
		const away = this.#icicle ? "down" : "up";
		const step = direction === "up" || direction === "down" ? (direction === away ? "child" : "parent") : direction;
		this.focus(stepFrom(this.#tree, this.#focused, step));
	}

	zoomTo(node: number) {
		if (!this.#tree || this.#tree.total[node] === 0)
			return;
		this.#history.push({ view: this.#target, zoomed: this.#zoomed });
		if (this.#history.length > HISTORY_MAX)
			this.#history.shift();
		this.#goTo(node, { ...this.#target, ...spanOf(this.#tree, node) });
		this.focus(node);
	}

	#goTo(zoomed: number, target: Viewport) {
		this.#zoomed = zoomed;
		this.#dirty = true;
		this.#moveTo({ ...target, scroll: this.#scrollFor(zoomed, target.scroll) });
		this.#listener.onZoom(zoomed);
	}

	/* Back to where the last zoomTo() came from; false if the whole tree was shown already. */
	zoomOut(): boolean {
		if (!this.#tree)
			return false;
		const back = this.#history.pop();
		const all = whole(this.#tree);
		const shown = this.#target.from === all.from && this.#target.to === all.to;
		if (!back && shown && this.#zoomed === 0)
			return false;
		this.#goTo(back ? back.zoomed : 0, back ? back.view : all);
		return true;
	}

	reset() {
		if (!this.#tree)
			return;
		this.#history = [];
		this.#goTo(0, whole(this.#tree));
		this.focus(0);
	}

	/* Enlarges by FACTOR round the fraction X of the width, or round the focus. */
	zoomBy(factor: number, x?: number) {
		if (!this.#tree)
			return;
		const { from, to } = this.#target;
		const span = spanOf(this.#tree, this.#focused);
		const centre = Math.min(to, Math.max(from, (span.from + span.to) / 2));
		const at = x === undefined ? centre : this.#view.from + x * (this.#view.to - this.#view.from);
		this.#moveTo(zoomAt(this.#target, this.#tree.total[0]!, at, factor));
		this.#leaveZoomed();
	}

	// Shares and the paler ancestors refer to the zoomed node, which must be what is being looked at.
	#leaveZoomed() {
		const tree = this.#tree!;
		const { from, to } = this.#target;
		let node = this.#zoomed;
		const slack = (to - from) * 1e-9;
		while (node > 0 && (from < tree.start[node]! - slack || to > tree.start[node]! + tree.total[node]! + slack))
			node = tree.parent[node]!;
		if (node === this.#zoomed)
			return;
		this.#zoomed = node;
		this.#dirty = true;
		this.#listener.onZoom(node);
	}

	/* Moves the window by CSS pixels, to the right and away from the root. AT_ONCE follows a dragging hand. */
	panBy(right: number, away: number, at_once = false) {
		if (!this.#tree)
			return;
		const { from, to, scroll } = this.#target;
		const delta = (right / this.#size.width) * (to - from);
		const moved = panBy({ ...this.#target, scroll: scroll + away }, this.#tree.total[0]!, delta);
		this.#moveTo(clampView(moved, this.#tree.total[0]!));
		this.#leaveZoomed();
		if (at_once) {
			this.#view = this.#target;
			this.#dirty = true;
		}
	}

	/* The sign of a downward scroll, in rows away from the root. */
	get downIsAway(): 1 | -1 {
		return this.#icicle ? 1 : -1;
	}

	isZoomedInside(node: number): boolean {
		return this.#tree !== null && isInside(this.#tree, this.#zoomed, node);
	}

	destroy() {
		cancelAnimationFrame(this.#request);
		this.#request = 0;
		this.#tree = null;
	}
}
