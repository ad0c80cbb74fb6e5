// SPDX-License-Identifier: Apache-2.0
/* The viewer: one component over a ProfileSource. It owns the reader's choices and puts the parts together. */

import { render } from "preact";
import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { MutableRef } from "preact/hooks";
import { DARK, LIGHT } from "./colours.ts";
import type { Loaded, Profile, ProfileSource } from "./data.ts";
import { functionName, stringAt } from "./data.ts";
import { describeNode, speakNode } from "./describe.ts";
import { FactsDialog, FactsLine, sessionTitle } from "./facts.tsx";
import { Flame } from "./flame.tsx";
import type { FlameView } from "./flame-view.ts";
import { HelpDialog } from "./help.tsx";
import type { Action } from "./keys.ts";
import { KEYS, actionFor } from "./keys.ts";
import { Legend } from "./legend.tsx";
import { ProcessesDialog, processKey } from "./processes.tsx";
import { findMatches, makeMatcher, matchFunctions, nextMatch } from "./search.ts";
import type { Matches, Matcher } from "./search.ts";
import { readSettings, writeSettings } from "./settings.ts";
import type { Settings } from "./settings.ts";
import { FunctionTable } from "./table.tsx";
import { Toolbar } from "./toolbar.tsx";
import { buildTree } from "./tree.ts";
import type { Tree } from "./tree.ts";

/* What is highlighted; a function and a kind by name, because their numbers change with the profile. */
type Highlight =
	| { by: "query"; query: string }
	| { by: "function"; name: string; kind: string; object: string }
	| { by: "kind"; kind: string };

type DialogName = "help" | "processes" | "session" | null;

const NOTHING: Highlight = { by: "query", query: "" };

function useSource(source: ProfileSource): Loaded {
	const [loaded, setLoaded] = useState(source.current());
	useEffect(() => {
		setLoaded(source.current());
		return source.subscribe(setLoaded);
	}, [source]);
	return loaded;
}

function useSystemDark(): boolean {
	const query = useMemo(() => matchMedia("(prefers-color-scheme: dark)"), []);
	const [dark, setDark] = useState(query.matches);
	useEffect(() => {
		const listen = () => setDark(query.matches);
		query.addEventListener("change", listen);
		return () => query.removeEventListener("change", listen);
	}, [query]);
	return dark;
}

function useSettings(): [Settings, (change: Partial<Settings>) => void] {
	const [settings, setSettings] = useState(readSettings);
	const change = (part: Partial<Settings>) => {
		const next = { ...settings, ...part };
		writeSettings(next);
		setSettings(next);
	};
	return [settings, change];
}

function isFunction(profile: Profile, fn: number, like: Highlight & { by: "function" }): boolean {
	const { kind, object } = profile.functions;
	return functionName(profile, fn) === like.name && profile.kinds[kind[fn]!] === like.kind &&
		stringAt(profile, object[fn]!) === like.object;
}

function highlighted(tree: Tree, highlight: Highlight, matcher: Matcher | null): Matches | null {
	const { profile } = tree;
	if (highlight.by === "function")
		return matchFunctions(tree, (fn) => isFunction(profile, fn, highlight));
	if (highlight.by === "kind")
		return matchFunctions(tree, (fn) => profile.kinds[profile.functions.kind[fn]!] === highlight.kind);
	return matcher && !matcher.error ? findMatches(tree, matcher) : null;
}

function chosenProcesses(profile: Profile, keys: ReadonlySet<string> | null): ReadonlySet<number> | null {
	if (!keys)
		return null;
	const all = Array.from({ length: profile.processes.count }, (_, process) => process);
	return new Set(all.filter((process) => keys.has(processKey(profile, process))));
}

function describeFunction(profile: Profile, fn: number): Highlight {
	return {
		by: "function",
		name: functionName(profile, fn),
		kind: profile.kinds[profile.functions.kind[fn]!]!,
		object: stringAt(profile, profile.functions.object[fn]!),
	};
}

interface Place {
	tree: Tree;
	zoomed: number;
	focused: number;
}

/* Zoom and focus belong to one tree; for another they are the root until the graph says otherwise. */
function usePlace(tree: Tree): [Place, (change: Partial<Place>) => void] {
	const [place, setPlace] = useState<Place>({ tree, zoomed: 0, focused: 0 });
	const current = place.tree === tree ? place : { tree, zoomed: 0, focused: 0 };
	const change = (part: Partial<Place>) =>
		setPlace((old) => ({ ...(old.tree === tree ? old : { tree, zoomed: 0, focused: 0 }), ...part }));
	return [current, change];
}

