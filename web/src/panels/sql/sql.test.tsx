/** SQL: run by Ctrl+Enter, rows lead to the timeline, refusals are shown. */
import { expect, test } from "vitest";
import { selected } from "../../app/state";
import { draw, fake, load, press, type, until } from "../testing/fake";
import { SqlPanel } from "./sql";

test("tables with columns, a question, its rows", async () => {
  load(fake());
  const place = draw(SqlPanel);
  await until(() => place.querySelector("nav summary")?.textContent === "kernels");
  const field = place.querySelector("textarea")!;
  type(field, "SELECT start, name FROM kernels");
  press(field, "Enter", { ctrlKey: true });
  const row = await until(() => place.querySelector<HTMLElement>('tbody [role="row"]'));
  row.click();
  expect(selected.value?.row).toBe(2);
});

test("shows why the server refuses a query", async () => {
  const good = fake();
  load(fake({ sql: (report, text) => (text.includes("COPY") ? Promise.reject(new Error("only one SELECT is allowed")) : good.sql(report, text)) }));
  const place = draw(SqlPanel);
  const field = await until(() => place.querySelector("textarea"));
  type(field, "COPY x TO 'y'");
  press(field, "Enter", { ctrlKey: true });
  expect(await until(() => place.querySelector('[role="alert"]')?.textContent?.includes("only one SELECT is allowed"))).toBeTruthy();
});
