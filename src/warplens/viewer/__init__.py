"""The timeline in the browser.

A server on this machine alone, the answers that its page requests, and the built page (`_bundle`).
"""
