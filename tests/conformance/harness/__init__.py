"""Runs programs that others wrote, plain and sealed, and compares what they say."""
