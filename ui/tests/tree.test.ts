// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { functionName } from "../src/data.ts";
import { functionTotals, neighbours, sortFunctions } from "../src/functions.ts";
import type { Sorting } from "../src/functions.ts";
import { childrenOf, findPath, groupOf, nodeAt, nodeName, pathOf, processesIn } from "../src/tree.ts";
import type { Tree } from "../src/tree.ts";
import { nodeNamed, outline, profileOf, treeOf } from "./load.ts";
import { ProfileWriter, bigProfile, realisticProfile, smallProfile } from "./profiles.ts";

test("processes of one name are one box, heaviest first", () => {
	assert.deepEqual(outline(treeOf(smallProfile())), [
		"all 100/0",
		" worker (2 processes) 70/0",
		"  main 70/0",
		"   parse 50/40",
		"    parse 10/0",
		"     lex 10/10",
		"   read 20/0",
		"    vfs_read 20/20",
		" base (20) 30/0",
		"  main 25/0",
		"   query 25/0",
		"    read 25/0",
		"     vfs_read 25/25",
		"  [cut: no unwind rows] 5/5",
	]);
});

test("or each process is a box", () => {
	const tree = treeOf(smallProfile(), { merge: false });
	assert.deepEqual(childrenOf(tree, 0).map((node) => `${nodeName(tree, node)} ${tree.total[node]}`),
		["worker (11) 40", "base (20) 30", "worker (12) 30"]);
});

test("boxes may be ordered by name", () => {
	const tree = treeOf(smallProfile(), { order: "name" });
	assert.deepEqual(childrenOf(tree, 0).map((node) => nodeName(tree, node)), ["base (20)", "worker (2 processes)"]);
});

test("only chosen processes are shown", () => {
	const tree = treeOf(smallProfile(), { chosen: new Set([1]) });
	assert.deepEqual(outline(tree), [
		"all 30/0", " worker (12) 30/0", "  main 30/0", "   read 20/0", "    vfs_read 20/20", "   parse 10/10",
	]);
});

test("without any chosen process there is an empty root", () => {
	assert.deepEqual(outline(treeOf(smallProfile(), { chosen: new Set() })), ["all 0/0"]);
});

test("a sample without frames is self time of its process", () => {
	const writer = new ProfileWriter();
	writer.sample(writer.process(5, "p"), [], 4);
	assert.deepEqual(outline(treeOf(writer.raw)), ["all 4/0", " p (5) 4/4"]);
});

test("a process of unknown pid is shown by name alone", () => {
	const writer = new ProfileWriter();
	writer.sample(writer.process(-1, "p"), [], 1);
	assert.equal(nodeName(treeOf(writer.raw), 1), "p");
});

function checkTree(tree: Tree) {
	for (let node = 0; node < tree.count; node++) {
		const children = childrenOf(tree, node);
		const sum = children.reduce((total, child) => total + tree.total[child]!, tree.self[node]!);
		assert.ok(Math.abs(sum - tree.total[node]!) < 1e-6);
		let start = tree.start[node]!;
		for (const child of children) {
			assert.equal(tree.parent[child], node);
			assert.equal(tree.start[child], start);
			start += tree.total[child]!;
		}
	}
	assert.equal(tree.rowNodes.length, tree.count);
}

test("totals are sums, boxes lie on their parents, in a tree of many nodes", () => {
	checkTree(treeOf(bigProfile(20_000)));
	checkTree(treeOf(realisticProfile(), { merge: false, order: "name" }));
});

test("fractions of values add up", () => {
	const raw = smallProfile();
	raw.samples.value = raw.samples.value.map((value) => value / 3);
	checkTree(treeOf(raw));
});

test("a stack of 20,000 frames is no problem", () => {
	const writer = new ProfileWriter();
	writer.sample(writer.process(1, "deep"), Array.from({ length: 20_000 }, (_, i) => ({ name: `f${i % 7}` })), 1);
	const tree = treeOf(writer.raw);
	assert.equal(tree.count, 20_002);
	assert.equal(functionTotals(tree).total[0], 1);
	assert.equal(findPath(tree, pathOf(tree, 20_001)), 20_001);
});

test("a node is found under a value at a depth", () => {
	const tree = treeOf(smallProfile());
	assert.equal(nodeName(tree, nodeAt(tree, 1, 69.9)), "worker (2 processes)");
	assert.equal(nodeName(tree, nodeAt(tree, 1, 70)), "base (20)");
	assert.equal(nodeAt(tree, 4, 15), -1, "above self time there is nothing");
	assert.equal(nodeAt(tree, 99, 1), -1);
	assert.equal(nodeAt(tree, -1, 1), -1);
	assert.equal(nodeAt(tree, 0, 100), -1);
});

