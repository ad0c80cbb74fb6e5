// SPDX-License-Identifier: Apache-2.0
/* The table of functions: self and total time of each function in a view, its callers and callees. */

import { functionName, stringAt } from "./data.ts";
import type { Tree } from "./tree.ts";

export interface FunctionTotals {
	/* by function; a recursive function counts once per sample */
	total: Float64Array;
	self: Float64Array;
	/* functions that occur at all */
	present: Int32Array;
}

/* Calls VISIT for each node below ROOT; OUTERMOST says that no ancestor below ROOT has the same function. */
function walkFunctions(tree: Tree, root: number, visit: (node: number, fn: number, outermost: boolean) => void) {
	const active = new Int32Array(tree.profile.functions.count);
	const path: number[] = [];
	for (let node = root; node < tree.end[root]!; node++) {
		while (path.length > 0 && node >= tree.end[path[path.length - 1]!]!)
			active[tree.fn[path.pop()!]!]!--;
		const fn = tree.fn[node]!;
		if (fn < 0)
			continue;
		visit(node, fn, active[fn]! === 0);
		active[fn]!++;
		path.push(node);
	}
}

export function functionTotals(tree: Tree, root = 0): FunctionTotals {
	const { count } = tree.profile.functions;
	const total = new Float64Array(count);
	const self = new Float64Array(count);
	const seen = new Uint8Array(count);
	walkFunctions(tree, root, (node, fn, outermost) => {
		seen[fn] = 1;
		self[fn]! += tree.self[node]!;
		if (outermost)
			total[fn]! += tree.total[node]!;
	});
	const present: number[] = [];
	for (let fn = 0; fn < count; fn++)
		if (seen[fn])
			present.push(fn);
	return { total, self, present: Int32Array.from(present) };
}

export type SortKey = "name" | "kind" | "object" | "self" | "total";

export interface Sorting {
	key: SortKey;
	descending: boolean;
}

function textOf(tree: Tree, fn: number, key: "name" | "kind" | "object"): string {
	const { functions, kinds } = tree.profile;
	if (key === "name")
		return functionName(tree.profile, fn);
	return key === "kind" ? kinds[functions.kind[fn]!]! : stringAt(tree.profile, functions.object[fn]!);
}

/* The functions of TOTALS that KEEP accepts, sorted; equal rows by total, so that the order is always the same. */
export function sortFunctions(
	tree: Tree, totals: FunctionTotals, sorting: Sorting, keep: (fn: number) => boolean,
): Int32Array {
	const rows = totals.present.filter(keep);
	const sign = sorting.descending ? -1 : 1;
	const { key } = sorting;
	const tie = (a: number, b: number) => totals.total[b]! - totals.total[a]! || a - b;
	if (key === "self" || key === "total") {
		const values = totals[key];
		return rows.sort((a, b) => sign * (values[a]! - values[b]!) || tie(a, b));
	}
	const texts = new Map<number, string>();
	for (const fn of rows)
		texts.set(fn, textOf(tree, fn, key));
	return rows.sort((a, b) => {
		const left = texts.get(a)!;
		const right = texts.get(b)!;
		return sign * (left < right ? -1 : left > right ? 1 : 0) || tie(a, b);
	});
}

export interface Neighbour {
	/* as in Tree.fn: a function, or a group of processes */
	fn: number;
	value: number;
}

function sorted(values: Map<number, number>): Neighbour[] {
	return Array.from(values, ([fn, value]) => ({ fn, value })).sort((a, b) => b.value - a.value || a.fn - b.fn);
}

/* Who calls FN and whom it calls, with the time spent in FN on behalf of a caller, and below FN in a callee. Only
   the outermost call of a recursion has callers to show; calls of itself are not its callees. */
export function neighbours(tree: Tree, fn: number, root = 0): { callers: Neighbour[]; callees: Neighbour[] } {
	const callers = new Map<number, number>();
	const callees = new Map<number, number>();
	const add = (to: Map<number, number>, other: number, value: number) => to.set(other, (to.get(other) ?? 0) + value);
	walkFunctions(tree, root, (node, at, outermost) => {
		const up = node === 0 ? -1 : tree.fn[tree.parent[node]!]!;
		if (at === fn && outermost)
			add(callers, up, tree.total[node]!);
		else if (up === fn && at !== fn)
			add(callees, at, tree.total[node]!);
	});
	return { callers: sorted(callers), callees: sorted(callees) };
}
