// SPDX-License-Identifier: Apache-2.0
/* Bundles the viewer into dist/viewer.html: one file, nothing loaded from anywhere. With --demo also writes
   dist/demo.html, the viewer with a made-up profile. */

import { createHash } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const MARKER = "@CAIRN_PROFILE@";
const ELEMENT = `<script type="application/json" id="cairn-profile">${MARKER}</script>`;
const path = (relative) => fileURLToPath(new URL(relative, import.meta.url));

async function bundle(entry, options) {
	const result = await build({
		entryPoints: [path(entry)],
		bundle: true,
		minify: true,
		write: false,
		charset: "ascii",
		legalComments: "none",
		target: ["chrome100", "firefox100", "safari15.4"],
		logLevel: "warning",
		...options,
	});
	return result.outputFiles[0].text.trim();
}

function hashOf(text) {
	return `'sha256-${createHash("sha256").update(text, "utf8").digest("base64")}'`;
}

function policy(script, style) {
	return [
		"default-src 'none'", `script-src ${hashOf(script)}`, `style-src ${hashOf(style)}`, "img-src data:",
		"base-uri 'none'", "form-action 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'",
	].join("; ");
}

// A function as the replacement: in a string, "$&" in the bundled code would mean something.
function fill(template, values) {
	return Object.entries(values).reduce((page, [name, text]) => page.replace(name, () => text), template);
}

function check(page, script, style) {
	const problems = [];
	if (page.split(MARKER).length !== 2 || !page.includes(ELEMENT))
		problems.push(`${MARKER} must occur exactly once, as ${ELEMENT}`);
	if (/<\/script|<!--/i.test(script) || /<\/style/i.test(style))
		problems.push("the bundled code would end its own element");
	if (/\b(?:src|href)\s*=\s*["']?(?:https?:)?\/\//i.test(page) || /@import|url\(/i.test(style))
		problems.push("the page refers to something outside itself");
	if (problems.length > 0)
		throw new Error(`viewer.html: ${problems.join("; ")}`);
}

async function makeViewer() {
	const script = await bundle("src/page.ts", { format: "iife", jsx: "automatic", jsxImportSource: "preact" });
	const style = await bundle("src/viewer.css", {});
	const template = await readFile(path("src/page.html"), "utf8");
	const page = fill(template, { "@CSP@": policy(script, style), "@STYLE@": style, "@SCRIPT@": script });
	check(page, script, style);
	await mkdir(path("dist"), { recursive: true });
	await writeFile(path("dist/viewer.html"), page);
	console.log(`dist/viewer.html: ${(page.length / 1024).toFixed(1)} KiB`);
}

async function makeDemo() {
	const code = await bundle("tests/profiles.ts", { format: "esm", platform: "node" });
	const { realisticProfile, writePage } = await import(`data:text/javascript,${encodeURIComponent(code)}`);
	const viewer = await readFile(path("dist/viewer.html"), "utf8");
	await writeFile(path("dist/demo.html"), writePage(viewer, realisticProfile()));
	console.log("dist/demo.html");
}

await makeViewer();
if (process.argv.includes("--demo"))
	await makeDemo();