interface Actions {
	view: MutableRef<FlameView | null>;
	search: RefObject<HTMLInputElement>;
	matches: Matches | null;
	highlight: Highlight;
	setHighlight(highlight: Highlight): void;
	settings: Settings;
	dark: boolean;
	change(part: Partial<Settings>): void;
	setDialog(dialog: DialogName): void;
	toggleTable(): void;
}

function goToMatch(at: Actions, step: 1 | -1) {
	const view = at.view.current;
	const node = at.matches && view ? nextMatch(at.matches, view.focused, step) : -1;
	if (node < 0)
		return;
	if (at.search.current !== document.activeElement)
		view!.takeKeyboard();
	view!.setFocusShown(true);
	view!.focus(node);
}

function runAction(action: Action, at: Actions) {
	const view = at.view.current;
	const isSearching = at.highlight.by !== "query" || at.highlight.query !== "";
	if (KEYS.some((row) => row.action === action && row.scope === "graph"))
		view?.takeKeyboard();
	const run: Record<Action, () => void> = {
		up: () => view?.step("up"),
		down: () => view?.step("down"),
		previous: () => view?.step("previous"),
		next: () => view?.step("next"),
		zoom: () => view?.zoomTo(view.focused),
		"zoom-out": () => (isSearching ? at.setHighlight(NOTHING) : view?.zoomOut()),
		reset: () => view?.reset(),
		enlarge: () => view?.zoomBy(1.5),
		shrink: () => view?.zoomBy(1 / 1.5),
		"page-up": () => view?.panBy(0, -300 * view.downIsAway),
		"page-down": () => view?.panBy(0, 300 * view.downIsAway),
		search: () => {
			at.search.current?.focus();
			at.search.current?.select();
		},
		"next-match": () => goToMatch(at, 1),
		"previous-match": () => goToMatch(at, -1),
		icicle: () => at.change({ icicle: !at.settings.icicle }),
		order: () => at.change({ order: at.settings.order === "name" ? "weight" : "name" }),
		merge: () => at.change({ merge: !at.settings.merge }),
		theme: () => at.change({ theme: at.dark ? "light" : "dark" }),
		processes: () => at.setDialog("processes"),
		session: () => at.setDialog("session"),
		help: () => at.setDialog("help"),
		functions: () => at.toggleTable(),
	};
	run[action]();
}

const TEXT_FIELDS = 'input:not([type="checkbox"]), textarea, select';

/* Keys pressed in HOST, or anywhere on a page that the viewer has for itself. */
function useKeys(host: RefObject<HTMLElement>, ownsPage: boolean, act: (action: Action) => void) {
	const latest = useRef(act);
	latest.current = act;
	useEffect(() => {
		const target: HTMLElement | Document = ownsPage ? document : host.current!;
		const listen = (event: Event) => {
			const press = event as KeyboardEvent;
			const at = press.target instanceof Element ? press.target : document.body;
			const action = actionFor(press, {
				inText: at.matches(TEXT_FIELDS),
				inGraph: at.closest(".flame") !== null || at === document.body,
				inDialog: at.closest("dialog") !== null,
			});
			if (!action || press.defaultPrevented)
				return;
			press.preventDefault();
			latest.current(action);
		};
		target.addEventListener("keydown", listen);
		return () => target.removeEventListener("keydown", listen);
	}, [ownsPage]);
}

function Status({ tree, place }: { tree: Tree; place: Place }) {
	const about = useMemo(() => describeNode(tree, place.focused, place.zoomed), [tree, place.focused, place.zoomed]);
	return (
		<div class="status">
			<b><bdi>{about.name}</bdi></b>
			<span class="number">{about.shareOfWhole}</span>
			<span>total {about.total}</span>
			<span>self {about.self}</span>
		</div>
	);
}

interface ViewerProps {
	source: ProfileSource;
	ownsPage: boolean;
}

