// SPDX-License-Identifier: Apache-2.0
/* Reads the JSON that cairn writes (README.md has the table). The file may come from anybody: everything is checked
   here, once, and every string is made safe to show, so that nothing below has to ask again. */

import type { Cut, Functions, Loaded, Profile, Session } from "./data.ts";
import { SEEN_CALLED, SEEN_INLINED } from "./data.ts";
import { visibleText } from "./text.ts";

export const FORMAT_VERSION = 1;

const COUNT_MAX = 20_000_000;
const KINDS_MAX = 255;
const INT_MAX = 0x7fffffff;

class Malformed extends Error {}

function fail(path: string, what: string): never {
	throw new Malformed(`${path}: ${what}`);
}

type Members = Record<string, unknown>;

function objectAt(value: unknown, path: string): Members {
	if (typeof value !== "object" || value === null || Array.isArray(value))
		fail(path, "not an object");
	return value as Members;
}

function member(of: Members, key: string): unknown {
	return Object.prototype.hasOwnProperty.call(of, key) ? of[key] : undefined;
}

function arrayAt(of: Members, key: string, path: string, count?: number): unknown[] {
	const value = member(of, key);
	if (!Array.isArray(value))
		fail(`${path}.${key}`, "not an array");
	if (value.length > COUNT_MAX)
		fail(`${path}.${key}`, `more than ${COUNT_MAX} entries`);
	if (count !== undefined && value.length !== count)
		fail(`${path}.${key}`, `${value.length} entries, expected ${count}`);
	return value;
}

function strings(values: unknown[], path: string): string[] {
	return values.map((value, i) => {
		if (typeof value !== "string")
			fail(`${path}[${i}]`, "not a string");
		return visibleText(value);
	});
}

interface Column {
	path: string;
	min: number;
	/* exclusive */
	end: (row: number) => number;
}

function integers(values: unknown[], column: Column): Int32Array {
	const out = new Int32Array(values.length);
	for (let i = 0; i < values.length; i++) {
		const value = values[i];
		if (typeof value !== "number" || !Number.isInteger(value))
			fail(`${column.path}[${i}]`, "not an integer");
		if (value < column.min || value >= column.end(i))
			fail(`${column.path}[${i}]`, `${value} is out of range`);
		out[i] = value;
	}
	return out;
}

function indices(of: Members, key: string, path: string, limits: { min: number; end: number; count?: number }) {
	const values = arrayAt(of, key, path, limits.count);
	return integers(values, { path: `${path}.${key}`, min: limits.min, end: () => limits.end });
}

function optionalIndices(of: Members, key: string, path: string, limits: { fallback: number; end: number; count: number }) {
	if (member(of, key) === undefined)
		return new Int32Array(limits.count).fill(limits.fallback);
	return indices(of, key, path, { min: limits.fallback, end: limits.end, count: limits.count });
}

function optionalText(of: Members, key: string, path: string): string | undefined {
	const value = member(of, key);
	if (value === undefined || value === null)
		return undefined;
	if (typeof value !== "string")
		fail(`${path}.${key}`, "not a string");
	return visibleText(value);
}

function optionalNumber(of: Members, key: string, path: string): number | undefined {
	const value = member(of, key);
	if (value === undefined || value === null)
		return undefined;
	if (typeof value !== "number" || !Number.isFinite(value) || value < 0)
		fail(`${path}.${key}`, "not a number of 0 or more");
	return value;
}

const TEXT_FACTS = ["title", "host", "start", "end", "event", "kernel", "version", "command"] as const;
const NUMBER_FACTS = ["duration_s", "rate_hz", "cpus", "samples", "lost"] as const;

function parseCuts(values: unknown[]): Cut[] {
	return values.map((value, i) => {
		const path = `session.cut[${i}]`;
		const cut = objectAt(value, path);
		return {
			reason: optionalText(cut, "reason", path) ?? "unknown",
			samples: optionalNumber(cut, "samples", path) ?? 0,
		};
	});
}

