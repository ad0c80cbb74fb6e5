// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { pushSource, staticSource } from "../src/data.ts";
import { loadProfile } from "../src/parse.ts";
import { profileOf } from "./load.ts";
import { ProfileWriter, bigProfile, realisticProfile, smallProfile } from "./profiles.ts";
import type { RawProfile } from "./profiles.ts";

test("a whole profile is read", () => {
	const profile = profileOf(smallProfile());
	assert.equal(profile.total, 100);
	assert.equal(profile.session.host, "box");
	assert.equal(profile.session.lost, 3);
	assert.deepEqual(profile.kinds, ["native", "kernel", "cut"]);
	assert.equal(profile.processes.count, 3);
});

test("the made-up profiles are valid", () => {
	assert.ok(profileOf(realisticProfile()).total > 1000);
	assert.ok(profileOf(bigProfile(2000)).samples.count > 1900);
});

test("missing facts are absent, null facts too", () => {
	const raw = smallProfile();
	raw.session = { rate_hz: null, host: null, kernel: "" };
	assert.deepEqual(profileOf(raw).session, {});
	assert.deepEqual(profileOf({ ...smallProfile(), session: undefined }).session, {});
});

test("frames that differ by line are one function with a range of lines", () => {
	const writer = new ProfileWriter();
	const process = writer.process(1, "p");
	for (const line of [30, 10, 20])
		writer.sample(process, [{ name: "f", file: "f.c", line, object: "o", inlined: line === 10 }], 1);
	writer.sample(process, [{ name: "f", file: "f.c", line: 1, object: "other" }], 1);
	const { functions } = profileOf(writer.raw);
	assert.equal(functions.count, 2);
	assert.deepEqual([functions.lineFirst[0], functions.lineLast[0], functions.inlined[0]], [10, 30, 3]);
});

test("the same text twice in the string table is one name", () => {
	const raw = smallProfile();
	raw.strings.push("worker");
	raw.processes.name[1] = raw.strings.length - 1;
	const profile = profileOf(raw);
	assert.equal(profile.processes.name[0], profile.processes.name[1]);
});

test("strings are made safe to show", () => {
	const raw = smallProfile();
	raw.strings[0] = "evil\u202e\0";
	raw.session.host = "h\u202eost";
	raw.kinds[0] = "na\u200btive";
	const profile = profileOf(raw);
	assert.equal(profile.strings[0], "evil\\u202e\u2400");
	assert.equal(profile.session.host, "h\\u202eost");
	assert.equal(profile.kinds[0], "na\\u200btive");
});

test("columns that older writers leave out have defaults", () => {
	const raw = smallProfile() as unknown as { frames: Record<string, unknown>; value?: unknown };
	for (const key of ["file", "line", "object", "inlined"])
		delete raw.frames[key];
	delete raw.value;
	const profile = profileOf(raw);
	assert.equal(profile.functions.object[0], -1);
	assert.equal(profile.valueName, "samples");
});

test("a profile without samples is empty, with its facts", () => {
	const raw = smallProfile();
	raw.samples = { stack: [], process: [], value: [] };
	assert.deepEqual(loadProfile(JSON.stringify(raw)), { state: "empty", session: profileOf(smallProfile()).session });
});

test("samples that count nothing are an empty profile", () => {
	const raw = smallProfile();
	raw.samples.value.fill(0);
	assert.equal(loadProfile(JSON.stringify(raw)).state, "empty");
});

const MALFORMED: [string, (raw: RawProfile) => unknown, RegExp][] = [
	["an array", () => [], /profile: not an object/],
	["null", () => null, /profile: not an object/],
	["no version", (raw) => ({ ...raw, version: undefined }), /version/],
	["a version of 0", (raw) => ({ ...raw, version: 0 }), /version/],
	["a version that is text", (raw) => ({ ...raw, version: "1" }), /version/],
	["strings that are numbers", (raw) => ({ ...raw, strings: [1] }), /strings\[0\]: not a string/],
	["no frames", (raw) => ({ ...raw, frames: undefined }), /frames: not an object/],
	["a kind out of range", (raw) => (raw.frames.kind[0] = 99, raw), /frames\.kind\[0\]: 99 is out of range/],
	["a name below 0", (raw) => (raw.frames.name[0] = -1, raw), /frames\.name\[0\]/],
	["a name that is a fraction", (raw) => (raw.frames.name[0] = 0.5, raw), /not an integer/],
	["columns of different length", (raw) => (raw.frames.kind.pop(), raw), /frames\.kind: \d+ entries, expected/],
	["a parent after its child", (raw) => (raw.stacks.parent[0] = 1, raw), /stacks\.parent\[0\]/],
	["a stack that is its own parent", (raw) => (raw.stacks.parent[2] = 2, raw), /stacks\.parent\[2\]/],
	["a sample of an unknown stack", (raw) => (raw.samples.stack[0] = 1e6, raw), /samples\.stack\[0\]/],
	["a sample of an unknown process", (raw) => (raw.samples.process[0] = 3, raw), /samples\.process\[0\]/],
	["a negative value", (raw) => (raw.samples.value[0] = -1, raw), /samples\.value\[0\]/],
	["a value that is text", (raw) => ((raw.samples.value as unknown[])[0] = "9", raw), /samples\.value\[0\]/],
	["values whose sum is infinite", (raw) => (raw.samples.value.fill(1.7e308), raw), /sum/],
	["a host that is a number", (raw) => (raw.session.host = 3, raw), /session\.host/],
	["a negative count of lost samples", (raw) => (raw.session.lost = -3, raw), /session\.lost/],
	["cuts that are no list", (raw) => (raw.session.cut = {}, raw), /session\.cut/],
	["notes that are no text", (raw) => (raw.session.notes = [{}], raw), /session\.notes\[0\]/],
];

for (const [name, damage, expected] of MALFORMED)
	test(`${name} is reported, with the place`, () => {
		const loaded = loadProfile(JSON.stringify(damage(smallProfile())));
		assert.equal(loaded.state, "problem");
		assert.match((loaded as { detail: string }).detail, expected);
	});

test("text that is not JSON is reported", () => {
	for (const text of ["", "{", "@CAIRN", "{\"version\":1"]) {
		const loaded = loadProfile(text);
		assert.equal(loaded.state, "problem");
		assert.match((loaded as { title: string }).title, /not valid JSON/);
	}
});

test("data of a newer version says so", () => {
	const loaded = loadProfile(JSON.stringify({ version: 2 }));
	assert.match((loaded as { title: string }).title, /newer/);
});

test("names like those of Object's own members are only names", () => {
	const text = JSON.stringify(smallProfile()).replace("\"session\":{", "\"__proto__\":{\"x\":1},\"session\":{\"__proto__\":{\"host\":\"x\"},");
	assert.equal(loadProfile(text).state, "profile");
	assert.equal(({} as { host?: string }).host, undefined);
});

test("a pushing source tells its listeners until they leave", () => {
	const source = pushSource();
	const heard: string[] = [];
	const leave = source.subscribe((loaded) => heard.push(loaded.state));
	source.push({ state: "empty", session: {} });
	leave();
	source.push({ state: "waiting" });
	assert.deepEqual(heard, ["empty"]);
	assert.equal(source.current().state, "waiting");
	assert.equal(staticSource({ state: "waiting" }).current().state, "waiting");
});
