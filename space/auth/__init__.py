"""Who makes a request: sessions, tokens, signing in with Hugging Face."""
