"""What a recording leaves for the desk: which report it goes to, where its spool lies, who still writes it. Standard library only."""
