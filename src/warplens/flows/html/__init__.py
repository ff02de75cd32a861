"""Pages of HTML that need nothing beside themselves: no script, no font, no picture from elsewhere."""
