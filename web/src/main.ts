/** Starts the page: chooses the source of the data, then builds the shell. */
import "./base/theme.css";
import "./app/style.css";
import { open } from "./app/app";
import { Blocks } from "./data/blocks";
import { Embedded } from "./data/embedded";
import { firstOf } from "./data/first";
import { Http } from "./data/http";

const place = document.getElementById("app");
if (place !== null) {
  // A page that was exported holds its data; any other asks the server that it came from.
  const blocks = Blocks.of(document);
  const first = blocks === null ? firstOf(document) : null;
  open(blocks === null ? new Http(first) : new Embedded(blocks), place, first !== null);
}
