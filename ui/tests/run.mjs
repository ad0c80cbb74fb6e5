// SPDX-License-Identifier: Apache-2.0
/* Bundles what is in the folders named on the command line and runs it: tests with node's test runner, and with
   --script any other file. The last line is "N passed, N failed, N skipped". */

import { spawn } from "node:child_process";
import { mkdir, readdir, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = fileURLToPath(new URL("..", import.meta.url));
const out = join(root, "build");

async function bundle(entries) {
	await rm(out, { recursive: true, force: true });
	await mkdir(out, { recursive: true });
	await build({
		entryPoints: entries, outdir: out, outExtension: { ".js": ".mjs" }, bundle: true, platform: "node", format: "esm",
		target: "node18", jsx: "automatic", jsxImportSource: "preact", external: ["playwright-core"], sourcemap: "inline",
		logLevel: "warning",
	});
	return entries.map((entry) => join(out, `${basename(entry).replace(/\.tsx?$/, "")}.mjs`));
}

function run(args, watch) {
	return new Promise((resolve, reject) => {
		const child = spawn(process.execPath, ["--enable-source-maps", ...args], {
			cwd: root, stdio: ["ignore", "pipe", "inherit"],
		});
		child.stdout.on("data", (bytes) => {
			process.stdout.write(bytes);
			watch(bytes.toString());
		});
		child.on("error", reject);
		child.on("close", (code) => resolve(code ?? 1));
	});
}

async function runTests(folder) {
	const names = (await readdir(join(root, folder))).filter((name) => name.endsWith(".test.ts")).sort();
	const files = await bundle(names.map((name) => join(root, folder, name)));
	let output = "";
	const code = await run(["--test", "--test-reporter=spec", ...files], (text) => (output += text));
	const count = (word) => Number(new RegExp(`^\\S+ ${word} (\\d+)$`, "m").exec(output)?.[1] ?? NaN);
	const [passed, failed, skipped] = [count("pass"), count("fail") + count("cancelled"), count("skipped")];
	console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
	return code || !(passed > 0) ? 1 : 0;
}

async function runScript(file, args) {
	const [bundled] = await bundle([join(root, file)]);
	return run([bundled, ...args], () => undefined);
}

const [first, ...rest] = process.argv.slice(2);
process.exitCode = first === "--script" ? await runScript(rest[0], rest.slice(1)) : await runTests(first);
