// SPDX-License-Identifier: Apache-2.0
/* Turns text from strangers into text that cannot mislead a reader, and cuts names to a width. */

// Control, format (bidi, zero width, tags), unassigned, private and lone surrogate code points, separators other
// than the ordinary space, letters that draw nothing, and piles of combining marks that would leave their line.
const INVISIBLE =
	/[\p{Cc}\p{Cf}\p{Cn}\p{Co}\p{Cs}\p{Zl}\p{Zp}\u115f\u1160\u2800\u3164\uffa0]|(?! )\p{Zs}|(?<=\p{M}{3})\p{M}/gu;
const PLAIN = /^[\x20-\x7e]*$/;

export const NAME_MAX = 4096;

function escapeCodePoint(char: string): string {
	const code = char.codePointAt(0) ?? 0;
	if (code < 0x20)
		return String.fromCharCode(0x2400 + code);
	if (code === 0x7f)
		return "\u2421";
	if (code > 0xffff)
		return `\\u{${code.toString(16)}}`;
	return `\\u${code.toString(16).padStart(4, "0")}`;
}

/* TEXT with everything that draws nothing, or draws elsewhere, shown as an escape; at most NAME_MAX long. */
export function visibleText(text: string): string {
	const cut = text.length > NAME_MAX ? `${text.slice(0, NAME_MAX)}…` : text;
	if (PLAIN.test(cut))
		return cut;
	return cut.replace(INVISIBLE, escapeCodePoint);
}

const CLOSER: Record<string, string> = { "<": ">", "(": ")" };

// "operator<", "operator->" and "(anonymous namespace)" are names, not arguments.
function isOperator(name: string, at: number): boolean {
	const before = name.slice(Math.max(0, at - 14), at);
	return name[at] === "<" ? /operator\s*<?$/.test(before) : /operator\s*$/.test(before);
}

function closingIndex(name: string, open: number): number {
	const opener = name[open]!;
	const closer = CLOSER[opener]!;
	let depth = 0;
	for (let i = open; i < name.length; i++) {
		if (name[i] === opener)
			depth++;
		else if (name[i] === closer && name[i - 1] !== "-" && --depth === 0)
			return i;
	}
	return -1;
}

/* A C++ or Rust name without the contents of its template arguments and parameters. */
export function collapseArguments(name: string): string {
	let out = "";
	for (let i = 0; i < name.length; i++) {
		const char = name[i]!;
		const opens = (char === "<" || char === "(") && /\S/.test(name[i - 1] ?? "") && !isOperator(name, i);
		const end = opens ? closingIndex(name, i) : -1;
		if (end > i + 2 && !name.startsWith("(anonymous", i)) {
			out += `${char}…${CLOSER[char]}`;
			i = end;
		} else {
			out += char;
		}
	}
	return out;
}

export type Measure = (text: string) => number;

// Never between the two halves of a surrogate pair: half a pair draws as a replacement character.
function cutEnd(text: string, length: number): string {
	const last = text.charCodeAt(length - 1);
	return text.slice(0, last >= 0xd800 && last < 0xdc00 ? length - 1 : length);
}

function cutStart(text: string, length: number): string {
	const at = text.length - length;
	const first = text.charCodeAt(at);
	return text.slice(first >= 0xdc00 && first < 0xe000 ? at + 1 : at);
}

function longestThatFits(text: string, room: number, measure: Measure, make: (n: number) => string) {
	let low = 0;
	let high = text.length - 1;
	while (low < high) {
		const middle = (low + high + 1) >> 1;
		if (measure(make(middle)) <= room)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

function cutMiddle(text: string, room: number, measure: Measure): string {
	const make = (n: number) => {
		const tail = Math.ceil(n * 0.65);
		return `${cutEnd(text, n - tail)}…${cutStart(text, tail)}`;
	};
	return make(longestThatFits(text, room, measure, make));
}

function cutTail(text: string, room: number, measure: Measure): string {
	// "run(…" and an ellipsis would be two.
	const make = (n: number) => `${cutEnd(text, n).replace(/[(<]?…?\)?$/, "")}…`;
	const n = longestThatFits(text, room, measure, make);
	return n < 2 ? "" : make(n);
}

/* NAME as it fits into ROOM: whole, without arguments, without leading scopes, or with an ellipsis; "" if nothing fits. */
export function fitText(name: string, room: number, measure: Measure): string {
	if (measure(name) <= room)
		return name;
	const short = collapseArguments(name);
	if (measure(short) <= room)
		return short;
	if (/^[^<(]*\//.test(short)) {
		const path = cutMiddle(short, room, measure);
		return path.length > 6 ? path : cutTail(short, room, measure);
	}
	const scope = short.lastIndexOf("::", short.search(/\((?!anonymous)|$/));
	if (scope > 0) {
		const tail = `…${short.slice(scope)}`;
		if (measure(tail) <= room)
			return tail;
		return cutTail(short.slice(scope + 2), room, measure);
	}
	return cutTail(short, room, measure);
}
