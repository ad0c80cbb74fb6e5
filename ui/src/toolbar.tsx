// SPDX-License-Identifier: Apache-2.0
/* The row of controls. Each names its key. */

import type { ComponentChildren, RefObject } from "preact";
import { formatShare } from "./format.ts";
import type { Action } from "./keys.ts";
import { KEYS } from "./keys.ts";
import type { Matches, Matcher } from "./search.ts";
import { matchedWithin } from "./search.ts";
import type { Settings } from "./settings.ts";
import type { Tree } from "./tree.ts";

export interface ToolbarProps {
	tree: Tree;
	settings: Settings;
	dark: boolean;
	zoomed: number;
	query: string;
	matcher: Matcher | null;
	matches: Matches | null;
	filtered: boolean;
	tableOpen: boolean;
	search: RefObject<HTMLInputElement>;
	onQuery(query: string): void;
	onAction(action: Action): void;
}

interface ControlProps {
	action: Action;
	onAction(action: Action): void;
	pressed?: boolean;
	label?: string;
	children: ComponentChildren;
}

function Control({ action, onAction, pressed, label, children }: ControlProps) {
	const row = KEYS.find((each) => each.action === action)!;
	return (
		<button
			type="button" data-action={action} aria-pressed={pressed} aria-label={label}
			title={`${row.help} (${row.shown})`} onClick={() => onAction(action)}
		>
			{children}
		</button>
	);
}

function MatchSummary({ tree, zoomed, matcher, matches }: ToolbarProps) {
	if (matcher?.error)
		return <span class="matched error" role="status">{matcher.error}</span>;
	if (!matches)
		return <span class="matched" role="status" />;
	if (matches.nodes.length === 0)
		return <span class="matched" role="status">no match</span>;
	const inView = formatShare(matchedWithin(tree, matches, zoomed), tree.total[zoomed]!);
	const whole = zoomed > 0 ? ` of view, ${formatShare(matches.total, tree.total[0]!)} of all` : "";
	return <span class="matched" role="status">matched <b>{inView}</b>{whole}</span>;
}

function onSearchKey(event: KeyboardEvent & { currentTarget: HTMLInputElement }, props: ToolbarProps) {
	if (event.key === "Enter") {
		event.preventDefault();
		props.onAction(event.shiftKey ? "previous-match" : "next-match");
	} else if (event.key === "Escape") {
		event.preventDefault();
		event.stopPropagation();
		if (props.query !== "")
			props.onQuery("");
		else
			event.currentTarget.blur();
	}
}

function Search(props: ToolbarProps) {
	return (
		<div class="search">
			<input
				ref={props.search} type="search" spellcheck={false} autocomplete="off" value={props.query}
				placeholder="Search (/)" aria-label="Search functions" aria-invalid={!!props.matcher?.error}
				onInput={(event) => props.onQuery(event.currentTarget.value)}
				onKeyDown={(event) => onSearchKey(event, props)}
			/>
			<Control action="previous-match" label="Previous match" onAction={props.onAction}>‹</Control>
			<Control action="next-match" label="Next match" onAction={props.onAction}>›</Control>
			<MatchSummary {...props} />
		</div>
	);
}

export function Toolbar(props: ToolbarProps) {
	const { settings, onAction, zoomed } = props;
	const { processes } = props.tree.profile;
	const shown = props.tree.groups.reduce((sum, group) => sum + group.processes.length, 0);
	const count = props.filtered ? `${shown} of ${processes.count}` : `${processes.count}`;
	return (
		<div class="toolbar" role="toolbar" aria-label="View">
			<Control action="icicle" pressed={settings.icicle} onAction={onAction}>Icicle</Control>
			<Control action="order" pressed={settings.order === "name"} onAction={onAction}>Sort by name</Control>
			<Control action="merge" pressed={settings.merge} onAction={onAction}>Merge processes</Control>
			<Control action="processes" pressed={props.filtered} onAction={onAction}>
				{count} {processes.count === 1 ? "process" : "processes"}…
			</Control>
			<Control action="functions" pressed={props.tableOpen} onAction={onAction}>Functions</Control>
			{zoomed > 0 && <Control action="reset" onAction={onAction}>Show all</Control>}
			<Search {...props} />
			<Control action="theme" label={props.dark ? "Light theme" : "Dark theme"} onAction={onAction}>
				{props.dark ? "☀" : "☾"}
			</Control>
			<Control action="help" label="Keys" onAction={onAction}>?</Control>
		</div>
	);
}
