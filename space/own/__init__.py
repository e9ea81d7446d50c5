"""What an account sees and does of its own: its submissions, receipts, what is left to it."""
