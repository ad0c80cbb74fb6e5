// SPDX-License-Identifier: Apache-2.0
/* What is under the pointer. */

import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { Swatch } from "./legend.tsx";
import type { Theme } from "./colours.ts";
import { describeNode } from "./describe.ts";
import type { Tree } from "./tree.ts";

interface TooltipProps {
	tree: Tree;
	theme: Theme;
	node: number;
	zoomed: number;
	x: number;
	y: number;
	host: HTMLElement;
}

const OFFSET = 14;

export function Tooltip({ tree, theme, node, zoomed, x, y, host }: TooltipProps) {
	const box = useRef<HTMLDivElement>(null);
	const about = useMemo(() => describeNode(tree, node, zoomed), [tree, node, zoomed]);
	useLayoutEffect(() => {
		const tip = box.current!;
		const left = x + OFFSET + tip.offsetWidth > host.clientWidth ? x - OFFSET - tip.offsetWidth : x + OFFSET;
		const top = y + OFFSET + tip.offsetHeight > host.clientHeight ? y - OFFSET - tip.offsetHeight : y + OFFSET;
		tip.style.left = `${Math.max(2, left)}px`;
		tip.style.top = `${Math.max(2, top)}px`;
	});
	const fn = tree.fn[node]!;
	const kind = fn >= 0 ? tree.profile.functions.kind[fn]! : -1;
	return (
		<div class="tooltip" ref={box} aria-hidden="true">
			<div class="tooltip-name"><bdi>{about.name}</bdi></div>
			<div class="tooltip-where">
				{about.kind && <span><Swatch profile={tree.profile} theme={theme} kind={kind} />{about.kind}</span>}
				{about.inlined && <span>{about.inlined}</span>}
				{about.object && <span><bdi>{about.object}</bdi></span>}
				{about.location && <span><bdi>{about.location}</bdi></span>}
			</div>
			<table>
				<tbody>
					<tr><th>Total</th><td>{about.total}</td><td>{about.shareOfWhole}</td></tr>
					<tr><th>Self</th><td>{about.self}</td><td>{about.selfShare}</td></tr>
					{zoomed > 0 && <tr><th>Of view</th><td /><td>{about.shareOfView}</td></tr>}
				</tbody>
			</table>
			<div class="tooltip-where"><span>{about.processes}</span></div>
		</div>
	);
}
