// @vitest-environment happy-dom
/** Keys reach what the table says, and not those who type. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { addKeys, bindings, cap, listen, nameOf } from "./keys";

let end: () => void;

beforeEach(() => {
  bindings.value = [];
  end = listen(window);
});
afterEach(() => {
  end();
  document.body.replaceChildren();
});

function press(key: string, on: EventTarget = document.body, more: KeyboardEventInit = {}): KeyboardEvent {
  const event = new KeyboardEvent("keydown", { key, code: `Key${key}`, bubbles: true, cancelable: true, ...more });
  on.dispatchEvent(event);
  return event;
}

describe("nameOf", () => {
  it("tells letters with Shift apart, but not signs", () => {
    expect(nameOf({ key: "M", shiftKey: true })).toBe("Shift+m");
    expect(nameOf({ key: "M", shiftKey: false })).toBe("m");
    expect(nameOf({ key: "?", shiftKey: true })).toBe("?");
    expect(nameOf({ key: "ArrowLeft", shiftKey: true })).toBe("Shift+ArrowLeft");
  });
});

describe("listen", () => {
  it("runs the newest row that has something to do", () => {
    const [old, refusing, other] = [vi.fn(), vi.fn(() => false), vi.fn()];
    addKeys([{ keys: ["x", "y"], group: "g", does: "d", run: old }]);
    const away = addKeys([{ keys: ["x"], group: "g", does: "d", run: refusing }, { keys: ["z"], group: "g", does: "d", run: other }]);
    expect(press("x").defaultPrevented).toBe(true);
    expect([old.mock.calls.length, refusing.mock.calls.length, other.mock.calls.length]).toEqual([1, 1, 0]);
    away();
    press("z");
    expect(other).not.toHaveBeenCalled();
  });
  it("leaves keys to fields, to others and to the browser", () => {
    const run = vi.fn();
    addKeys([{ keys: ["x"], group: "g", does: "d", run }]);
    const field = document.body.appendChild(document.createElement("input"));
    press("x", field);
    press("x", document.body, { ctrlKey: true });
    press("x", document.body, { metaKey: true });
    field.addEventListener("keydown", (event) => event.preventDefault());
    press("x", field);
    expect(run).not.toHaveBeenCalled();
    press("x", document.body.appendChild(document.createElement("button")));
    expect(run).toHaveBeenCalledTimes(1);
  });
  it("leaves keys to what lies over the page", () => {
    const run = vi.fn();
    addKeys([{ keys: ["Escape", "?"], group: "g", does: "d", run }]);
    const over = document.body.appendChild(document.createElement("dialog"));
    over.setAttribute("open", "");
    expect(press("Escape").defaultPrevented).toBe(false);
    press("?");
    expect(run).toHaveBeenCalledTimes(1);
    over.remove();
    press("Escape");
    expect(run).toHaveBeenCalledTimes(2);
  });
  it("says when a key is let go, or the window left", () => {
    const done = vi.fn();
    addKeys([{ keys: ["x"], group: "g", does: "d", run: () => {}, done }]);
    press("x");
    expect(done).not.toHaveBeenCalled();
    window.dispatchEvent(new KeyboardEvent("keyup", { key: "X", code: "Keyx", shiftKey: true }));
    expect(done).toHaveBeenCalledTimes(1);
    press("x");
    window.dispatchEvent(new Event("blur"));
    expect(done).toHaveBeenCalledTimes(2);
  });
});

it("writes keys as keyboards do", () => {
  expect(["w", "Shift+m", "ArrowUp", "+", "Shift++", "?"].map(cap)).toEqual(["W", "Shift + M", "↑", "+", "Shift + +", "?"]);
});