test("a node is found again in a newer profile, though pids changed", () => {
	const tree = treeOf(smallProfile());
	const raw = smallProfile();
	raw.processes.pid = [91, 92, 93];
	const newer = treeOf(raw, { order: "name" });
	const node = nodeNamed(tree, "lex");
	assert.equal(nodeName(newer, findPath(newer, pathOf(tree, node))), "lex");
	assert.equal(nodeName(newer, findPath(newer, ["worker", "main", "gone"])), "main");
});

test("processes below a node are counted", () => {
	const tree = treeOf(smallProfile());
	assert.equal(processesIn(tree, 0), 3);
	assert.equal(processesIn(tree, nodeNamed(tree, "parse")), 2);
	assert.equal(processesIn(tree, nodeNamed(tree, "lex")), 1);
	assert.equal(processesIn(tree, nodeNamed(tree, "worker (2 processes)")), 2);
});

function totalsByName(tree: Tree, root = 0): Record<string, [number, number]> {
	const totals = functionTotals(tree, root);
	const out: Record<string, [number, number]> = {};
	for (const fn of totals.present) {
		const { name, object } = tree.profile.functions;
		const key = `${tree.profile.strings[name[fn]!]} ${tree.profile.strings[object[fn]!] ?? ""}`.trim();
		out[key] = [totals.total[fn]!, totals.self[fn]!];
	}
	return out;
}

test("the table counts a recursion once", () => {
	assert.deepEqual(totalsByName(treeOf(smallProfile())), {
		"main worker": [70, 0], "parse worker": [50, 40], "lex worker": [10, 10], "read vmlinux": [45, 0],
		"vfs_read vmlinux": [45, 45], "main base": [25, 0], "query base": [25, 0], "[cut: no unwind rows]": [5, 5],
	});
});

test("the table of a zoomed box holds what is in the box", () => {
	const tree = treeOf(smallProfile());
	assert.deepEqual(Object.keys(totalsByName(tree, nodeNamed(tree, "parse"))), ["parse worker", "lex worker"]);
});

const SORTED: [Sorting, string][] = [
	[{ key: "total", descending: true }, "main parse read vfs_read main query lex [cut: no unwind rows]"],
	[{ key: "self", descending: true }, "vfs_read parse lex [cut: no unwind rows] main read main query"],
	[{ key: "self", descending: false }, "main read main query [cut: no unwind rows] lex parse vfs_read"],
	[{ key: "name", descending: false }, "[cut: no unwind rows] lex main main parse query read vfs_read"],
	[{ key: "kind", descending: false }, "[cut: no unwind rows] read vfs_read main parse main query lex"],
	[{ key: "object", descending: true }, "main parse lex read vfs_read main query [cut: no unwind rows]"],
];

for (const [sorting, expected] of SORTED)
	test(`functions sort by ${sorting.key}, ${sorting.descending ? "descending" : "ascending"}`, () => {
		const tree = treeOf(smallProfile());
		const rows = sortFunctions(tree, functionTotals(tree), sorting, () => true);
		assert.equal(Array.from(rows, (fn) => functionName(tree.profile, fn)).join(" "), expected);
	});

test("callers and callees carry the time of the calls", () => {
	const tree = treeOf(smallProfile());
	const named = (fn: number) => (fn >= 0 ? functionName(tree.profile, fn) : `group ${groupOf(fn)}`);
	const read = tree.fn[nodeNamed(tree, "read")]!;
	const around = neighbours(tree, read);
	assert.deepEqual(around.callers.map(({ fn, value }) => [named(fn), value]), [["query", 25], ["main", 20]]);
	assert.deepEqual(around.callees.map(({ fn, value }) => [named(fn), value]), [["vfs_read", 45]]);
	const parse = neighbours(tree, tree.fn[nodeNamed(tree, "parse")]!);
	assert.deepEqual(parse.callers.map(({ fn, value }) => [named(fn), value]), [["main", 50]]);
	assert.deepEqual(parse.callees.map(({ fn, value }) => [named(fn), value]), [["lex", 10]]);
});

test("the same profile gives the same tree", () => {
	const profile = profileOf(realisticProfile());
	assert.deepEqual(outline(treeOf(realisticProfile())), outline(treeOf(realisticProfile())));
	assert.equal(profile.samples.count, realisticProfile().samples.value.length);
});