function parseSession(value: unknown): Session {
	const session: Session = {};
	if (value === undefined || value === null)
		return session;
	const from = objectAt(value, "session");
	for (const key of TEXT_FACTS) {
		const text = optionalText(from, key, "session");
		if (text !== undefined && text !== "")
			session[key] = text;
	}
	for (const key of NUMBER_FACTS) {
		const number = optionalNumber(from, key, "session");
		if (number !== undefined)
			session[key] = number;
	}
	if (member(from, "cut") != null)
		session.cut = parseCuts(arrayAt(from, "cut", "session"));
	if (member(from, "notes") != null)
		session.notes = strings(arrayAt(from, "notes", "session"), "session.notes");
	return session;
}

interface Frames {
	count: number;
	name: Int32Array;
	kind: Int32Array;
	file: Int32Array;
	line: Int32Array;
	object: Int32Array;
	inlined: Int32Array;
}

function parseFrames(value: unknown, stringCount: number, kindCount: number): Frames {
	const from = objectAt(value, "frames");
	const count = arrayAt(from, "name", "frames").length;
	return {
		count,
		name: indices(from, "name", "frames", { min: 0, end: stringCount }),
		kind: indices(from, "kind", "frames", { min: 0, end: kindCount, count }),
		file: optionalIndices(from, "file", "frames", { fallback: -1, end: stringCount, count }),
		line: optionalIndices(from, "line", "frames", { fallback: 0, end: INT_MAX, count }),
		object: optionalIndices(from, "object", "frames", { fallback: -1, end: stringCount, count }),
		inlined: optionalIndices(from, "inlined", "frames", { fallback: 0, end: 2, count }),
	};
}

// Two rows of the string table may hold the same text; names are compared by index from here on.
function canonicalStrings(all: string[]): Int32Array {
	const first = new Map<string, number>();
	return Int32Array.from(all, (text, i) => {
		const known = first.get(text);
		if (known === undefined)
			first.set(text, i);
		return known ?? i;
	});
}

function addFrame(functions: Functions, fn: number, frames: Frames, frame: number) {
	functions.inlined[fn]! |= frames.inlined[frame] ? SEEN_INLINED : SEEN_CALLED;
	if (functions.file[fn] === -1)
		functions.file[fn] = frames.file[frame]!;
	const line = frames.line[frame]!;
	if (!line || frames.file[frame] !== functions.file[fn])
		return;
	if (!functions.lineFirst[fn] || line < functions.lineFirst[fn]!)
		functions.lineFirst[fn] = line;
	functions.lineLast[fn] = Math.max(functions.lineLast[fn]!, line);
}

function makeFunctions(frames: Frames, canonical: Int32Array): { functions: Functions; ofFrame: Int32Array } {
	const ids = new Map<string, number>();
	const ofFrame = new Int32Array(frames.count);
	const n = frames.count;
	const functions: Functions = {
		count: 0,
		name: new Int32Array(n),
		kind: new Uint8Array(n),
		object: new Int32Array(n),
		file: new Int32Array(n).fill(-1),
		lineFirst: new Int32Array(n),
		lineLast: new Int32Array(n),
		inlined: new Uint8Array(n),
	};
	for (let i = 0; i < n; i++) {
		const name = canonical[frames.name[i]!]!;
		const object = frames.object[i]! < 0 ? -1 : canonical[frames.object[i]!]!;
		const key = `${name},${frames.kind[i]},${object}`;
		let fn = ids.get(key);
		if (fn === undefined) {
			fn = functions.count++;
			ids.set(key, fn);
			functions.name[fn] = name;
			functions.kind[fn] = frames.kind[i]!;
			functions.object[fn] = object;
		}
		addFrame(functions, fn, frames, i);
		ofFrame[i] = fn;
	}
	return { functions, ofFrame };
}

