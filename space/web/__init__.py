"""The common parts of pages and REST routes: page frame, limits of request bodies, error handlers."""
