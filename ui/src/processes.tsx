// SPDX-License-Identifier: Apache-2.0
/* The choice of processes. */

import { useMemo, useState } from "preact/hooks";
import { Dialog } from "./dialog.tsx";
import type { Profile } from "./data.ts";
import { formatShare, formatValue } from "./format.ts";
import { useWindow } from "./window.ts";

const ROW_PIXELS = 26;

/* By name and pid: the order of processes is another one in the next profile of a live view. */
export function processKey(profile: Profile, process: number): string {
	return `${profile.processes.pid[process]!} ${profile.strings[profile.processes.name[process]!]!}`;
}

export function processTotals(profile: Profile): Float64Array {
	const totals = new Float64Array(profile.processes.count);
	for (let sample = 0; sample < profile.samples.count; sample++)
		totals[profile.samples.process[sample]!]! += profile.samples.value[sample]!;
	return totals;
}

function listProcesses(profile: Profile, totals: Float64Array, text: string): number[] {
	const low = text.toLowerCase();
	return Array.from(totals.keys())
		.filter((process) => processKey(profile, process).toLowerCase().includes(low))
		.sort((a, b) => totals[b]! - totals[a]! || a - b);
}

interface ProcessesProps {
	profile: Profile;
	/* null: all */
	chosen: ReadonlySet<string> | null;
	onChoose(chosen: ReadonlySet<string> | null): void;
	onClose(): void;
}

export function ProcessesDialog({ profile, chosen, onChoose, onClose }: ProcessesProps) {
	const [text, setText] = useState("");
	const totals = useMemo(() => processTotals(profile), [profile]);
	const listed = useMemo(() => listProcesses(profile, totals, text), [profile, totals, text]);
	const rows = useWindow(listed.length, ROW_PIXELS);
	const keys = (processes: number[]) => processes.map((process) => processKey(profile, process));
	const everything = () => new Set(keys(Array.from(totals.keys())));
	const change = (edit: (set: Set<string>) => void) => {
		const next = new Set(chosen ?? everything());
		edit(next);
		onChoose(next.size === totals.length ? null : next);
	};
	const set = (key: string, on: boolean) => change((next) => (on ? next.add(key) : next.delete(key)));
	return (
		<Dialog title="Processes" onClose={onClose}>
			<div class="process-tools">
				<input
					type="search" autofocus placeholder="Name or pid" aria-label="Find processes" value={text}
					onInput={(event) => setText(event.currentTarget.value)}
				/>
				<button type="button" onClick={() => onChoose(null)}>All</button>
				<button type="button" onClick={() => onChoose(new Set(keys(listed)))}>Only listed</button>
				<button type="button" onClick={() => change((next) => keys(listed).forEach((key) => next.delete(key)))}>
					Without listed
				</button>
			</div>
			<div class="process-rows" ref={rows.ref} onScroll={rows.onScroll}>
				<div class="spacer" style={{ height: `${listed.length * ROW_PIXELS}px` }}>
					{listed.slice(rows.first, rows.last).map((process, i) => {
						const key = processKey(profile, process);
						const pid = profile.processes.pid[process]!;
						return (
							<label key={key} style={{ top: `${(rows.first + i) * ROW_PIXELS}px` }}>
								<input
									type="checkbox" checked={!chosen || chosen.has(key)}
									onChange={(event) => set(key, event.currentTarget.checked)}
								/>
								<bdi class="grow">{profile.strings[profile.processes.name[process]!]!}</bdi>
								<span class="number pid">{pid < 0 ? "" : pid}</span>
								<span class="number" title={formatValue(profile, totals[process]!)}>
									{formatShare(totals[process]!, profile.total)}
								</span>
								<button type="button" class="quiet" onClick={() => onChoose(new Set([key]))}>only</button>
							</label>
						);
					})}
				</div>
			</div>
		</Dialog>
	);
}
