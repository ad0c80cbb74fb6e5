// SPDX-License-Identifier: Apache-2.0
/* The list of keys. */

import { Dialog } from "./dialog.tsx";
import { KEYS } from "./keys.ts";

export function HelpDialog({ onClose }: { onClose(): void }) {
	return (
		<Dialog title="Keys" onClose={onClose}>
			<dl class="key-list">
				{KEYS.map((row) => (
					<div key={row.action}>
						<dt>{row.shown.split("  ").map((key) => <kbd key={key}>{key}</kbd>)}</dt>
						<dd>{row.help}</dd>
					</div>
				))}
			</dl>
			<p>
				The width of a box is the share of samples with that function on the stack; what stands on it was called by
				it. Hatched boxes are stacks that could not be followed to their end.
			</p>
		</Dialog>
	);
}
