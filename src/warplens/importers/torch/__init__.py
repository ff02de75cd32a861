"""Files that PyTorch itself writes about a run: memory snapshots, dumps of the Flight Recorder."""
