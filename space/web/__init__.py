"""Parts that pages and REST routes share: page frame, limits of request bodies, error handlers."""
