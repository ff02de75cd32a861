/** The help: all keys from one table, and the actions of the mouse. */
import { useEffect, useRef } from "preact/hooks";
import { bindings, cap } from "./keys";
import { help } from "../state";

const MOUSE: [string, string][] = [
  ["Click", "Select"],
  ["Drag", "Measure a range; with Ctrl a second one to compare"],
  ["Double click", "Fit the item under the pointer; on the axis: everything"],
  ["Wheel", "Scroll the tracks"],
  ["Ctrl + wheel", "Zoom at the pointer; so does the wheel over the axis"],
  ["Shift + wheel or drag", "Earlier and later"],
  ["Alt + drag", "Do not snap to the edges of events"],
];
const ORDER = ["Move", "Select", "Find", "Tracks", "Show", "Panels"];

export function Help() {
  const dialog = useRef<HTMLDialogElement>(null);
  const open = help.value;
  useEffect(() => {
    if (open && dialog.current?.open === false) dialog.current.showModal();
    if (!open) dialog.current?.close();
  }, [open]);
  if (!open) return null;
  const rank = (group: string) => (ORDER.indexOf(group) + ORDER.length + 1) % (ORDER.length + 1);
  const groups = [...new Set(bindings.value.map((one) => one.group))].sort((a, b) => rank(a) - rank(b));
  const close = () => (help.value = false);
  return (
    <dialog ref={dialog} class="help" aria-labelledby="help-title" onClose={close} onClick={(event) => event.target === dialog.current && close()}>
      <div class="help-body">
        <header>
          <h2 id="help-title">Keys and mouse</h2>
          <button type="button" onClick={close} aria-label="Close the help">✕</button>
        </header>
        <div class="help-groups">
          {groups.map((group) => (
            <section key={group}>
              <h3>{group}</h3>
              <dl>
                {bindings.value.filter((one) => one.group === group).map((one) => (
                  <div key={one.does}>
                    <dt>{one.keys.map((key) => <kbd key={key}>{cap(key)}</kbd>)}</dt>
                    <dd>{one.does}</dd>
                  </div>
                ))}
              </dl>
            </section>
          ))}
          <section>
            <h3>Mouse</h3>
            <dl>
              {MOUSE.map(([what, does]) => (
                <div key={what}>
                  <dt>{what}</dt>
                  <dd>{does}</dd>
                </div>
              ))}
            </dl>
          </section>
        </div>
      </div>
    </dialog>
  );
}
