/** Diagnostics: lost, cut and missing records, as the report lists them. */
import { source } from "../../app/state";
import { Answered, useAnswer } from "../parts/answer";
import { ReportChoice, generation, panelReport } from "../parts/report";
import { TableView } from "../parts/table/table";

export function DiagnosticsPanel() {
  const from = source.value;
  const report = panelReport.value;
  const answer = useAnswer(from && (() => from.diagnostics(report)), [report, from, generation(report)]);
  return (
    <Answered of={answer} what="the diagnostics">
      {(table) => (
        <TableView table={table} empty="Nothing was lost: the report contains all requested data.">
          <ReportChoice />
        </TableView>
      )}
    </Answered>
  );
}
