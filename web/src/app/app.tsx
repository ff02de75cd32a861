/** The page: toolbar, timeline with its sidebar, panels below, status line. */
import { Details, panels } from "../panels";
import { Timeline } from "../timeline";
import { panel } from "./state";

export function App() {
  const open = panels.find((one) => one.id === panel.value);
  return (
    <main class="shell">
      <div class="stage">
        <Timeline />
        <Details />
      </div>
      {open !== undefined && (
        <section class="panel" aria-label={open.title}>
          <open.component />
        </section>
      )}
    </main>
  );
}
