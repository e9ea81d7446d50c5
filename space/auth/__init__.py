"""Who is acting: a name on one's own machine; on a Space a signed-in account, or a token the Hub confirms."""
