"""Who makes a request: a name on a local server; on a Space a signed-in account or a confirmed token."""
