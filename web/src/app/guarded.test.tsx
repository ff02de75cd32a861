/** Tests that a part that throws is replaced by a message, its neighbours stay, and it can be tried again. */
import { render } from "preact";
import { act } from "preact/test-utils";
import { expect, it } from "vitest";
import { Guarded } from "./guarded";

it("keeps a failure to itself until somebody tries again", async () => {
  let broken = true;
  const Fragile = () => {
    if (broken) throw new Error("no <b>rows</b>");
    return <p>fine</p>;
  };
  const place = document.body.appendChild(document.createElement("div"));
  await act(() => render(<><Guarded what="The panel"><Fragile /></Guarded><p>beside it</p></>, place));
  expect(place.textContent).toContain("The panel stopped: no <b>rows</b>");
  expect(place.textContent).toContain("beside it");
  broken = false;
  await act(() => place.querySelector("button")!.click());
  expect(place.textContent).toContain("fine");
});
