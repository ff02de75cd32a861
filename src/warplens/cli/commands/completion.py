"""Print the completion script of a shell.

## Example

    echo 'eval "$(warplens completion bash)"' >> ~/.bashrc
"""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from warplens.errors import UsageError

_WHERE = {"bash": "~/.bashrc", "zsh": "~/.zshrc", "fish": "~/.config/fish/completions/warplens.fish"}


@click.command(
    epilog="""\b
Examples:
  eval "$(warplens completion bash)"            in ~/.bashrc
  eval "$(warplens completion zsh)"             in ~/.zshrc
  warplens completion fish > ~/.config/fish/completions/warplens.fish
"""
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell."""
    kind = get_completion_class(shell)
    if kind is None:
        raise UsageError(f"There is no completion for {shell}.")
    click.echo(kind(ctx.find_root().command, {}, "warplens", "_WARPLENS_COMPLETE").source())
