"""The operations of a training job, and what its steps would take with other durations."""
