// SPDX-License-Identifier: Apache-2.0
/* What the viewer shows, and the interface through which it gets it. The drawing knows nothing of where profiles
   come from: a file has one, `live` pushes new ones, the studio answers from HTTP. */

export interface Cut {
	reason: string;
	samples: number;
}

/* The facts of one profiling session. A missing member is a fact nobody knows, and is not shown. */
export interface Session {
	title?: string;
	host?: string;
	start?: string;
	end?: string;
	duration_s?: number;
	rate_hz?: number;
	event?: string;
	cpus?: number;
	kernel?: string;
	version?: string;
	command?: string;
	samples?: number;
	lost?: number;
	cut?: Cut[];
	notes?: string[];
}

export const SEEN_INLINED = 1;
export const SEEN_CALLED = 2;

/* Frames that differ only by line belong to one function; a box and a table row are a function. Strings are safe to
   show (text.ts). An index of -1 means none. */
export interface Functions {
	count: number;
	name: Int32Array;
	kind: Uint8Array;
	object: Int32Array;
	file: Int32Array;
	/* the lowest and highest line seen, 0 if none */
	lineFirst: Int32Array;
	lineLast: Int32Array;
	/* SEEN_INLINED, SEEN_CALLED, or both */
	inlined: Uint8Array;
}

export interface Profile {
	session: Session;
	valueName: string;
	valueUnit: string;
	kinds: string[];
	strings: string[];
	functions: Functions;
	/* a trie; a parent has a lower index than its children */
	stacks: { count: number; parent: Int32Array; function: Int32Array };
	processes: { count: number; pid: Int32Array; name: Int32Array };
	/* a stack of -1 is a sample without frames */
	samples: { count: number; stack: Int32Array; process: Int32Array; value: Float64Array };
	total: number;
}

export type Loaded =
	| { state: "profile"; profile: Profile }
	| { state: "empty"; session: Session }
	| { state: "waiting" }
	| { state: "problem"; title: string; detail: string };

export interface ProfileSource {
	current(): Loaded;
	/* LISTEN is called after every change until the returned function is called. */
	subscribe(listen: (loaded: Loaded) => void): () => void;
}

/* One profile that never changes. */
export function staticSource(loaded: Loaded): ProfileSource {
	return { current: () => loaded, subscribe: () => () => undefined };
}

export interface PushSource extends ProfileSource {
	push(loaded: Loaded): void;
}

/* A source whose owner replaces the profile whenever it has a newer one. */
export function pushSource(first: Loaded = { state: "waiting" }): PushSource {
	const listeners = new Set<(loaded: Loaded) => void>();
	let loaded = first;
	return {
		current: () => loaded,
		subscribe(listen) {
			listeners.add(listen);
			return () => listeners.delete(listen);
		},
		push(next) {
			loaded = next;
			for (const listen of [...listeners])
				listen(next);
		},
	};
}

/* A function's name, "" if it has none. */
export function functionName(profile: Profile, fn: number): string {
	return profile.strings[profile.functions.name[fn]!] ?? "";
}

export function stringAt(profile: Profile, index: number): string {
	return profile.strings[index] ?? "";
}
