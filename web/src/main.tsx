/** Starts the page: where its data comes from, then the shell. */
import { render } from "preact";
import { App } from "./app/app";
import "./app/style.css";

const place = document.getElementById("app");
if (place !== null) {
  render(<App />, place);
}
