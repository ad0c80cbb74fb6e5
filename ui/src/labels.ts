// SPDX-License-Identifier: Apache-2.0
/* Widths of text, and names cut to their boxes. Measuring a string costs more than drawing a box, so the advance of
   each character is measured once and a name's cut is kept until its box changes. */

import { fitText } from "./text.ts";

export class Labels {
	#measure: (text: string) => number;
	#ascii = new Float32Array(128).fill(-1);
	#others = new Map<string, number>();
	#widths = new Map<number, number>();
	#fitted = new Map<number, { room: number; text: string }>();

	constructor(measure: (text: string) => number) {
		this.#measure = measure;
	}

	width(text: string): number {
		let sum = 0;
		for (const char of text)
			sum += this.#advance(char);
		return sum;
	}

	#advance(char: string): number {
		const code = char.charCodeAt(0);
		if (code < 128) {
			if (this.#ascii[code]! < 0)
				this.#ascii[code] = this.#measure(char);
			return this.#ascii[code]!;
		}
		let advance = this.#others.get(char);
		if (advance === undefined) {
			advance = this.#measure(char);
			this.#others.set(char, advance);
		}
		return advance;
	}

	/* NAME, which is always the same for KEY, as it fits into ROOM pixels. */
	fit(key: number, name: string, room: number): string {
		let width = this.#widths.get(key);
		if (width === undefined) {
			width = this.width(name);
			this.#widths.set(key, width);
		}
		if (width <= room)
			return name;
		const known = this.#fitted.get(key);
		if (known && known.room === room)
			return known.text;
		const text = fitText(name, room, (part) => this.width(part));
		this.#fitted.set(key, { room, text });
		return text;
	}
}
