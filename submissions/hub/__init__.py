"""Records on the Hub: a private repository keeps them, a public one gets the board."""
