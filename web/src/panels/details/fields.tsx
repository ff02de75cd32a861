/** What is known of an event, name by name. */
import type { Field } from "../../data/types";
import { Section } from "../parts/section";
import { quantity } from "../parts/units";

export function Fields({ fields }: { fields: Field[] }) {
  return (
    <Section title="Fields">
      <dl class="p-fields">
        {fields.map((field, i) => {
          const text = quantity(field.value, field.unit);
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
