// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { Labels } from "../src/labels.ts";
import { NAME_MAX, collapseArguments, fitText, visibleText } from "../src/text.ts";

const perCharacter = (text: string) => Array.from(text).length;

const VISIBLE: [string, string, string][] = [
	["plain text stays as it is", "std::vector<int>::push_back(int&&)", "std::vector<int>::push_back(int&&)"],
	["letters of any script stay", "größe_函数_функция", "größe_函数_функция"],
	["markup is only text", "</script><img src=x onerror=alert(1)>", "</script><img src=x onerror=alert(1)>"],
	["NUL is a picture of NUL", "a\0b", "a\u2400b"],
	["a line feed and a tab are pictures", "a\nb\tc", "a\u240ab\u2409c"],
	["DEL is a picture", "a\x7f", "a\u2421"],
	["C1 controls are escapes", "a\x9bb", "a\\u009bb"],
	["a right-to-left override is an escape", "gpj\u202eexe", "gpj\\u202eexe"],
	["bidi isolates are escapes", "\u2066x\u2069", "\\u2066x\\u2069"],
	["zero width characters are escapes", "a\u200bb\ufeffc", "a\\u200bb\\ufeffc"],
	["line separators are escapes", "a\u2028b", "a\\u2028b"],
	["half a surrogate pair is an escape", "a\ud800b", "a\\ud800b"],
	["tag characters are escapes", "a\u{e0041}", "a\\u{e0041}"],
	["blanks that are not the space are escapes", "a\u00a0b\u3164c", "a\\u00a0b\\u3164c"],
	["three combining marks may pile up, not four", "e\u0301\u0301\u0301\u0301", "e\u0301\u0301\u0301\\u0301"],
];

for (const [name, input, expected] of VISIBLE)
	test(name, () => assert.equal(visibleText(input), expected));

test("a name of a megabyte is cut", () => {
	assert.equal(visibleText("x".repeat(1 << 20)).length, NAME_MAX + 1);
});

const COLLAPSED: [string, string][] = [
	["std::vector<int, std::allocator<int>>::size() const", "std::vector<…>::size() const"],
	["f(std::pair<a, b>, int)", "f(…)"],
	["operator<(Key const&, Key const&)", "operator<(…)"],
	["Foo::operator->() const", "Foo::operator->() const"],
	["store::(anonymous namespace)::f(int x)", "store::(anonymous namespace)::f(…)"],
	["f<g->h>(x)", "f<…>(x)"],
	["Foo::operator()(int, long) const", "Foo::operator()(…) const"],
	["operator<< <char, long>(std::ostream&)", "operator<< <char, long>(…)"],
	["<module>", "<module>"],
	["nginx (3 processes)", "nginx (3 processes)"],
	["broken<<<<(((", "broken<<<<((("],
];

for (const [input, expected] of COLLAPSED)
	test(`arguments of ${input} collapse`, () => assert.equal(collapseArguments(input), expected));

const FITTED: [string, number, string][] = [
	["main", 10, "main"],
	["a_rather_long_name", 8, "a_rathe…"],
	["std::vector<int, long>::size(int a)", 24, "std::vector<…>::size(…)"],
	["std::vector<int, long>::size(int a)", 12, "…::size(…)"],
	["std::vector<int, long>::size(int a)", 5, "size…"],
	["/usr/lib/python3/dist-packages/x.py", 15, "/usr…kages/x.py"],
	["main", 2, ""],
];

for (const [name, room, expected] of FITTED)
	test(`${name} in ${room} characters is "${expected}"`, () => {
		assert.equal(fitText(name, room, perCharacter), expected);
		assert.ok(perCharacter(fitText(name, room, perCharacter)) <= room);
	});

test("a cut never leaves half a surrogate pair", () => {
	for (let room = 3; room < 12; room++)
		assert.ok(!/[\ud800-\udbff](?![\udc00-\udfff])/.test(fitText("😀".repeat(20), room, perCharacter)));
});

test("a cut name never exceeds its room, whatever the name", () => {
	const names = ["::::::::", "a::b::c<d>(e)", "/////", "x/<y>/(z)", "((((((", ">>>>>::", "…".repeat(9), "operator()(int)const"];
	for (const name of names)
		for (let room = 0; room < 24; room++)
			assert.ok(perCharacter(fitText(name, room, perCharacter)) <= room || fitText(name, room, perCharacter) === "");
});

test("labels measure a character once and keep a cut", () => {
	let measured = 0;
	const labels = new Labels((text) => {
		measured++;
		return text.length * 7;
	});
	assert.equal(labels.width("aabb"), 28);
	assert.equal(measured, 2);
	assert.equal(labels.fit(1, "aabbaabb", 40), "aabb…");
	const before = measured;
	assert.equal(labels.fit(1, "aabbaabb", 40), "aabb…");
	assert.equal(measured, before);
});
