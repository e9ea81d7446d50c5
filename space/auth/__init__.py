"""Authentication: sessions, tokens, and signing in with Hugging Face."""
