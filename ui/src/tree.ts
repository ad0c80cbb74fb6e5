// SPDX-License-Identifier: Apache-2.0
/* The view tree: root, a group of processes, then frames. Nodes are numbered in depth-first order, so that a subtree
   is the range [node, end[node]) and a row of the picture is sorted from left to right. */

import type { Profile } from "./data.ts";

export interface TreeOptions {
	/* one group per process name, else one per process */
	merge: boolean;
	/* processes to show, null for all */
	chosen: ReadonlySet<number> | null;
	order: "weight" | "name";
}

export interface Group {
	name: number;
	processes: number[];
}

export const ROOT_FUNCTION = -1;

/* What a node's `fn` holds: a function, ROOT_FUNCTION, or -2 minus the group. */
export function groupOf(fn: number): number {
	return -2 - fn;
}

export interface Tree {
	profile: Profile;
	options: TreeOptions;
	groups: Group[];
	count: number;
	fn: Int32Array;
	parent: Int32Array;
	depth: Int32Array;
	end: Int32Array;
	/* where the box begins, in units of the profile's value */
	start: Float64Array;
	total: Float64Array;
	self: Float64Array;
	/* nodes by depth; those of depth d are rowNodes[rowStart[d] … rowStart[d + 1]) */
	rowStart: Int32Array;
	rowNodes: Int32Array;
	/* per sample the node it ends in, -1 if it was filtered out */
	sampleNode: Int32Array;
}

/* Children by (parent, function): open addressing, because a Map of numbers costs half the time of the build. */
class Trie {
	count = 1;
	parent: Int32Array;
	fn: Int32Array;
	self: Float64Array;
	#slots: Int32Array;
	#mask: number;

	constructor(room: number) {
		const size = 1 << Math.ceil(Math.log2(Math.max(16, room)));
		this.parent = new Int32Array(size);
		this.fn = new Int32Array(size);
		this.self = new Float64Array(size);
		this.#slots = new Int32Array(size * 2);
		this.#mask = size * 2 - 1;
		this.parent[0] = -1;
		this.fn[0] = ROOT_FUNCTION;
	}

	// A slot of 0 is free: the root is nobody's child.
	#slotOf(parent: number, fn: number): number {
		let hash = Math.imul(parent, 0x9e3779b1) ^ Math.imul(fn, 0x85ebca6b);
		hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
		let slot = (hash ^ (hash >>> 13)) & this.#mask;
		for (;;) {
			const node = this.#slots[slot]!;
			if (node === 0 || (this.parent[node] === parent && this.fn[node] === fn))
				return slot;
			slot = (slot + 1) & this.#mask;
		}
	}

	#grow() {
		const size = this.parent.length * 2;
		const old = { parent: this.parent, fn: this.fn, self: this.self };
		this.parent = new Int32Array(size);
		this.fn = new Int32Array(size);
		this.self = new Float64Array(size);
		this.parent.set(old.parent);
		this.fn.set(old.fn);
		this.self.set(old.self);
		this.#slots = new Int32Array(size * 2);
		this.#mask = size * 2 - 1;
		for (let node = 1; node < this.count; node++)
			this.#slots[this.#slotOf(this.parent[node]!, this.fn[node]!)] = node;
	}

	child(parent: number, fn: number): number {
		const slot = this.#slotOf(parent, fn);
		const found = this.#slots[slot]!;
		if (found)
			return found;
		const node = this.count++;
		this.parent[node] = parent;
		this.fn[node] = fn;
		this.#slots[slot] = node;
		if (this.count === this.parent.length)
			this.#grow();
		return node;
	}
}

function makeGroups(profile: Profile, options: TreeOptions): { groups: Group[]; ofProcess: Int32Array } {
	const { count, name } = profile.processes;
	const ofProcess = new Int32Array(count).fill(-1);
	const byName = new Map<number, number>();
	const groups: Group[] = [];
	for (let process = 0; process < count; process++) {
		if (options.chosen && !options.chosen.has(process))
			continue;
		let group = options.merge ? byName.get(name[process]!) : undefined;
		if (group === undefined) {
			group = groups.length;
			groups.push({ name: name[process]!, processes: [] });
			byName.set(name[process]!, group);
		}
		groups[group]!.processes.push(process);
		ofProcess[process] = group;
	}
	return { groups, ofProcess };
}

function bucketSamples(keys: Int32Array, buckets: number): { start: Int32Array; items: Int32Array } {
	const start = new Int32Array(buckets + 1);
	for (const key of keys)
		if (key >= 0)
			start[key + 1]!++;
	for (let i = 0; i < buckets; i++)
		start[i + 1]! += start[i]!;
	const fill = start.slice();
	const items = new Int32Array(start[buckets]!);
	for (let i = 0; i < keys.length; i++)
		if (keys[i]! >= 0)
			items[fill[keys[i]!]!++] = i;
	return { start, items };
}

