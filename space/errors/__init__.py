"""Where a judge errs, read by people: the queue of its errors, their tags, counts and comparison."""
