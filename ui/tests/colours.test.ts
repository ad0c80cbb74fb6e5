// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import {
	DARK, LIGHT, SHADES, SLOT_CUT, SLOT_NEUTRAL, assignSlots, colourList, contrast, cssColour, functionColours, shade,
} from "../src/colours.ts";
import { pixelOf } from "../src/strips.ts";
import { profileOf } from "./load.ts";
import { realisticProfile } from "./profiles.ts";

const THEMES = [LIGHT, DARK];
const READABLE = 4.5;

for (const theme of THEMES) {
	test(`text is readable on every colour of the ${theme.name} theme`, () => {
		for (let slot = SLOT_CUT; slot < theme.slots.length; slot++)
			for (let i = 0; i < SHADES; i++)
				assert.ok(contrast(shade(theme, slot, i), theme.ink) >= READABLE, `slot ${slot}, shade ${i}`);
		assert.ok(contrast(cssColour(theme.hatch), theme.ink) >= READABLE);
		assert.ok(contrast(cssColour(theme.unmatched), theme.unmatchedInk) >= READABLE);
	});
}

// How protanopia, deuteranopia and tritanopia change linear RGB: Machado, Oliveira and Fernandes, "A Physiologically-based
// Model for Simulation of Color Vision Deficiency" (2009), severity 1.0.
const VISION: Record<string, number[][]> = {
	full: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
	protan: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
	deutan: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
	tritan: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
};

function oklab(css: string, vision: number[][]): number[] {
	const linear = [1, 3, 5].map((at) => {
		const x = parseInt(css.slice(at, at + 2), 16) / 255;
		return x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
	});
	const [r, g, b] = vision.map((row) => Math.max(0, row.reduce((sum, each, i) => sum + each * linear[i]!, 0))) as number[];
	const l = Math.cbrt(0.4122214708 * r! + 0.5363325363 * g! + 0.0514459929 * b!);
	const m = Math.cbrt(0.2119034982 * r! + 0.6806995451 * g! + 0.1073969566 * b!);
	const s = Math.cbrt(0.0883024619 * r! + 0.2817188376 * g! + 0.6299787005 * b!);
	return [
		0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
		1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
		0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
	];
}

// A difference of 0.02 in OKLab is just noticeable side by side; areas in a picture need several times that.
const DISTINCT = 0.08;

for (const theme of THEMES)
	for (const [name, vision] of Object.entries(VISION))
		test(`kinds differ in the ${theme.name} theme with ${name} vision`, () => {
			const seen = theme.slots.map((slot) => oklab(cssColour(slot), vision));
			for (let i = 0; i < seen.length; i++)
				for (let j = 0; j < i; j++) {
					const distance = Math.hypot(...seen[i]!.map((x, axis) => x - seen[j]![axis]!));
					assert.ok(distance >= DISTINCT, `slots ${j} and ${i}: ${distance.toFixed(3)}`);
				}
		});

test("contrast is that of WCAG", () => {
	assert.equal(contrast("#000000", "#ffffff"), 21);
	assert.equal(contrast("#777777", "#777777"), 1);
});

test("kinds of one profile have different colours while there are any", () => {
	const slots = assignSlots(["kernel", "native", "python", "node", "php", "process", "cut", "zig"]);
	assert.equal(slots[5], SLOT_NEUTRAL);
	assert.equal(slots[6], SLOT_CUT);
	const used = slots.filter((slot) => slot >= 0);
	assert.equal(new Set(used).size, used.length);
});

test("more kinds than colours still have one each", () => {
	const slots = assignSlots(Array.from({ length: 40 }, (_, i) => `kind${i}`));
	assert.ok(slots.every((slot) => slot >= 0 && slot < LIGHT.slots.length));
});

test("a kind called like a member of Object is a kind", () => {
	const slots = assignSlots(["constructor", "__proto__", "toString"]);
	assert.ok(slots.every((slot) => Number.isInteger(slot)));
});

test("a function's colour is its kind's, the same every time", () => {
	const profile = profileOf(realisticProfile());
	const list = colourList(LIGHT, profile.kinds);
	const colours = functionColours(profile);
	assert.deepEqual(colours, functionColours(profile));
	assert.ok(colours.every((colour) => /^#[0-9a-f]{6}$/.test(list[colour]!)));
});

test("a pixel has the bytes of its colour", () => {
	assert.deepEqual([...new Uint8Array(Uint32Array.of(pixelOf("#12abef")).buffer)], [0x12, 0xab, 0xef, 0xff]);
});
