// SPDX-License-Identifier: Apache-2.0
/* The self-contained page: the profile is in the page itself. */

import { staticSource } from "./data.ts";
import type { Loaded } from "./data.ts";
import { loadProfile } from "./parse.ts";
import { mountViewer } from "./viewer.tsx";

function loadFromPage(): Loaded {
	const text = document.getElementById("cairn-profile")?.textContent ?? "";
	if (text.startsWith("@")) {
		const detail = "This is the viewer without data; cairn writes a profile into a copy of it.";
		return { state: "problem", title: "There is no profile in this page", detail };
	}
	return loadProfile(text);
}

mountViewer(document.getElementById("cairn")!, staticSource(loadFromPage()), true);
