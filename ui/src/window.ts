// SPDX-License-Identifier: Apache-2.0
/* Which rows of a long list are on the screen, so that only those are in the page. */

import { useLayoutEffect, useRef, useState } from "preact/hooks";

const EXTRA_ROWS = 8;

/* HEAD_PIXELS of the list are covered by a head that stays. */
export function useWindow(count: number, rowPixels: number, headPixels = 0) {
	const ref = useRef<HTMLDivElement>(null);
	const [range, setRange] = useState({ top: 0, height: 600 });
	const onScroll = () => {
		const { scrollTop, clientHeight } = ref.current!;
		setRange({ top: scrollTop, height: clientHeight });
	};
	useLayoutEffect(() => {
		const observer = new ResizeObserver(onScroll);
		observer.observe(ref.current!);
		onScroll();
		return () => observer.disconnect();
	}, []);
	const first = Math.max(0, Math.min(count, Math.floor(range.top / rowPixels)) - EXTRA_ROWS);
	const last = Math.min(count, Math.ceil((range.top + range.height) / rowPixels) + EXTRA_ROWS);
	/* Scrolls so that ROW is visible. */
	const reveal = (row: number) => {
		const list = ref.current!;
		if (row * rowPixels < list.scrollTop)
			list.scrollTop = row * rowPixels;
		else if ((row + 1) * rowPixels + headPixels > list.scrollTop + list.clientHeight)
			list.scrollTop = (row + 1) * rowPixels + headPixels - list.clientHeight;
	};
	return { ref, onScroll, first, last, reveal };
}
