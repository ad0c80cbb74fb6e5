// SPDX-License-Identifier: Apache-2.0
/* What the tooltip, the status line and the screen reader say about a box. */

import { SEEN_CALLED, SEEN_INLINED, stringAt } from "./data.ts";
import type { Profile } from "./data.ts";
import { formatShare, formatValue } from "./format.ts";
import type { Tree } from "./tree.ts";
import { ROOT_FUNCTION, groupOf, nodeName, processesIn } from "./tree.ts";

export interface Description {
	name: string;
	kind: string;
	object: string;
	location: string;
	inlined: string;
	total: string;
	self: string;
	shareOfView: string;
	shareOfWhole: string;
	selfShare: string;
	processes: string;
}

function location(profile: Profile, fn: number): string {
	const { file, lineFirst, lineLast } = profile.functions;
	const path = stringAt(profile, file[fn]!);
	if (!lineFirst[fn])
		return path;
	const lines = lineFirst[fn] === lineLast[fn] ? `${lineFirst[fn]}` : `${lineFirst[fn]}–${lineLast[fn]}`;
	return path ? `${path}:${lines}` : `line ${lines}`;
}

function inlining(seen: number): string {
	if (!(seen & SEEN_INLINED))
		return "";
	return seen & SEEN_CALLED ? "inlined in places" : "inlined";
}

function processText(tree: Tree, node: number): string {
	const count = processesIn(tree, node);
	const fn = tree.fn[node]!;
	if (fn >= ROOT_FUNCTION || count > 8)
		return count === 1 ? "1 process" : `${count} processes`;
	const { pid } = tree.profile.processes;
	const pids = tree.groups[groupOf(fn)]!.processes.map((process) => pid[process]!);
	return `${count === 1 ? "pid" : `${count} processes, pids`} ${pids.join(", ")}`;
}

export function describeNode(tree: Tree, node: number, zoomed: number): Description {
	const { profile } = tree;
	const fn = tree.fn[node]!;
	const total = tree.total[node]!;
	return {
		name: nodeName(tree, node),
		kind: fn >= 0 ? profile.kinds[profile.functions.kind[fn]!]! : fn === ROOT_FUNCTION ? "" : "process",
		object: fn >= 0 ? stringAt(profile, profile.functions.object[fn]!) : "",
		location: fn >= 0 ? location(profile, fn) : "",
		inlined: fn >= 0 ? inlining(profile.functions.inlined[fn]!) : "",
		total: formatValue(profile, total),
		self: formatValue(profile, tree.self[node]!),
		// An ancestor of the zoomed box fills the view.
		shareOfView: formatShare(Math.min(total, tree.total[zoomed]!), tree.total[zoomed]!),
		shareOfWhole: formatShare(total, tree.total[0]!),
		selfShare: formatShare(tree.self[node]!, tree.total[0]!),
		processes: processText(tree, node),
	};
}

/* One sentence for the live region. */
export function speakNode(tree: Tree, node: number, zoomed: number): string {
	const about = describeNode(tree, node, zoomed);
	const parts = [about.name, about.kind, `total ${about.total}, ${about.shareOfWhole}`, `self ${about.self}`];
	if (zoomed > 0)
		parts.push(`${about.shareOfView} of view`);
	parts.push(`level ${tree.depth[node]!}`);
	return parts.filter((part) => part !== "").join(", ");
}
