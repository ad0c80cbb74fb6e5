// SPDX-License-Identifier: Apache-2.0
/* Fills any number of boxes at the price of one picture. A row looks the same from its top to its bottom, so a row is
   one line of pixels, and the canvas stretches the lines to rows. Forty thousand calls of fillRect() took 17 ms on a
   machine without a GPU; writing the pixels takes 1 ms. */

export interface Rows {
	/* depths of the topmost and the lowest row */
	first: number;
	last: number;
	top: number;
	height: number;
}

// Canvas pixels are RGBA bytes; all machines that run a browser are little-endian.
/* #rrggbb as a pixel. */
export function pixelOf(css: string): number {
	const rgb = parseInt(css.slice(1), 16);
	return (0xff000000 | ((rgb & 0xff) << 16) | (rgb & 0xff00) | (rgb >> 16)) >>> 0;
}

export class Strips {
	#canvas = document.createElement("canvas");
	#context = this.#canvas.getContext("2d", { willReadFrequently: true })!;
	#image: ImageData | null = null;
	#pixels = new Uint32Array(0);
	#rows: Rows = { first: 0, last: 0, top: 0, height: 1 };

	#count(): number {
		return Math.abs(this.#rows.last - this.#rows.first) + 1;
	}

	clear(width: number, rows: Rows, pixel: number) {
		this.#rows = rows;
		const count = this.#count();
		if (!this.#image || this.#image.width !== width || this.#image.height !== count) {
			this.#canvas.width = width;
			this.#canvas.height = count;
			this.#image = this.#context.createImageData(width, count);
			this.#pixels = new Uint32Array(this.#image.data.buffer);
		}
		this.#pixels.fill(pixel);
	}

	fill(depth: number, left: number, right: number, pixel: number) {
		const line = Math.abs(depth - this.#rows.first) * this.#canvas.width;
		if (right - left > 16) {
			this.#pixels.fill(pixel, line + left, line + right);
			return;
		}
		for (let at = line + left; at < line + right; at++)
			this.#pixels[at] = pixel;
	}

	/* All rows, from TOP on, each HEIGHT high. */
	draw(context: CanvasRenderingContext2D, top: number, height: number) {
		const { width } = this.#canvas;
		const count = this.#count();
		this.#context.putImageData(this.#image!, 0, 0);
		context.imageSmoothingEnabled = false;
		context.drawImage(this.#canvas, 0, 0, width, count, 0, top, width, count * height);
	}

	/* Each line as a bar of HEIGHT, OFFSET below the top of its row. */
	drawBars(context: CanvasRenderingContext2D, rows: Rows, offset: number, height: number) {
		const { width } = this.#canvas;
		this.#context.putImageData(this.#image!, 0, 0);
		context.imageSmoothingEnabled = false;
		for (let line = 0; line < this.#count(); line++)
			context.drawImage(this.#canvas, 0, line, width, 1, 0, rows.top + line * rows.height + offset, width, height);
	}
}
