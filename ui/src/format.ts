// SPDX-License-Identifier: Apache-2.0
/* Numbers, shares and times as text, and the facts of a session as a list. */

import type { Profile, Session } from "./data.ts";

const NUMBER = new Intl.NumberFormat("en-US", { maximumFractionDigits: 2 });

export function formatNumber(value: number): string {
	return NUMBER.format(value);
}

export function formatShare(part: number, whole: number): string {
	if (!(whole > 0))
		return "0%";
	const percent = (100 * part) / whole;
	if (percent > 0 && percent < 0.01)
		return "<0.01%";
	return `${percent.toFixed(percent < 10 && percent !== 0 ? 2 : 1)}%`;
}

export function formatSeconds(seconds: number): string {
	if (seconds >= 3600)
		return `${Math.floor(seconds / 3600)} h ${Math.round((seconds % 3600) / 60)} min`;
	if (seconds >= 120)
		return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
	if (seconds >= 1)
		return `${formatNumber(Number(seconds.toPrecision(3)))} s`;
	return seconds >= 1e-3 ? `${formatNumber(seconds * 1e3)} ms` : `${formatNumber(seconds * 1e6)} µs`;
}

const SECONDS: Record<string, number> = {
	nanoseconds: 1e-9, ns: 1e-9, microseconds: 1e-6, us: 1e-6, milliseconds: 1e-3, ms: 1e-3, seconds: 1, s: 1,
};
const BYTE_STEPS = ["B", "KiB", "MiB", "GiB", "TiB"];

function formatBytes(bytes: number): string {
	let step = 0;
	let value = bytes;
	for (; value >= 1024 && step < BYTE_STEPS.length - 1; step++)
		value /= 1024;
	return `${formatNumber(value)} ${BYTE_STEPS[step]}`;
}

/* VALUE in the profile's unit; samples of a known rate also as the time they stand for. */
export function formatValue(profile: Profile, value: number): string {
	const unit = profile.valueUnit;
	if (Object.prototype.hasOwnProperty.call(SECONDS, unit))
		return formatSeconds(value * SECONDS[unit]!);
	if (unit === "bytes")
		return formatBytes(value);
	const noun = value === 1 ? profile.valueName.replace(/s$/, "") : profile.valueName;
	const text = `${formatNumber(value)} ${unit === "count" ? noun : unit}`;
	const rate = profile.session.rate_hz;
	return rate && value > 0 && profile.valueName === "samples" ? `${text} ≈ ${formatSeconds(value / rate)}` : text;
}

function splitTime(text: string): { day: string; time: string } | null {
	const time = Date.parse(text);
	if (Number.isNaN(time))
		return null;
	const iso = new Date(time).toISOString();
	return { day: iso.slice(0, 10), time: iso.slice(11, 19) };
}

export function formatTimes(start?: string, end?: string): string | null {
	const from = start ? splitTime(start) : null;
	const to = end ? splitTime(end) : null;
	if (!from)
		return start ?? null;
	if (!to)
		return `${from.day} ${from.time} UTC`;
	const until = to.day === from.day ? to.time : `${to.day} ${to.time}`;
	return `${from.day} ${from.time}–${until} UTC`;
}

export interface Fact {
	label: string;
	text: string;
	/* the profile shows less than happened */
	warning?: boolean;
	/* goes into the one line at the top */
	brief?: string;
}

function cutFacts(session: Session, samples: number): Fact[] {
	const cuts = (session.cut ?? []).filter((cut) => cut.samples > 0);
	if (cuts.length === 0)
		return [];
	const sum = cuts.reduce((total, cut) => total + cut.samples, 0);
	const each = cuts
		.sort((a, b) => b.samples - a.samples)
		.map((cut) => `${cut.reason}: ${formatNumber(cut.samples)} (${formatShare(cut.samples, samples)})`);
	return [{
		label: "Cut stacks",
		text: `${formatNumber(sum)} (${formatShare(sum, samples)}) — ${each.join(", ")}`,
		brief: `${formatShare(sum, samples)} cut`,
		warning: sum > samples / 100,
	}];
}

function samplingFacts(session: Session): Fact[] {
	const facts: Fact[] = [];
	if (session.rate_hz !== undefined)
		facts.push({ label: "Rate", text: `${formatNumber(session.rate_hz)} Hz`, brief: `${formatNumber(session.rate_hz)} Hz` });
	if (session.event)
		facts.push({ label: "Event", text: session.event, brief: session.event });
	if (session.cpus !== undefined)
		facts.push({ label: "CPUs", text: formatNumber(session.cpus), brief: `${formatNumber(session.cpus)} CPUs` });
	if (session.samples !== undefined) {
		const text = formatNumber(session.samples);
		facts.push({ label: "Samples", text, brief: `${text} samples` });
	}
	if (session.lost !== undefined) {
		const all = session.lost + (session.samples ?? 0);
		const text = `${formatNumber(session.lost)} (${formatShare(session.lost, all)})`;
		facts.push({ label: "Lost samples", text, warning: session.lost > 0, brief: `${formatNumber(session.lost)} lost` });
	}
	return facts;
}

/* The known facts of SESSION; TOTAL is used where the number of samples is not known. */
export function sessionFacts(session: Session, total: number): Fact[] {
	const facts: Fact[] = [];
	const add = (label: string, text: string | null | undefined, brief = false) => {
		if (text)
			facts.push(brief ? { label, text, brief: text } : { label, text });
	};
	add("Title", session.title);
	add("Command", session.command);
	add("Host", session.host, true);
	add("Time", formatTimes(session.start, session.end), true);
	add("Duration", session.duration_s === undefined ? null : formatSeconds(session.duration_s), true);
	facts.push(...samplingFacts(session), ...cutFacts(session, session.samples ?? total));
	add("Kernel", session.kernel);
	add("cairn", session.version);
	for (const note of session.notes ?? [])
		facts.push({ label: "Note", text: note });
	return facts;
}