function ProfileViewer({ profile, ownsPage }: { profile: Profile; ownsPage: boolean }) {
	const host = useRef<HTMLDivElement>(null);
	const view = useRef<FlameView | null>(null);
	const search = useRef<HTMLInputElement>(null);
	const [settings, change] = useSettings();
	const [chosen, setChosen] = useState<ReadonlySet<string> | null>(null);
	const [highlight, setHighlight] = useState<Highlight>(NOTHING);
	const [dialog, setDialog] = useState<DialogName>(null);
	const [tableOpen, setTableOpen] = useState(false);
	const systemDark = useSystemDark();
	const dark = settings.theme ? settings.theme === "dark" : systemDark;
	const theme = dark ? DARK : LIGHT;
	const { merge, order } = settings;
	const tree = useMemo(
		() => buildTree(profile, { merge, order, chosen: chosenProcesses(profile, chosen) }),
		[profile, merge, order, chosen],
	);
	const [place, move] = usePlace(tree);
	const query = highlight.by === "query" ? highlight.query : "";
	const matcher = useMemo(() => makeMatcher(query), [query]);
	const matches = useMemo(() => highlighted(tree, highlight, matcher), [tree, highlight, matcher]);
	const chosenFunction = useMemo(
		() => (highlight.by === "function" && matches ? matches.byFunction.indexOf(1) : -1), [highlight, matches],
	);
	const spoken = useMemo(() => speakNode(tree, place.focused, place.zoomed), [tree, place.focused, place.zoomed]);
	const act = (action: Action) => runAction(action, {
		view, search, matches, highlight, setHighlight, settings, dark, change, setDialog,
		toggleTable: () => setTableOpen(!tableOpen),
	});
	useKeys(host, ownsPage, act);
	useLayoutEffect(() => {
		host.current!.closest<HTMLElement>(".cairn")!.dataset.theme = theme.name;
	}, [theme]);
	const close = () => setDialog(null);
	const { session } = profile;
	return (
		<div class="profile" ref={host}>
			<FactsLine session={session} total={profile.total} onOpen={() => setDialog("session")} />
			<Toolbar
				tree={tree} settings={settings} dark={dark} zoomed={place.zoomed} query={query} matcher={matcher}
				matches={matches} filtered={chosen !== null} tableOpen={tableOpen} search={search} onAction={act}
				onQuery={(text) => setHighlight({ by: "query", query: text })}
			/>
			<main>
				<Flame
					tree={tree} theme={theme} matches={matches} icicle={settings.icicle} zoomed={place.zoomed} view={view}
					onFocus={(focused) => move({ focused })} onZoom={(zoomed) => move({ zoomed })}
				/>
				{tableOpen && (
					<FunctionTable
						tree={tree} theme={theme} zoomed={place.zoomed} matcher={matcher} chosen={chosenFunction}
						onChoose={(fn) => setHighlight(fn < 0 ? NOTHING : describeFunction(profile, fn))}
						onClose={() => setTableOpen(false)}
					/>
				)}
			</main>
			<footer>
				<Status tree={tree} place={place} />
				<Legend
					tree={tree} theme={theme} zoomed={place.zoomed} chosen={highlight.by === "kind" ? highlight.kind : null}
					onChoose={(kind) => setHighlight(kind === null ? NOTHING : { by: "kind", kind })}
				/>
			</footer>
			<p class="spoken" id="cairn-graph-help">
				Arrow keys move between boxes, Enter zooms in, Escape zooms out, question mark lists all keys.
			</p>
			<p class="spoken" role="status" aria-live="polite">{spoken}</p>
			{dialog === "help" && <HelpDialog onClose={close} />}
			{dialog === "session" && <FactsDialog session={session} total={profile.total} onClose={close} />}
			{dialog === "processes" &&
				<ProcessesDialog profile={profile} chosen={chosen} onChoose={setChosen} onClose={close} />}
		</div>
	);
}

function Message({ loaded }: { loaded: Exclude<Loaded, { state: "profile" }> }) {
	if (loaded.state === "waiting")
		return <div class="message" role="status"><h1>Waiting for the first samples…</h1></div>;
	if (loaded.state === "problem") {
		return (
			<div class="message" role="alert">
				<h1>{loaded.title}</h1>
				<p><bdi>{loaded.detail}</bdi></p>
			</div>
		);
	}
	return (
		<div class="message" role="status">
			<h1>The profile is empty</h1>
			<p>No samples were taken: nothing ran while cairn was looking, or nothing that it was told to look at.</p>
			<FactsLine session={loaded.session} total={0} onOpen={() => undefined} />
		</div>
	);
}

export function Viewer({ source, ownsPage }: ViewerProps) {
	const loaded = useSource(source);
	useEffect(() => {
		if (ownsPage && (loaded.state === "profile" || loaded.state === "empty")) {
			const session = loaded.state === "profile" ? loaded.profile.session : loaded.session;
			document.title = `${sessionTitle(session)} – cairn`;
		}
	}, [loaded, ownsPage]);
	if (loaded.state === "profile")
		return <ProfileViewer profile={loaded.profile} ownsPage={ownsPage} />;
	return <Message loaded={loaded} />;
}

/* Shows SOURCE in HOST, which is emptied; returns what takes it away. OWNS_PAGE: keys and the title are ours. */
export function mountViewer(host: HTMLElement, source: ProfileSource, ownsPage: boolean): () => void {
	host.classList.add("cairn");
	render(<Viewer source={source} ownsPage={ownsPage} />, host);
	return () => render(null, host);
}
