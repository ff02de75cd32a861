/** The toolbar: open reports, search, filter, grouping and colours of tracks. */
import { visible } from "../base/text";
import { SearchBox } from "../panels";
import { showAll } from "./actions";
import { COLORS, GROUPS } from "./keys/shortcuts";
import { type ColorBy, type GroupBy, colorBy, filter, groupBy, help, meta, theme } from "./state";
import { nextTheme } from "./theme";

const GROUP_NAMES: Record<GroupBy, string> = { host: "Host, process", device: "GPU first", rank: "Rank" };
const COLOR_NAMES: Record<ColorBy, string> = { name: "Name", category: "Category", correlation: "Launch" };
const THEMES = { system: "◐", dark: "☾", light: "☀" };

export function Toolbar() {
  return (
    <header class="toolbar">
      <Title />
      <SearchBox />
      <Filter />
      <Choice label="Group" title="Order of the tracks (g)" names={GROUP_NAMES} list={GROUPS} value={groupBy.value} onChoose={(one) => (groupBy.value = one)} />
      <Choice label="Colour" title="Meaning of event colours (Shift+C)" names={COLOR_NAMES} list={COLORS} value={colorBy.value} onChoose={(one) => (colorBy.value = one)} />
      <span class="buttons">
        <button type="button" onClick={showAll} title="Show all of the recording (0)">Fit</button>
        <button type="button" onClick={nextTheme} title={`Colours of the page: ${theme.value} (t)`} aria-label={`Colours of the page: ${theme.value}. Change`}>{THEMES[theme.value]}</button>
        <button type="button" onClick={() => (help.value = true)} title="Keys and mouse (?)" aria-label="Help: keys and mouse">?</button>
      </span>
    </header>
  );
}

function Title() {
  const all = meta.value;
  const commands = (all?.reports ?? []).map((one) => visible(`${one.name}: ${one.command}`, 1000)).join("\n");
  return (
    <div class="title" title={commands}>
      <Logo />
      <h1><bdi>{visible(all?.title ?? "warplens", 200)}</bdi></h1>
    </div>
  );
}

function Logo() {
  return (
    <svg class="logo" viewBox="0 0 16 16" width="18" height="18" aria-hidden="true">
      <rect x="1" y="2.5" width="8" height="3" rx=".8" fill="#4c9be8" />
      <rect x="3.5" y="6.5" width="11.5" height="3" rx=".8" fill="#e69f00" />
      <rect x="8" y="10.5" width="5.5" height="3" rx=".8" fill="#2bb08a" />
    </svg>
  );
}

function Filter() {
  const text = filter.value;
  const broken = /^\/.+\/$/.test(text) && !compiles(text.slice(1, -1));
  return (
    <label class="filter" title={broken ? "Not a regular expression: searched as text" : "Show only tracks with this text in their name; /…/ is a regular expression (k)"}>
      <input id="filter" type="search" value={text} placeholder="Filter tracks" aria-label="Filter tracks by name, or by /regular expression/" aria-invalid={broken} autocomplete="off"
        spellcheck={false} maxLength={1000}
        onInput={(event) => (filter.value = event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== "Escape") return;
          event.preventDefault();
          event.stopPropagation();
          if (filter.value === "") event.currentTarget.blur();
          filter.value = "";
        }} />
    </label>
  );
}

function compiles(text: string): boolean {
  try {
    return new RegExp(text).source !== "";
  } catch {
    return false;
  }
}

interface ChoiceProps<T extends string> {
  label: string;
  title: string;
  names: Record<T, string>;
  list: readonly T[];
  value: T;
  onChoose: (one: T) => void;
}

function Choice<T extends string>({ label, title, names, list, value, onChoose }: ChoiceProps<T>) {
  return (
    <label class="choice" title={title}>
      <span>{label}</span>
      <select value={value} onChange={(event) => onChoose(event.currentTarget.value as T)}>
        {list.map((one) => <option key={one} value={one}>{names[one]}</option>)}
      </select>
    </label>
  );
}
