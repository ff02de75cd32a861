/** The facts about an event, name by name. */
import type { Field } from "../../data/types";
import { Section } from "../parts/section";
import { shown } from "../parts/table/units";

// Points in time have all their digits, durations have three.
const POINT = /^(start|end|time)$/i;

export function Fields({ fields }: { fields: Field[] }) {
  return (
    <Section title="Fields">
      <dl class="p-fields">
        {fields.map((field, i) => {
          const text = shown(field.value, { name: field.name, unit: field.unit ?? null, kind: POINT.test(field.name) ? "time" : "number" });
          return (
            <div key={i}>
              <dt>{field.name}</dt>
              <dd title={typeof field.value === "number" && field.unit ? `${field.value} ${field.unit}` : undefined}><bdi>{text}</bdi></dd>
            </div>
          );
        })}
      </dl>
    </Section>
  );
}
