// SPDX-License-Identifier: Apache-2.0
/* Colours by kind of frame. The hues are those of Okabe and Ito's palette for colour-blind readers ("Color Universal
   Design", 2008), the lightness is set per theme so that text on them is readable and neighbours differ in lightness
   too. tests/colours.test.ts checks both, the second under simulated colour blindness. */

import { stringAt } from "./data.ts";
import type { Profile } from "./data.ts";

export type ThemeName = "light" | "dark";

/* OKLCH: lightness 0 to 1, chroma, hue in degrees. */
type Lch = readonly [number, number, number];

export interface Theme {
	name: ThemeName;
	slots: readonly Lch[];
	neutral: Lch;
	cut: Lch;
	hatch: Lch;
	/* boxes that a search did not find */
	unmatched: Lch;
	/* text on boxes of every kind */
	ink: string;
	unmatchedInk: string;
	background: string;
	/* how far a kind's shades lie apart */
	step: number;
}

export const SHADES = 5;

export const LIGHT: Theme = {
	name: "light",
	slots: [
		[0.66, 0.145, 38], [0.769, 0.103, 234], [0.885, 0.145, 98], [0.918, 0.081, 172],
		[0.66, 0.08, 342], [0.66, 0.145, 266], [0.771, 0.144, 70],
	],
	neutral: [0.885, 0.004, 250],
	cut: [0.94, 0.004, 250],
	hatch: [0.77, 0.01, 250],
	unmatched: [0.925, 0.003, 250],
	ink: "#16181d",
	unmatchedInk: "#5b616b",
	background: "#ffffff",
	step: 0.01,
};

export const DARK: Theme = {
	name: "dark",
	slots: [
		[0.63, 0.13, 38], [0.71, 0.095, 234], [0.81, 0.125, 98], [0.86, 0.07, 172],
		[0.615, 0.08, 342], [0.615, 0.135, 266], [0.71, 0.125, 70],
	],
	neutral: [0.66, 0.008, 250],
	cut: [0.72, 0.006, 250],
	hatch: [0.585, 0.01, 250],
	unmatched: [0.27, 0.006, 250],
	ink: "#0c0e12",
	unmatchedInk: "#a2a9b5",
	background: "#16181c",
	step: 0.009,
};

/* Which slot a kind would like. Kinds that meet in one profile and want the same slot get different ones. */
const PREFERRED: Record<string, number> = {
	kernel: 0, native: 1, python: 2, java: 3, ruby: 4, go: 5, node: 6, javascript: 6, v8: 6,
	php: 6, dotnet: 4, perl: 6, beam: 3, lua: 5, jit: 3, rust: 5,
};

export const CUT_KIND = "cut";
export const SLOT_NEUTRAL = -1;
export const SLOT_CUT = -2;

/* A slot for each kind of KINDS, or SLOT_NEUTRAL or SLOT_CUT. */
export function assignSlots(kinds: readonly string[]): number[] {
	const slotCount = LIGHT.slots.length;
	const taken = new Set<number>();
	const slots = kinds.map((kind) => {
		if (kind === CUT_KIND)
			return SLOT_CUT;
		const slot = Object.prototype.hasOwnProperty.call(PREFERRED, kind) ? PREFERRED[kind]! : null;
		if (kind === "process" || kind === "" || slot === null || taken.has(slot))
			return kind === "process" ? SLOT_NEUTRAL : null;
		taken.add(slot);
		return slot;
	});
	let next = 0;
	return slots.map((slot) => {
		if (slot !== null)
			return slot;
		const free = LIGHT.slots.findIndex((_, i) => !taken.has(i));
		const chosen = free >= 0 ? free : next++ % slotCount;
		taken.add(chosen);
		return chosen;
	});
}

function toLinear([lightness, chroma, hue]: Lch): [number, number, number] {
	const angle = (hue * Math.PI) / 180;
	const a = chroma * Math.cos(angle);
	const b = chroma * Math.sin(angle);
	const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
	const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
	const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
	return [
		4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
		-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
		-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
	];
}

export function cssColour(lch: Lch): string {
	const bytes = toLinear(lch).map((linear) => {
		const x = Math.min(1, Math.max(0, linear));
		const gamma = x <= 0.0031308 ? 12.92 * x : 1.055 * x ** (1 / 2.4) - 0.055;
		return Math.round(gamma * 255).toString(16).padStart(2, "0");
	});
	return `#${bytes.join("")}`;
}

/* WCAG 2 contrast of two #rrggbb colours. */
export function contrast(one: string, other: string): number {
	const luminance = (css: string) => {
		const [r, g, b] = [1, 3, 5].map((at) => {
			const x = parseInt(css.slice(at, at + 2), 16) / 255;
			return x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
		}) as [number, number, number];
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const [high, low] = [luminance(one), luminance(other)].sort((a, b) => b - a) as [number, number];
	return (high + 0.05) / (low + 0.05);
}

/* Shade 0 … SHADES - 1 of a slot. */
export function shade(theme: Theme, slot: number, index: number): string {
	if (slot === SLOT_CUT)
		return cssColour(theme.cut);
	const [l, c, h] = slot === SLOT_NEUTRAL ? theme.neutral : theme.slots[slot]!;
	const off = index - (SHADES - 1) / 2;
	return slot === SLOT_NEUTRAL ? cssColour([l, c, h]) : cssColour([l + off * theme.step, c, h + off * 2]);
}

/* What the drawing looks up: colours NEUTRAL, UNMATCHED and CUT, then the shades of each kind. */
export const COLOUR_NEUTRAL = 0;
export const COLOUR_UNMATCHED = 1;
export const COLOUR_CUT = 2;
const COLOUR_KINDS = 3;

export function colourList(theme: Theme, kinds: readonly string[]): string[] {
	const list = [cssColour(theme.neutral), cssColour(theme.unmatched), cssColour(theme.cut)];
	for (const slot of assignSlots(kinds))
		for (let i = 0; i < SHADES; i++)
			list.push(shade(theme, slot, i));
	return list;
}

function hashText(text: string): number {
	let hash = 0x811c9dc5;
	for (let i = 0; i < text.length; i++)
		hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
	return (hash ^ (hash >>> 15)) >>> 0;
}

/* Index into colourList() of each function. The shade follows the object, so that libraries form visible areas. */
export function functionColours(profile: Profile): Uint16Array {
	const { functions, kinds } = profile;
	const slots = assignSlots(kinds);
	const colours = new Uint16Array(functions.count);
	for (let fn = 0; fn < functions.count; fn++) {
		const kind = functions.kind[fn]!;
		const text = stringAt(profile, functions.object[fn]!) || stringAt(profile, functions.name[fn]!);
		if (slots[kind] === SLOT_CUT)
			colours[fn] = COLOUR_CUT;
		else
			colours[fn] = COLOUR_KINDS + kind * SHADES + (hashText(text) % SHADES);
	}
	return colours;
}
