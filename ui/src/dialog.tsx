// SPDX-License-Identifier: Apache-2.0
/* A modal dialog; the browser keeps the focus inside, closes it on Escape and gives the focus back. */

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

interface DialogProps {
	title: string;
	onClose(): void;
	children: ComponentChildren;
}

export function Dialog({ title, onClose, children }: DialogProps) {
	const dialog = useRef<HTMLDialogElement>(null);
	useLayoutEffect(() => {
		const element = dialog.current!;
		const before = document.activeElement;
		element.showModal();
		return () => {
			element.close();
			if (before instanceof HTMLElement)
				before.focus();
		};
	}, []);
	return (
		<dialog
			ref={dialog} aria-label={title}
			onCancel={(event) => {
				event.preventDefault();
				onClose();
			}}
			onClick={(event) => {
				if (event.target === dialog.current)
					onClose();
			}}
		>
			<div class="dialog-body">
				<header>
					<h2>{title}</h2>
					<button type="button" class="quiet" onClick={onClose} aria-label="Close">✕</button>
				</header>
				{children}
			</div>
		</dialog>
	);
}
