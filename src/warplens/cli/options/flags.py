"""Commands whose flags also take `=true` and `=false`, as nsys users write them."""

from __future__ import annotations

import click

from warplens.cli.options.arguments import boolean


class FlagCommand(click.Command):
    """A command that reads `--flag=true` as `--flag` and leaves `--flag=false` out."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Rewrite flags with values, then parse as usual."""
        flags = {
            name
            for param in self.params
            if isinstance(param, click.Option) and param.is_flag
            for name in param.opts
        }
        rewritten = []
        for place, arg in enumerate(args):
            name, equals, value = arg.partition("=")
            if arg == "--":
                rewritten += args[place:]
                break
            if not equals or name not in flags:
                rewritten.append(arg)
            elif boolean(name, value):
                rewritten.append(name)
        return super().parse_args(ctx, rewritten)