function parseStacks(value: unknown, ofFrame: Int32Array): Profile["stacks"] {
	const from = objectAt(value, "stacks");
	const parents = arrayAt(from, "parent", "stacks");
	const parent = integers(parents, { path: "stacks.parent", min: -1, end: (row) => row });
	const frame = indices(from, "frame", "stacks", { min: 0, end: ofFrame.length, count: parents.length });
	return { count: parents.length, parent, function: frame.map((f) => ofFrame[f]!) };
}

function parseProcesses(value: unknown, canonical: Int32Array): Profile["processes"] {
	const from = objectAt(value, "processes");
	const pid = indices(from, "pid", "processes", { min: -1, end: INT_MAX });
	const name = indices(from, "name", "processes", { min: 0, end: canonical.length, count: pid.length });
	return { count: pid.length, pid, name: name.map((n) => canonical[n]!) };
}

function parseValues(from: Members, count: number): Float64Array {
	const values = arrayAt(from, "value", "samples", count);
	return Float64Array.from(values, (value, i) => {
		if (typeof value !== "number" || !Number.isFinite(value) || value < 0)
			fail(`samples.value[${i}]`, "not a number of 0 or more");
		return value;
	});
}

function parseSamples(value: unknown, stacks: number, processes: number): Profile["samples"] {
	const from = objectAt(value, "samples");
	const stack = indices(from, "stack", "samples", { min: -1, end: stacks });
	const count = stack.length;
	const process = indices(from, "process", "samples", { min: 0, end: processes, count });
	return { count, stack, process, value: parseValues(from, count) };
}

function parseProfile(root: Members, session: Session): Profile {
	const all = strings(arrayAt(root, "strings", "profile"), "strings");
	const kinds = strings(arrayAt(root, "kinds", "profile"), "kinds");
	if (kinds.length > KINDS_MAX)
		fail("kinds", `more than ${KINDS_MAX} entries`);
	const canonical = canonicalStrings(all);
	const frames = parseFrames(member(root, "frames"), all.length, kinds.length);
	const { functions, ofFrame } = makeFunctions(frames, canonical);
	const stacks = parseStacks(member(root, "stacks"), ofFrame);
	const processes = parseProcesses(member(root, "processes"), canonical);
	const samples = parseSamples(member(root, "samples"), stacks.count, processes.count);
	const value = member(root, "value") === undefined ? {} : objectAt(member(root, "value"), "value");
	return {
		session,
		valueName: optionalText(value, "name", "value") ?? "samples",
		valueUnit: optionalText(value, "unit", "value") ?? "count",
		kinds,
		strings: all,
		functions,
		stacks,
		processes,
		samples,
		total: samples.value.reduce((sum, each) => sum + each, 0),
	};
}

function checkVersion(root: Members): Loaded | null {
	const version = member(root, "version");
	if (typeof version !== "number" || !Number.isInteger(version) || version < 1)
		fail("version", "missing, or not a version number");
	if (version <= FORMAT_VERSION)
		return null;
	return {
		state: "problem",
		title: "This profile is newer than this viewer",
		detail: `The data is version ${version}, this viewer reads up to version ${FORMAT_VERSION}. ` +
			"Write the page again with one version of cairn.",
	};
}

/* Never throws: whatever TEXT is, the answer is something that can be shown. */
export function loadProfile(text: string): Loaded {
	try {
		const root = objectAt(JSON.parse(text), "profile");
		const newer = checkVersion(root);
		if (newer)
			return newer;
		const session = parseSession(member(root, "session"));
		const profile = parseProfile(root, session);
		if (!Number.isFinite(profile.total))
			fail("samples.value", "the sum is too large");
		return profile.total > 0 ? { state: "profile", profile } : { state: "empty", session };
	} catch (error) {
		const detail = error instanceof Error ? error.message : String(error);
		return {
			state: "problem",
			title: error instanceof SyntaxError ? "The profile is not valid JSON" : "The profile is malformed",
			detail: visibleText(detail),
		};
	}
}
