// SPDX-License-Identifier: Apache-2.0
/* The flame graph as a component: canvases, pointer events and the tooltip. */

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { MutableRef } from "preact/hooks";
import type { Theme } from "./colours.ts";
import { FlameView } from "./flame-view.ts";
import type { Matches } from "./search.ts";
import { Tooltip } from "./tooltip.tsx";
import type { Tree } from "./tree.ts";

export interface FlameProps {
	tree: Tree;
	theme: Theme;
	matches: Matches | null;
	icicle: boolean;
	zoomed: number;
	view: MutableRef<FlameView | null>;
	onFocus(node: number): void;
	onZoom(node: number): void;
}

interface Hover {
	tree: Tree;
	node: number;
	x: number;
	y: number;
}

// A wheel's line and page modes in pixels, as browsers themselves scroll.
const LINE_PIXELS = 24;
const PAGE_PIXELS = 400;
const DRAG_PIXELS = 4;

function wheelPixels(delta: number, mode: number): number {
	return mode === 0 ? delta : delta * (mode === 1 ? LINE_PIXELS : PAGE_PIXELS);
}

function onWheel(event: WheelEvent, view: FlameView, box: DOMRect) {
	event.preventDefault();
	const across = wheelPixels(event.deltaX, event.deltaMode);
	const down = wheelPixels(event.deltaY, event.deltaMode);
	if (event.ctrlKey || event.metaKey)
		view.zoomBy(Math.exp(-down / 300), (event.clientX - box.left) / box.width);
	else if (event.shiftKey)
		view.panBy(across + down, 0);
	else
		view.panBy(across, down * view.downIsAway);
}

/* Pointer events of HOST as calls of VIEW; returns what takes the listeners off again. */
function listenToPointer(host: HTMLElement, view: FlameView, setHover: (at: Omit<Hover, "tree"> | null) => void) {
	let drag: { x: number; y: number; moved: boolean } | null = null;
	const at = (event: PointerEvent | MouseEvent) => {
		const box = host.getBoundingClientRect();
		const x = event.clientX - box.left;
		const y = event.clientY - box.top;
		return { x, y, node: view.nodeAtPoint(x, y) };
	};
	const hover = (place: { x: number; y: number; node: number } | null) => {
		view.hover(place ? place.node : -1);
		setHover(place && place.node >= 0 ? place : null);
	};
	const listeners: [string, (event: never) => void][] = [
		["pointerdown", (event: PointerEvent) => {
			if (event.button === 0)
				drag = { x: event.clientX, y: event.clientY, moved: false };
		}],
		["pointermove", (event: PointerEvent) => {
			if (!drag)
				return hover(at(event));
			const across = event.clientX - drag.x;
			const down = event.clientY - drag.y;
			if (!drag.moved && Math.hypot(across, down) < DRAG_PIXELS)
				return;
			if (!drag.moved)
				host.setPointerCapture(event.pointerId);
			drag = { x: event.clientX, y: event.clientY, moved: true };
			hover(null);
			view.panBy(-across, -down * view.downIsAway, true);
		}],
		["pointerup", (event: PointerEvent) => {
			const click = drag && !drag.moved;
			drag = null;
			const place = at(event);
			if (click && place.node >= 0)
				view.zoomTo(place.node);
			hover(null);
		}],
		["pointercancel", () => (drag = null)],
		["pointerleave", () => hover(null)],
		["wheel", (event: WheelEvent) => {
			hover(null);
			onWheel(event, view, host.getBoundingClientRect());
		}],
	];
	for (const [type, listener] of listeners)
		host.addEventListener(type, listener as EventListener, { passive: false });
	return () => {
		for (const [type, listener] of listeners)
			host.removeEventListener(type, listener as EventListener);
	};
}

function fitToHost(host: HTMLElement, view: FlameView) {
	const fit = () => {
		const { clientWidth, clientHeight } = host;
		if (clientWidth && clientHeight)
			view.resize(clientWidth, clientHeight, window.devicePixelRatio || 1);
	};
	const observer = new ResizeObserver(fit);
	observer.observe(host);
	fit();
	return () => observer.disconnect();
}

export function Flame(props: FlameProps) {
	const host = useRef<HTMLDivElement>(null);
	const canvas = useRef<HTMLCanvasElement>(null);
	const overlay = useRef<HTMLCanvasElement>(null);
	const [hover, setHover] = useState<Hover | null>(null);
	const latest = useRef(props);
	latest.current = props;

	useLayoutEffect(() => {
		const view = new FlameView(canvas.current!, overlay.current!, props.theme, {
			onFocus: (node) => latest.current.onFocus(node),
			onZoom: (node) => latest.current.onZoom(node),
		});
		props.view.current = view;
		const unfit = fitToHost(host.current!, view);
		const setPlace = (at: Omit<Hover, "tree"> | null) => setHover(at && { ...at, tree: latest.current.tree });
		const deafen = listenToPointer(host.current!, view, setPlace);
		return () => {
			deafen();
			unfit();
			view.destroy();
			props.view.current = null;
		};
	}, []);
	useLayoutEffect(() => props.view.current?.setTheme(props.theme), [props.theme]);
	useLayoutEffect(() => props.view.current?.setIcicle(props.icicle), [props.icicle]);
	// Matches before the tree: those of an older tree must never be drawn with a newer one.
	useLayoutEffect(() => props.view.current?.setMatches(props.matches), [props.matches]);
	useEffect(() => props.view.current?.setTree(props.tree), [props.tree]);

	const shown = hover && hover.tree === props.tree ? hover : null;
	return (
		<div
			class="flame" ref={host} tabIndex={0} role="application" aria-label="Flame graph"
			aria-roledescription="flame graph" aria-describedby="cairn-graph-help"
			onFocus={() => props.view.current?.setFocusShown(host.current!.matches(":focus-visible"))}
			onKeyDown={() => props.view.current?.setFocusShown(true)}
			onBlur={() => props.view.current?.setFocusShown(false)}
		>
			<canvas ref={canvas} aria-hidden="true" />
			<canvas ref={overlay} aria-hidden="true" />
			{shown && (
				<Tooltip
					tree={props.tree} theme={props.theme} node={shown.node} zoomed={props.zoomed}
					x={shown.x} y={shown.y} host={host.current!}
				/>
			)}
		</div>
	);
}
