"""GPU work: use, idle time by cause, launches, copies, memory."""
