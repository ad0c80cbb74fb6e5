// SPDX-License-Identifier: Apache-2.0
/* What most tests begin with. */

import assert from "node:assert/strict";
import type { Profile } from "../src/data.ts";
import { loadProfile } from "../src/parse.ts";
import { buildTree, nodeName } from "../src/tree.ts";
import type { Tree, TreeOptions } from "../src/tree.ts";

export function profileOf(raw: unknown): Profile {
	const loaded = loadProfile(typeof raw === "string" ? raw : JSON.stringify(raw));
	assert.equal(loaded.state, "profile", JSON.stringify(loaded));
	return (loaded as { profile: Profile }).profile;
}

export function treeOf(raw: unknown, options: Partial<TreeOptions> = {}): Tree {
	return buildTree(profileOf(raw), { merge: true, chosen: null, order: "weight", ...options });
}

/* The tree as "name total/self" lines, indented by depth. */
export function outline(tree: Tree): string[] {
	return Array.from({ length: tree.count }, (_, node) =>
		`${" ".repeat(tree.depth[node]!)}${nodeName(tree, node)} ${tree.total[node]}/${tree.self[node]}`);
}

/* The first node called NAME. */
export function nodeNamed(tree: Tree, name: string): number {
	for (let node = 0; node < tree.count; node++)
		if (nodeName(tree, node) === name)
			return node;
	assert.fail(`no node is called ${name}`);
}
