/** Contains errors: a part of the page that throws shows a message, and the others continue. */
import { Component, type ComponentChildren } from "preact";

interface Props {
  /** What it is, at the beginning of a sentence: "The panel". */
  what: string;
  children: ComponentChildren;
}

export class Guarded extends Component<Props, { why: string | null }> {
  override state = { why: null };

  static override getDerivedStateFromError(error: unknown): { why: string } {
    return { why: error instanceof Error ? error.message : String(error) };
  }

  override render() {
    if (this.state.why === null) return this.props.children;
    return (
      <div class="broken" role="alert">
        <p>{this.props.what} stopped: {this.state.why}</p>
        <button type="button" onClick={() => this.setState({ why: null })}>Try again</button>
      </div>
    );
  }
}
