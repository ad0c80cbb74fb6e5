// SPDX-License-Identifier: Apache-2.0
/* Which colour is which kind of frame, and how much of the view each kind spends itself. */

import { useMemo } from "preact/hooks";
import { CUT_KIND, SHADES, SLOT_CUT, assignSlots, cssColour, shade } from "./colours.ts";
import type { Theme } from "./colours.ts";
import type { Profile } from "./data.ts";
import { formatShare } from "./format.ts";
import { matchFunctions, matchedWithin } from "./search.ts";
import type { Tree } from "./tree.ts";

/* A sample of the colour of KIND; of a process's box if KIND is -1. */
export function Swatch({ profile, theme, kind }: { profile: Profile; theme: Theme; kind: number }) {
	const slot = useMemo(() => assignSlots(profile.kinds), [profile])[kind];
	const style: Record<string, string> = {
		backgroundColor: slot === undefined ? cssColour(theme.neutral) : shade(theme, slot, (SHADES - 1) / 2),
	};
	if (slot === SLOT_CUT)
		style.backgroundImage = `repeating-linear-gradient(135deg, ${cssColour(theme.hatch)} 0 2px, transparent 2px 4px)`;
	return <span class="swatch" style={style} aria-hidden="true" />;
}

/* The self time of each kind within ROOT; for cut stacks all that stands on the cut. */
export function kindTotals(tree: Tree, root: number): Float64Array {
	const totals = new Float64Array(tree.profile.kinds.length);
	const { kind } = tree.profile.functions;
	const cut = tree.profile.kinds.indexOf(CUT_KIND);
	for (let node = root; node < tree.end[root]!; node++)
		if (tree.fn[node]! >= 0)
			totals[kind[tree.fn[node]!]!]! += tree.self[node]!;
	if (cut < 0)
		return totals;
	totals[cut] = matchedWithin(tree, matchFunctions(tree, (fn) => kind[fn] === cut), root);
	return totals;
}

interface LegendProps {
	tree: Tree;
	theme: Theme;
	zoomed: number;
	chosen: string | null;
	onChoose(kind: string | null): void;
}

function kindsPresent(profile: Profile): number[] {
	const { count, kind } = profile.functions;
	const present = new Set(kind.subarray(0, count));
	return profile.kinds.map((_, i) => i).filter((i) => present.has(i));
}

export function Legend({ tree, theme, zoomed, chosen, onChoose }: LegendProps) {
	const totals = useMemo(() => kindTotals(tree, zoomed), [tree, zoomed]);
	const present = useMemo(() => kindsPresent(tree.profile), [tree.profile]);
	return (
		<div class="legend" role="group" aria-label="Kinds of frames, with the share of samples that end in them">
			{present.map((kind) => {
				const name = tree.profile.kinds[kind]!;
				const share = formatShare(totals[kind]!, tree.total[zoomed]!);
				return (
					<button
						key={kind} type="button" aria-pressed={chosen === name}
						title={`${share} of the samples in view ${name === CUT_KIND ? "have" : "end in"} a ${name} frame. Click to highlight them.`}
						onClick={() => onChoose(chosen === name ? null : name)}
					>
						<Swatch profile={tree.profile} theme={theme} kind={kind} />
						<bdi>{name}</bdi> <span class="number">{share}</span>
					</button>
				);
			})}
		</div>
	);
}
