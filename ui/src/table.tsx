// SPDX-License-Identifier: Apache-2.0
/* The table of functions, and who calls the chosen one and whom it calls. */

import { useEffect, useMemo, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import type { Theme } from "./colours.ts";
import { functionName, stringAt } from "./data.ts";
import { formatShare, formatValue } from "./format.ts";
import { functionTotals, neighbours, sortFunctions } from "./functions.ts";
import type { FunctionTotals, Neighbour, SortKey, Sorting } from "./functions.ts";
import { Swatch } from "./legend.tsx";
import type { Matcher } from "./search.ts";
import { ROOT_FUNCTION, groupName, groupOf, nodeName } from "./tree.ts";
import type { Tree } from "./tree.ts";
import { useWindow } from "./window.ts";

const ROW_PIXELS = 22;
const HEAD_PIXELS = 26;

const COLUMNS: readonly { key: SortKey; title: string; label: string }[] = [
	{ key: "self", title: "Self", label: "in the function itself" },
	{ key: "total", title: "Total", label: "in the function and what it calls, recursion counted once" },
	{ key: "name", title: "Function", label: "name" },
	{ key: "kind", title: "Kind", label: "kind of frame" },
	{ key: "object", title: "Object", label: "program or library" },
];

export interface TableProps {
	tree: Tree;
	theme: Theme;
	zoomed: number;
	matcher: Matcher | null;
	/* -1: none */
	chosen: number;
	onChoose(fn: number): void;
	onClose(): void;
}

function Share({ value, whole, title }: { value: number; whole: number; title: string }) {
	return (
		<span class="cell number" role="cell" title={title}>
			<span class="bar" style={{ width: `${whole > 0 ? (100 * value) / whole : 0}%` }} />
			<span class="share">{formatShare(value, whole)}</span>
		</span>
	);
}

function Header({ sorting, onSort }: { sorting: Sorting; onSort(key: SortKey): void }) {
	return (
		<div class="table-row table-head" role="row">
			{COLUMNS.map(({ key, title, label }) => {
				const sorted = sorting.key === key;
				const direction = sorting.descending ? "descending" : "ascending";
				return (
					<span key={key} class={`cell ${key}`} role="columnheader" aria-sort={sorted ? direction : "none"}>
						<button type="button" class="quiet" title={label} onClick={() => onSort(key)}>
							{title}{sorted ? (sorting.descending ? " ▾" : " ▴") : ""}
						</button>
					</span>
				);
			})}
		</div>
	);
}

interface RowProps {
	props: TableProps;
	totals: FunctionTotals;
	fn: number;
	row: number;
}

function Row({ props, totals, fn, row }: RowProps) {
	const { tree, theme, zoomed, chosen } = props;
	const { profile } = tree;
	const whole = tree.total[zoomed]!;
	const kind = profile.functions.kind[fn]!;
	const object = stringAt(profile, profile.functions.object[fn]!);
	return (
		<div
			class="table-row" role="row" id={`cairn-row-${fn}`} aria-selected={fn === chosen} aria-rowindex={row + 2}
			style={{ top: `${row * ROW_PIXELS}px` }} onClick={() => props.onChoose(fn === chosen ? -1 : fn)}
		>
			<Share value={totals.self[fn]!} whole={whole} title={formatValue(profile, totals.self[fn]!)} />
			<Share value={totals.total[fn]!} whole={whole} title={formatValue(profile, totals.total[fn]!)} />
			<span class="cell name" role="cell" title={functionName(profile, fn)}>
				<Swatch profile={profile} theme={theme} kind={kind} />
				<bdi>{functionName(profile, fn)}</bdi>
			</span>
			<span class="cell kind" role="cell"><bdi>{profile.kinds[kind]!}</bdi></span>
			<span class="cell object" role="cell" title={object}><bdi>{object}</bdi></span>
		</div>
	);
}

interface GridProps {
	props: TableProps;
	totals: FunctionTotals;
	rows: Int32Array;
	head: ComponentChildren;
}

function Grid({ props, totals, rows, head }: GridProps) {
	const list = useWindow(rows.length, ROW_PIXELS, HEAD_PIXELS);
	const { chosen, onChoose } = props;
	useEffect(() => {
		const row = rows.indexOf(chosen);
		if (row >= 0)
			list.reveal(row);
	}, [chosen, rows]);
	const onKeyDown = (event: KeyboardEvent) => {
		const page = Math.max(1, Math.floor(list.ref.current!.clientHeight / ROW_PIXELS) - 1);
		const steps: Record<string, number> = {
			ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -rows.length, End: rows.length,
		};
		const step = Object.prototype.hasOwnProperty.call(steps, event.key) ? steps[event.key] : undefined;
		if (step === undefined || rows.length === 0)
			return;
		event.preventDefault();
		const at = rows.indexOf(chosen);
		const next = at < 0 ? 0 : Math.min(rows.length - 1, Math.max(0, at + step));
		onChoose(rows[next]!);
	};
	return (
		<div
 class="table-grid" role="table" ref={list.ref} onScroll={list.onScroll} tabIndex={0}
			aria-label="Functions, arrow keys choose" aria-rowcount={rows.length + 1} onKeyDown={onKeyDown}
			aria-activedescendant={chosen >= 0 ? `cairn-row-${chosen}` : undefined}
		>
			{head}
			<div class="spacer" role="rowgroup" style={{ height: `${rows.length * ROW_PIXELS}px` }}>
				{Array.from(rows.subarray(list.first, list.last), (fn, i) => (
					<Row key={fn} props={props} totals={totals} fn={fn} row={list.first + i} />
				))}
			</div>
			{rows.length === 0 && <p class="nothing">No function matches the search.</p>}
		</div>
	);
}

interface NeighboursProps {
	title: string;
	props: TableProps;
	list: Neighbour[];
	whole: number;
}

const NEIGHBOURS_MAX = 100;

function NeighbourList({ title, props, list, whole }: NeighboursProps) {
	const { tree, theme } = props;
	const { profile } = tree;
	const name = (fn: number) =>
		fn >= 0 ? functionName(profile, fn) : fn === ROOT_FUNCTION ? "all" : groupName(tree, groupOf(fn));
	return (
		<section aria-label={title}>
			<h3>{title}</h3>
			<ul>
				{list.slice(0, NEIGHBOURS_MAX).map(({ fn, value }) => (
					<li key={fn}>
						<button type="button" class="quiet" disabled={fn < 0} onClick={() => props.onChoose(fn)} title={name(fn)}>
							<span class="number">{formatShare(value, whole)}</span>
							<Swatch profile={profile} theme={theme} kind={fn >= 0 ? profile.functions.kind[fn]! : -1} />
							<bdi>{name(fn)}</bdi>
						</button>
					</li>
				))}
				{list.length === 0 && <li class="nothing">none</li>}
				{list.length > NEIGHBOURS_MAX && <li class="nothing">and {list.length - NEIGHBOURS_MAX} more</li>}
			</ul>
		</section>
	);
}

export function FunctionTable(props: TableProps) {
	const { tree, zoomed, matcher, chosen } = props;
	const [sorting, setSorting] = useState<Sorting>({ key: "self", descending: true });
	const totals = useMemo(() => functionTotals(tree, zoomed), [tree, zoomed]);
	const rows = useMemo(() => {
		const keep = (fn: number) => !matcher || matcher.test(functionName(tree.profile, fn));
		return sortFunctions(tree, totals, sorting, keep);
	}, [tree, totals, sorting, matcher]);
	const around = useMemo(() => (chosen >= 0 ? neighbours(tree, chosen, zoomed) : null), [tree, chosen, zoomed]);
	const sort = (key: SortKey) => {
		const fresh = key === "self" || key === "total";
		setSorting({ key, descending: sorting.key === key ? !sorting.descending : fresh });
	};
	const scope = zoomed > 0 ? ` in ${nodeName(tree, zoomed)}` : "";
	return (
		<aside class="table" aria-label="Functions">
			<header>
				<h2>{rows.length.toLocaleString("en-US")} functions<bdi>{scope}</bdi></h2>
				<button type="button" class="quiet" onClick={props.onClose} aria-label="Close the table">✕</button>
			</header>
			<Grid props={props} totals={totals} rows={rows} head={<Header sorting={sorting} onSort={sort} />} />
			{around && (
				<div class="neighbours">
					<NeighbourList title="Callers" props={props} list={around.callers} whole={totals.total[chosen]!} />
					<NeighbourList title="Callees" props={props} list={around.callees} whole={totals.total[chosen]!} />
				</div>
			)}
		</aside>
	);
}
