/** Groups names that differ in a number only: PyTorch writes `aten::to, op_id = 12`. */

export function family(name: string): string {
  return name.includes(" = ") ? name.replaceAll(/, (?:op_id|seq|seq_id) = \d+/g, "") : name;
}