/* Adds all samples; returns the trie's node of each sample. */
function fillTrie(trie: Trie, profile: Profile, groups: number, ofProcess: Int32Array): Int32Array {
	const { samples, stacks } = profile;
	const sampleNode = new Int32Array(samples.count).fill(-1);
	const groupOfSample = samples.process.map((process) => ofProcess[process]!);
	const { start, items } = bucketSamples(groupOfSample, groups);
	const nodeOfStack = new Int32Array(stacks.count);
	const known = new Int32Array(stacks.count).fill(-1);
	const path: number[] = [];
	for (let group = 0; group < groups; group++) {
		const top = start[group] === start[group + 1] ? 0 : trie.child(0, -2 - group);
		for (let i = start[group]!; i < start[group + 1]!; i++) {
			const sample = items[i]!;
			let stack = samples.stack[sample]!;
			path.length = 0;
			while (stack >= 0 && known[stack] !== group) {
				path.push(stack);
				stack = stacks.parent[stack]!;
			}
			let node = stack < 0 ? top : nodeOfStack[stack]!;
			for (let p = path.length - 1; p >= 0; p--) {
				stack = path[p]!;
				node = trie.child(node, stacks.function[stack]!);
				nodeOfStack[stack] = node;
				known[stack] = group;
			}
			trie.self[node]! += samples.value[sample]!;
			sampleNode[sample] = node;
		}
	}
	return sampleNode;
}

function nameRanks(profile: Profile): Int32Array {
	const order = Array.from(profile.strings.keys());
	const strings = profile.strings;
	order.sort((a, b) => (strings[a]! < strings[b]! ? -1 : strings[a]! > strings[b]! ? 1 : a - b));
	const rank = new Int32Array(order.length);
	for (let i = 0; i < order.length; i++)
		rank[order[i]!] = i;
	return rank;
}

interface Family {
	total: Float64Array;
	start: Int32Array;
	children: Int32Array;
}

// Children have higher numbers than their parents, in the trie as in the tree.
function makeFamily(trie: Trie): Family {
	const total = trie.self.slice(0, trie.count);
	for (let node = trie.count - 1; node > 0; node--)
		total[trie.parent[node]!]! += total[node]!;
	const { start, items } = bucketSamples(trie.parent.subarray(0, trie.count), trie.count);
	return { total, start, children: items };
}

function sortFamily(family: Family, trie: Trie, tree: { profile: Profile; groups: Group[]; options: TreeOptions }) {
	const { profile, groups } = tree;
	const rank = nameRanks(profile);
	const rankOf = (node: number) => {
		const fn = trie.fn[node]!;
		return rank[fn >= 0 ? profile.functions.name[fn]! : groups[groupOf(fn)]!.name]!;
	};
	const byName = (a: number, b: number) => rankOf(a) - rankOf(b) || trie.fn[a]! - trie.fn[b]!;
	const byWeight = (a: number, b: number) => family.total[b]! - family.total[a]! || byName(a, b);
	const compare = tree.options.order === "name" ? byName : byWeight;
	for (let node = 0; node < trie.count; node++) {
		const from = family.start[node]!;
		const to = family.start[node + 1]!;
		if (to - from > 1)
			family.children.subarray(from, to).sort(compare);
	}
}

function numberNodes(trie: Trie, family: Family): { oldOf: Int32Array; newOf: Int32Array } {
	const oldOf = new Int32Array(trie.count);
	const newOf = new Int32Array(trie.count);
	const pending = [0];
	for (let next = 0; pending.length > 0; next++) {
		const old = pending.pop()!;
		oldOf[next] = old;
		newOf[old] = next;
		for (let i = family.start[old + 1]! - 1; i >= family.start[old]!; i--)
			pending.push(family.children[i]!);
	}
	return { oldOf, newOf };
}

function makeRows(depth: Int32Array): { rowStart: Int32Array; rowNodes: Int32Array } {
	let deepest = 0;
	for (const d of depth)
		deepest = Math.max(deepest, d);
	const { start, items } = bucketSamples(depth, deepest + 1);
	return { rowStart: start, rowNodes: items };
}

