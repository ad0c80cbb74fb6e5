// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { Boxes, deepestRow, firstOf, layoutBoxes } from "../src/layout.ts";
import { nodeName } from "../src/tree.ts";
import type { Tree } from "../src/tree.ts";
import { approach, clampView, nodeUnder, panBy, spanOf, stepFrom, whole, zoomAt } from "../src/viewport.ts";
import { nodeNamed, treeOf } from "./load.ts";
import { ProfileWriter, bigProfile, smallProfile } from "./profiles.ts";

function boxesOf(tree: Tree, span: { from?: number; to?: number; width: number; firstDepth?: number; lastDepth?: number }) {
	const boxes = new Boxes();
	layoutBoxes(tree, { from: 0, to: tree.total[0]!, firstDepth: 0, lastDepth: 999, ...span }, boxes);
	return Array.from({ length: boxes.count }, (_, i) => ({
		node: boxes.node[i]!, left: boxes.left[i]!, right: boxes.right[i]!, depth: boxes.depth[i]!,
	}));
}

test("boxes are as wide as their share", () => {
	const tree = treeOf(smallProfile());
	const row = boxesOf(tree, { width: 1000, firstDepth: 1, lastDepth: 1 });
	assert.deepEqual(row.map(({ node, left, right }) => [nodeName(tree, node), left, right]),
		[["worker (2 processes)", 0, 700], ["base (20)", 700, 1000]]);
});

test("what is outside of the window is left out, what crosses its edge is cut", () => {
	const tree = treeOf(smallProfile());
	const row = boxesOf(tree, { from: 60, to: 80, width: 200, firstDepth: 1, lastDepth: 2 });
	assert.deepEqual(row.map(({ node, left, right }) => [nodeName(tree, node), left, right]), [
		["worker (2 processes)", 0, 100], ["base (20)", 100, 200], ["main", 0, 100], ["main", 100, 200],
	]);
});

test("neighbours too narrow to see become slivers, one a pixel", () => {
	const writer = new ProfileWriter();
	const process = writer.process(1, "p");
	for (let i = 0; i < 5000; i++)
		writer.sample(process, [{ name: `f${i}` }], 1);
	const row = boxesOf(treeOf(writer.raw), { width: 100, firstDepth: 2, lastDepth: 2 });
	assert.ok(row.length <= 100);
	assert.ok(row.every(({ node, left, right }) => node < 0 && right === left + 1));
	assert.deepEqual([row[0]!.left, row[row.length - 1]!.right], [0, 100]);
	assert.ok(row.every(({ node }) => firstOf(node) >= 0));
});

test("a row is in order, within the window, and no two boxes overlap by more than a sliver", () => {
	const tree = treeOf(bigProfile(20_000));
	for (const width of [1, 37, 1400]) {
		const boxes = boxesOf(tree, { from: tree.total[0]! / 7, to: tree.total[0]! / 3, width });
		for (let i = 0; i < boxes.length; i++) {
			const { left, right } = boxes[i]!;
			assert.ok(left >= 0 && right <= width && right > left);
			if (i > 0 && boxes[i - 1]!.depth === boxes[i]!.depth)
				assert.ok(left >= boxes[i - 1]!.left && left + 1 >= boxes[i - 1]!.right);
		}
		assert.ok(boxes.length <= width * tree.rowStart.length * 2);
	}
});

test("every box that is wide enough is drawn", () => {
	const tree = treeOf(bigProfile(5000));
	const drawn = new Set(boxesOf(tree, { width: 1400 }).map(({ node }) => node));
	for (let node = 0; node < tree.count; node++)
		if ((tree.total[node]! / tree.total[0]!) * 1400 >= 1.001)
			assert.ok(drawn.has(node), nodeName(tree, node));
});

test("a window without extent draws nothing", () => {
	assert.deepEqual(boxesOf(treeOf(smallProfile()), { from: 1, to: 1, width: 100 }), []);
});

test("the deepest row depends on the window", () => {
	const tree = treeOf(smallProfile());
	assert.equal(deepestRow(tree, 0, 100), 5);
	assert.equal(deepestRow(tree, 96, 99), 2);
});

test("zooming keeps the value under the pointer", () => {
	const view = zoomAt({ from: 0, to: 100, scroll: 7 }, 100, 25, 4);
	assert.deepEqual(view, { from: 18.75, to: 43.75, scroll: 7 });
	assert.deepEqual(zoomAt(view, 100, 25, 1 / 100), { from: 0, to: 100, scroll: 7 });
});

test("the window stays inside, and never becomes a point", () => {
	assert.deepEqual(clampView({ from: -5, to: 5, scroll: 0 }, 100), { from: 0, to: 10, scroll: 0 });
	assert.deepEqual(panBy({ from: 80, to: 90, scroll: 0 }, 100, 50), { from: 90, to: 100, scroll: 0 });
	const deep = zoomAt({ from: 0, to: 100, scroll: 0 }, 100, 50, 1e30);
	assert.ok(deep.to > deep.from);
});

test("the movement towards a window ends in it", () => {
	const target = { from: 10, to: 20, scroll: 300 };
	let view = { from: 0, to: 100, scroll: 0 };
	for (let frame = 0; frame < 100 && view !== target; frame++)
		view = approach(view, target, 16, 1400);
	assert.equal(view, target);
});

test("the focus steps to parents, heaviest children and neighbours", () => {
	const tree = treeOf(smallProfile());
	const main = nodeNamed(tree, "main");
	assert.equal(nodeName(tree, stepFrom(tree, main, "child")), "parse");
	assert.equal(nodeName(tree, stepFrom(tree, main, "parent")), "worker (2 processes)");
	const right = stepFrom(tree, main, "next");
	assert.equal(nodeName(tree, tree.parent[right]!), "base (20)");
	assert.equal(stepFrom(tree, right, "previous"), main);
	assert.equal(stepFrom(tree, main, "previous"), main, "at the end of a row the focus stays");
	assert.equal(stepFrom(tree, 0, "parent"), 0);
	const leaf = nodeNamed(tree, "lex");
	assert.equal(stepFrom(tree, leaf, "child"), leaf);
});

test("the node under a point is that of the window", () => {
	const tree = treeOf(smallProfile());
	assert.equal(nodeName(tree, nodeUnder(tree, whole(tree), 0.71, 1)), "base (20)");
	const parse = nodeNamed(tree, "parse");
	const view = { ...whole(tree), ...spanOf(tree, parse) };
	assert.equal(nodeUnder(tree, view, 0.5, 3), parse);
});
