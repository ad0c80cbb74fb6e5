// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { describeNode, speakNode } from "../src/describe.ts";
import { formatSeconds, formatShare, formatTimes, formatValue, sessionFacts } from "../src/format.ts";
import { KEYS, actionFor } from "../src/keys.ts";
import { kindTotals } from "../src/legend.tsx";
import { processKey, processTotals } from "../src/processes.tsx";
import { DEFAULTS, parseSettings } from "../src/settings.ts";
import { nodeNamed, profileOf, treeOf } from "./load.ts";
import { realisticProfile, smallProfile } from "./profiles.ts";

test("shares have three digits, and something is never nothing", () => {
	const shares = [[1, 3], [1, 20], [0, 5], [1, 1e6], [5, 5], [1, 0]].map(([part, whole]) => formatShare(part!, whole!));
	assert.deepEqual(shares, ["33.3%", "5.00%", "0.0%", "<0.01%", "100.0%", "0%"]);
});

test("times are written in the unit that suits them", () => {
	assert.deepEqual([0.00002, 0.25, 1.5, 60, 125, 7260].map(formatSeconds),
		["20 µs", "250 ms", "1.5 s", "60 s", "2 min 5 s", "2 h 1 min"]);
});

test("values follow the profile's unit", () => {
	const profile = profileOf(smallProfile());
	assert.equal(formatValue(profile, 1), "1 sample ≈ 100 ms");
	assert.equal(formatValue(profile, 12345), "12,345 samples ≈ 20 min 35 s");
	assert.equal(formatValue({ ...profile, valueUnit: "nanoseconds" }, 2.5e9), "2.5 s");
	assert.equal(formatValue({ ...profile, valueName: "space", valueUnit: "bytes" }, 1536), "1.5 KiB");
	assert.equal(formatValue({ ...profile, valueName: "x", valueUnit: "constructor" }, 2), "2 constructor");
});

test("start and end are one range of times", () => {
	assert.equal(formatTimes("2026-11-21T10:00:00Z", "2026-11-21T10:01:00Z"), "2026-11-21 10:00:00–10:01:00 UTC");
	assert.equal(formatTimes("2026-11-21T23:59:00Z", "2026-11-22T00:01:00Z"), "2026-11-21 23:59:00–2026-11-22 00:01:00 UTC");
	assert.equal(formatTimes("yesterday", undefined), "yesterday");
	assert.equal(formatTimes(undefined, undefined), null);
});

test("facts that are known are shown, the others are not", () => {
	const facts = sessionFacts(profileOf(realisticProfile()).session, 0);
	const labels = facts.map((fact) => fact.label);
	for (const label of ["Host", "Time", "Duration", "Rate", "Event", "CPUs", "Samples", "Lost samples", "Cut stacks", "Kernel", "cairn", "Note"])
		assert.ok(labels.includes(label), label);
	assert.deepEqual(sessionFacts({}, 5), []);
});

test("lost samples and cut stacks are warnings, by reason and share", () => {
	const facts = sessionFacts({ samples: 900, lost: 100, cut: [{ reason: "a", samples: 9 }, { reason: "b", samples: 90 }] }, 0);
	const lost = facts.find((fact) => fact.label === "Lost samples")!;
	assert.deepEqual([lost.warning, lost.text], [true, "100 (10.0%)"]);
	const cut = facts.find((fact) => fact.label === "Cut stacks")!;
	assert.deepEqual([cut.warning, cut.text], [true, "99 (11.0%) — b: 90 (10.0%), a: 9 (1.00%)"]);
	assert.equal(sessionFacts({ lost: 0 }, 1)[0]!.warning, false);
});

test("a box is described with its shares of view and whole", () => {
	const tree = treeOf(smallProfile());
	const about = describeNode(tree, nodeNamed(tree, "parse"), nodeNamed(tree, "worker (2 processes)"));
	assert.equal(about.kind, "native");
	assert.equal(about.object, "worker");
	assert.equal(about.shareOfWhole, "50.0%");
	assert.equal(about.shareOfView, "71.4%");
	assert.equal(about.processes, "2 processes");
	assert.equal(describeNode(tree, 1, 0).processes, "2 processes, pids 11, 12");
	assert.equal(describeNode(tree, 0, 3).shareOfView, "100.0%");
	assert.match(speakNode(tree, nodeNamed(tree, "lex"), 0), /^lex, native, total 10 samples ≈ 1 s, 10.0%, self 10 samples ≈ 1 s, level 5$/);
});

test("the legend counts where samples end, and all above a cut", () => {
	const tree = treeOf(smallProfile());
	assert.deepEqual([...kindTotals(tree, 0)], [50, 45, 5]);
	assert.deepEqual([...kindTotals(tree, nodeNamed(tree, "worker (2 processes)"))], [50, 20, 0]);
});

test("processes have totals and names that outlive a profile", () => {
	const profile = profileOf(smallProfile());
	assert.deepEqual([...processTotals(profile)], [40, 30, 30]);
	assert.equal(processKey(profile, 2), "20 base");
});

const GRAPH = { inText: false, inGraph: true, inDialog: false };
const press = (key: string, more = {}) => ({ key, ctrlKey: false, metaKey: false, altKey: false, ...more });

test("every key in the table does what the table says", () => {
	for (const row of KEYS)
		for (const key of row.keys)
			assert.equal(actionFor(press(key), GRAPH), row.action);
});

test("no key means two things", () => {
	const keys = KEYS.flatMap((row) => row.keys);
	assert.equal(new Set(keys).size, keys.length);
	assert.ok(KEYS.every((row) => row.help && row.shown));
});

test("keys are left alone where they mean something else", () => {
	assert.equal(actionFor(press("n"), { ...GRAPH, inText: true }), null);
	assert.equal(actionFor(press("n"), { ...GRAPH, inDialog: true }), null);
	assert.equal(actionFor(press("Enter"), { ...GRAPH, inGraph: false }), null);
	assert.equal(actionFor(press("t", { ctrlKey: true }), GRAPH), null);
	assert.equal(actionFor(press("f", { ctrlKey: true }), { ...GRAPH, inText: true }), "search");
	assert.equal(actionFor(press("q"), GRAPH), null);
});

test("stored settings are read, and rubbish is not", () => {
	assert.deepEqual(parseSettings(null), DEFAULTS);
	assert.deepEqual(parseSettings("{"), DEFAULTS);
	assert.deepEqual(parseSettings("null"), DEFAULTS);
	assert.deepEqual(parseSettings('{"theme":"pink","icicle":1,"order":[]}'), DEFAULTS);
	assert.deepEqual(parseSettings('{"theme":"dark","icicle":true,"merge":false,"order":"name"}'),
		{ theme: "dark", icicle: true, merge: false, order: "name" });
});
