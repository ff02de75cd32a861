/** Shortcuts to the page's state for tests. */
import * as state from "../../app/state";

export const details = () => state.details.value;
export const found = () => state.found.value;
export const ranges = () => state.ranges.value;
export const select = (event: typeof state.selected.value): void => void (state.selected.value = event);
