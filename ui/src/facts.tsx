// SPDX-License-Identifier: Apache-2.0
/* The session's facts: one line at the top, all of them in a dialog. */

import { Dialog } from "./dialog.tsx";
import type { Session } from "./data.ts";
import { sessionFacts } from "./format.ts";

interface FactsProps {
	session: Session;
	total: number;
}

/* What the page is called. */
export function sessionTitle(session: Session): string {
	return session.title ?? session.command ?? session.host ?? "profile";
}

export function FactsLine({ session, total, onOpen }: FactsProps & { onOpen(): void }) {
	const facts = sessionFacts(session, total);
	const brief = facts.filter((fact) => fact.brief !== undefined && !fact.warning);
	const warnings = facts.filter((fact) => fact.brief !== undefined && fact.warning);
	const notes = session.notes?.length ?? 0;
	return (
		<div class="facts">
			<h1 title={session.command ?? ""}><bdi>{sessionTitle(session)}</bdi></h1>
			<ul aria-label="Session">
				{brief.map((fact) => (
					<li key={fact.label} title={`${fact.label}: ${fact.text}`}><bdi>{fact.brief}</bdi></li>
				))}
			</ul>
			<ul class="warnings" aria-label="What is missing from this profile">
				{warnings.map((fact) => (
					<li key={fact.label} title={`${fact.label}: ${fact.text}`}><bdi>{fact.brief}</bdi></li>
				))}
				{notes > 0 && <li title={session.notes!.join("\n")}>{notes === 1 ? "1 note" : `${notes} notes`}</li>}
			</ul>
			<button type="button" class="quiet" onClick={onOpen} title="All facts of the session (s)">Details</button>
		</div>
	);
}

export function FactsDialog({ session, total, onClose }: FactsProps & { onClose(): void }) {
	return (
		<Dialog title="Session" onClose={onClose}>
			<dl class="fact-list">
				{sessionFacts(session, total).map((fact, i) => (
					<div key={i} class={fact.warning ? "warning" : ""}>
						<dt>{fact.label}</dt>
						<dd><bdi>{fact.text}</bdi></dd>
					</div>
				))}
			</dl>
		</Dialog>
	);
}
