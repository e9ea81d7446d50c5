"""What maintainers see and do: the queue, decisions, accounts, re-scoring, the log, the leak budget."""
