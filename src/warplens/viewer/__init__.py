"""The timeline in the browser: a server on this machine alone, the answers that its page asks for, and the built page (`_bundle`)."""
