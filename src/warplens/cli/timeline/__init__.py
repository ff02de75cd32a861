"""The timeline in the terminal: selection and drawing."""
