/** The panel of steps: figures, the slowest, keys that walk and go there. */
import { expect, test } from "vitest";
import { ranges } from "../../app/state";
import { click, draw, fake, load, press, until } from "../testing/fake";
import { StepsPanel } from "./steps";

const STEPS = [0, 1, 2].map((number) => ({ number, process: 1, rank: null, start: number * 100, end: number * 100 + [50, 90, 60][number]!, parts: { data: 20, forward: 10 } }));

test("arrows walk, Enter shows the step on the timeline", async () => {
  load(fake({ steps: async () => ({ name: "step", steps: STEPS }) }));
  const place = draw(StepsPanel);
  const slider = await until(() => place.querySelector('[role="slider"]'));
  expect(slider.getAttribute("aria-valuetext")).toBe("Step 0 of process 1: 50 ns, of it data 20 ns, forward 10 ns, other 20 ns");
  press(slider, "ArrowRight");
  await until(() => slider.getAttribute("aria-valuetext")!.startsWith("Step 1"));
  press(slider, "Enter");
  expect(ranges.value).toEqual([{ begin: 100, end: 190 }]);
});

test("the slowest first, each leads there", async () => {
  load(fake({ steps: async () => ({ name: "step", steps: STEPS }) }));
  const place = draw(StepsPanel);
  const slowest = await until(() => place.querySelectorAll("aside .p-jump").length === 3 && [...place.querySelectorAll("aside .p-jump")]);
  expect(slowest.map((one) => one.textContent)).toEqual(["90 ns", "60 ns", "50 ns"]);
  click(slowest[1]!);
  expect(ranges.value).toEqual([{ begin: 200, end: 260 }]);
});

test("no steps, in words", async () => {
  load(fake());
  const place = draw(StepsPanel);
  expect(await until(() => place.textContent!.includes("No steps found."))).toBeTruthy();
});

test("what nobody knows for steps can be named", async () => {
  const asked: (string | undefined)[] = [];
  load(fake({
    steps: async (_report, name) => {
      asked.push(name);
      return name === "work" ? { name: "work", steps: STEPS } : { name: "", steps: [], note: "There are none." };
    },
  }));
  const place = draw(StepsPanel);
  await until(() => place.textContent!.includes("There are none. Enter the name"));
  const field = () => place.querySelector<HTMLInputElement>('input[type="search"]')!;
  const call = (name: string) => {
    field().value = name;
    field().dispatchEvent(new Event("change", { bubbles: true }));
  };
  call(" work ");
  await until(() => place.querySelector("h3")?.textContent === "3 × work");
  call("");
  await until(() => place.textContent!.includes("There are none."));
  expect(asked).toEqual(["", "work", ""]);
});
