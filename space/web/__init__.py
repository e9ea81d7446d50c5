"""What every page and REST route stands on: the page frame, request limits, errors as status codes."""
