// SPDX-License-Identifier: Apache-2.0
/* Search: text anywhere in a name, =exact name, or /regular expression/. */

import type { Tree } from "./tree.ts";
import { ROOT_FUNCTION, groupName, groupOf } from "./tree.ts";

export interface Matcher {
	query: string;
	/* why the query cannot be used */
	error: string | null;
	test(name: string): boolean;
}

export function makeMatcher(query: string): Matcher | null {
	if (query === "")
		return null;
	const expression = /^\/(.+)\/([imsu]*)$/s.exec(query);
	if (expression) {
		try {
			const regex = new RegExp(expression[1]!, expression[2]);
			return { query, error: null, test: (name) => regex.test(name) };
		} catch (error) {
			return { query, error: (error as Error).message, test: () => false };
		}
	}
	if (query.startsWith("=") && query.length > 1) {
		const name = query.slice(1);
		return { query, error: null, test: (other) => other === name };
	}
	const low = query.toLowerCase();
	return { query, error: null, test: (name) => name.toLowerCase().includes(low) };
}

export interface Matches {
	byFunction: Uint8Array;
	byGroup: Uint8Array;
	/* all matching nodes, in the order of the tree */
	nodes: Int32Array;
	/* the value below matching nodes, each sample once */
	total: number;
}

export function isMatch(matches: Matches, fn: number): boolean {
	if (fn >= 0)
		return matches.byFunction[fn] === 1;
	return fn !== ROOT_FUNCTION && matches.byGroup[groupOf(fn)] === 1;
}

/* The value below matching nodes within ROOT; inside a matching ancestor everything matches. */
export function matchedWithin(tree: Tree, matches: Matches, root: number): number {
	for (let up = tree.parent[root]!; up >= 0; up = tree.parent[up]!)
		if (isMatch(matches, tree.fn[up]!))
			return tree.total[root]!;
	let sum = 0;
	let node = root;
	while (node < tree.end[root]!) {
		const hit = isMatch(matches, tree.fn[node]!);
		if (hit)
			sum += tree.total[node]!;
		node = hit ? tree.end[node]! : node + 1;
	}
	return sum;
}

function collect(tree: Tree, byFunction: Uint8Array, byGroup: Uint8Array): Matches {
	const matches: Matches = { byFunction, byGroup, nodes: new Int32Array(0), total: 0 };
	const nodes: number[] = [];
	for (let node = 0; node < tree.count; node++)
		if (isMatch(matches, tree.fn[node]!))
			nodes.push(node);
	matches.nodes = Int32Array.from(nodes);
	matches.total = matchedWithin(tree, matches, 0);
	return matches;
}

export function findMatches(tree: Tree, matcher: Matcher): Matches {
	const { functions, strings } = tree.profile;
	const byName = new Map<number, number>();
	const byFunction = new Uint8Array(functions.count);
	for (let fn = 0; fn < functions.count; fn++) {
		const name = functions.name[fn]!;
		let hit = byName.get(name);
		if (hit === undefined) {
			hit = matcher.test(strings[name]!) ? 1 : 0;
			byName.set(name, hit);
		}
		byFunction[fn] = hit;
	}
	const byGroup = Uint8Array.from(tree.groups, (_, group) => (matcher.test(groupName(tree, group)) ? 1 : 0));
	return collect(tree, byFunction, byGroup);
}

/* The frames of the functions that ACCEPT accepts. */
export function matchFunctions(tree: Tree, accept: (fn: number) => boolean): Matches {
	const byFunction = new Uint8Array(tree.profile.functions.count);
	for (let fn = 0; fn < byFunction.length; fn++)
		byFunction[fn] = accept(fn) ? 1 : 0;
	return collect(tree, byFunction, new Uint8Array(tree.groups.length));
}

/* The match after (STEP 1) or before (STEP -1) NODE, round the end; -1 if there is none. */
export function nextMatch(matches: Matches, node: number, step: 1 | -1): number {
	const { nodes } = matches;
	if (nodes.length === 0)
		return -1;
	if (step === 1)
		return nodes.find((each) => each > node) ?? nodes[0]!;
	for (let i = nodes.length - 1; i >= 0; i--)
		if (nodes[i]! < node)
			return nodes[i]!;
	return nodes[nodes.length - 1]!;
}