export function buildTree(profile: Profile, options: TreeOptions): Tree {
	const { groups, ofProcess } = makeGroups(profile, options);
	const trie = new Trie(profile.stacks.count + groups.length + 1);
	const trieNode = fillTrie(trie, profile, groups.length, ofProcess);
	const family = makeFamily(trie);
	sortFamily(family, trie, { profile, groups, options });
	const { oldOf, newOf } = numberNodes(trie, family);

	const count = trie.count;
	const parent = new Int32Array(count);
	const depth = new Int32Array(count);
	const start = new Float64Array(count);
	const end = new Int32Array(count);
	const total = new Float64Array(count);
	const taken = new Float64Array(count);
	parent[0] = -1;
	for (let node = 0; node < count; node++) {
		const old = oldOf[node]!;
		total[node] = family.total[old]!;
		if (node === 0)
			continue;
		const up = newOf[trie.parent[old]!]!;
		parent[node] = up;
		depth[node] = depth[up]! + 1;
		start[node] = start[up]! + taken[up]!;
		taken[up]! += total[node]!;
	}
	for (let node = count - 1; node >= 0; node--) {
		end[node] = Math.max(end[node]!, node + 1);
		if (node > 0)
			end[parent[node]!] = Math.max(end[parent[node]!]!, end[node]!);
	}
	return {
		profile, options, groups, count, parent, depth, start, end, total,
		fn: oldOf.map((old) => trie.fn[old]!),
		self: Float64Array.from(oldOf, (old) => trie.self[old]!),
		sampleNode: trieNode.map((old) => (old < 0 ? -1 : newOf[old]!)),
		...makeRows(depth),
	};
}

/* The text of a node's box. */
export function nodeName(tree: Tree, node: number): string {
	const { profile } = tree;
	const fn = tree.fn[node]!;
	if (fn === ROOT_FUNCTION)
		return "all";
	if (fn >= 0)
		return profile.strings[profile.functions.name[fn]!]!;
	return groupName(tree, groupOf(fn));
}

export function groupName(tree: Tree, index: number): string {
	const group = tree.groups[index]!;
	const name = tree.profile.strings[group.name]!;
	if (group.processes.length > 1)
		return `${name} (${group.processes.length} processes)`;
	const pid = tree.profile.processes.pid[group.processes[0]!]!;
	return pid < 0 ? name : `${name} (${pid})`;
}

export function isInside(tree: Tree, node: number, ancestor: number): boolean {
	return node >= ancestor && node < tree.end[ancestor]!;
}

/* The node at DEPTH whose box holds VALUE, or -1. */
export function nodeAt(tree: Tree, depth: number, value: number): number {
	if (depth < 0 || depth + 1 >= tree.rowStart.length)
		return -1;
	let low = tree.rowStart[depth]!;
	let high = tree.rowStart[depth + 1]!;
	while (low < high) {
		const middle = (low + high) >> 1;
		if (tree.start[tree.rowNodes[middle]!]! <= value)
			low = middle + 1;
		else
			high = middle;
	}
	if (low === tree.rowStart[depth])
		return -1;
	const node = tree.rowNodes[low - 1]!;
	return value < tree.start[node]! + tree.total[node]! ? node : -1;
}

/* The children of a node that has any, left to right. */
export function childrenOf(tree: Tree, node: number): number[] {
	const children: number[] = [];
	for (let child = node + 1; child < tree.end[node]!; child = tree.end[child]!)
		children.push(child);
	return children;
}

// Without the pid or count that a box shows: those change between two profiles of one program.
function stepName(tree: Tree, node: number): string {
	const fn = tree.fn[node]!;
	return fn >= 0 ? nodeName(tree, node) : tree.profile.strings[tree.groups[groupOf(fn)]!.name]!;
}

/* Names from the root down, by which a node is found again in the tree of a newer profile. */
export function pathOf(tree: Tree, node: number): string[] {
	const path: string[] = [];
	for (let at = node; at > 0; at = tree.parent[at]!)
		path.push(stepName(tree, at));
	return path.reverse();
}

/* The node at PATH, or the deepest one on the way to it. */
export function findPath(tree: Tree, path: readonly string[]): number {
	let node = 0;
	for (const step of path) {
		const next = childrenOf(tree, node).find((child) => stepName(tree, child) === step);
		if (next === undefined)
			return node;
		node = next;
	}
	return node;
}

/* How many processes have samples in NODE's subtree. */
export function processesIn(tree: Tree, node: number): number {
	const fn = tree.fn[node]!;
	if (fn < ROOT_FUNCTION)
		return tree.groups[groupOf(fn)]!.processes.length;
	const seen = new Set<number>();
	for (let sample = 0; sample < tree.sampleNode.length; sample++)
		if (isInside(tree, tree.sampleNode[sample]!, node))
			seen.add(tree.profile.samples.process[sample]!);
	return seen.size;
}
