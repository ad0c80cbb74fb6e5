// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { findMatches, makeMatcher, matchFunctions, matchedWithin, nextMatch } from "../src/search.ts";
import { nodeName } from "../src/tree.ts";
import { nodeNamed, treeOf } from "./load.ts";
import { smallProfile } from "./profiles.ts";

const QUERIES: [string, string, number][] = [
	["text anywhere, in any case", "READ", 45],
	["an exact name", "=read", 45],
	["an exact name that is only part of names", "=rea", 0],
	["a regular expression", "/^(lex|query)$/", 35],
	["a regular expression with flags", "/PARSE/i", 50],
	["nested matches once", "parse", 50],
	["a process", "worker", 70],
	["a process and its functions once", "/worker|parse/", 70],
	["markup", "<script>", 0],
	["what is special in regular expressions", "[cut:", 5],
	["a lone slash", "/", 0],
];

for (const [name, query, total] of QUERIES)
	test(`a search finds ${name}: ${query}`, () => {
		assert.equal(findMatches(treeOf(smallProfile()), makeMatcher(query)!).total, total);
	});

test("no query is no search", () => assert.equal(makeMatcher(""), null));

test("a broken regular expression says why and matches nothing", () => {
	const matcher = makeMatcher("/(/")!;
	assert.match(matcher.error!, /[Uu]nterminated group/);
	assert.equal(matcher.test("("), false);
});

test("the matched value is counted within the zoomed box", () => {
	const tree = treeOf(smallProfile());
	const matches = findMatches(tree, makeMatcher("read")!);
	assert.equal(matchedWithin(tree, matches, nodeNamed(tree, "worker (2 processes)")), 20);
	assert.equal(matchedWithin(tree, matches, nodeNamed(tree, "vfs_read")), 20, "inside a match all matches");
	assert.equal(matchedWithin(tree, matches, nodeNamed(tree, "parse")), 0);
});

test("next and previous go round", () => {
	const tree = treeOf(smallProfile());
	const matches = findMatches(tree, makeMatcher("lex")!);
	const lex = nodeNamed(tree, "lex");
	assert.deepEqual([nextMatch(matches, 0, 1), nextMatch(matches, lex, 1), nextMatch(matches, 0, -1)], [lex, lex, lex]);
	const reads = findMatches(tree, makeMatcher("=read")!);
	const [first, second] = Array.from(reads.nodes);
	assert.equal(nextMatch(reads, first!, 1), second);
	assert.equal(nextMatch(reads, second!, 1), first);
	assert.equal(nextMatch(reads, first!, -1), second);
	assert.equal(nextMatch(findMatches(tree, makeMatcher("nowhere")!), 0, 1), -1);
});

test("functions may be matched by anything", () => {
	const tree = treeOf(smallProfile());
	const matches = matchFunctions(tree, (fn) => tree.profile.kinds[tree.profile.functions.kind[fn]!] === "kernel");
	assert.equal(matches.total, 45);
	assert.ok(Array.from(matches.nodes).every((node) => /read/.test(nodeName(tree, node))));
});
