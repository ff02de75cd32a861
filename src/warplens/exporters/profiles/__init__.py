"""Profiles: pprof, pstats, collapsed stacks."""
